"""A client that speaks HTTP to a running server, and keeps a cookie as a browser does."""

import http.client
import json
import threading
from typing import Any, NamedTuple

import lxml.html

from tagkin.server import Access, Desk, Review, Server


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def elements(self, xpath: str) -> list[Any]:
        """Elements of a page."""
        elements: Any = lxml.html.fromstring(self.text).xpath(xpath)
        return list(elements)


class ListedRun(NamedTuple):
    """A run as a page lists it."""

    id: int
    said: str
    can_undo: bool


class Results(NamedTuple):
    """Photographs that the search page shows."""

    names: list[str]
    contents: list[int]
    stacks: list[list[int]]
    next: str


class Running:
    """A server in a thread of this process, at a port that is free."""

    def __init__(self, review: Review | None, **options: Any):
        self.access = Access()
        self.desk = Desk(review)
        self.server = Server(self.desk, self.access, port=0, **options)
        self._thread = threading.Thread(target=self.server.run, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return self.server.port

    def stop(self) -> None:
        self.server.stop()
        self.stop_when_left()

    def stop_when_left(self) -> None:
        """Wait for the server to end by itself."""
        self._thread.join(timeout=120)
        assert not self._thread.is_alive()


class Browser:
    """Asks a server; `open` with the key in the address gives it the cookie and the folder.

    From then on, paths are relative to the folder, as links of the review's pages are.
    """

    def __init__(self, port: int, host: str = "127.0.0.1"):
        self.port, self.host = port, host
        self.cookie: str | None = None
        self.folder = ""

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        own = {"Cookie": self.cookie} if self.cookie else {}
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        try:
            address = f"{self.folder}/{path.removeprefix('/')}"
            connection.request(method, address, body, own | (headers or {}))
            response = connection.getresponse()
            received = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, received, response.read())
        finally:
            connection.close()

    def decide_page(self, tag: int, body: dict[str, Any]) -> Answer:
        """Decide on open suggestions of a tag as its page does: contents, alone or as shown."""
        pairs = {
            verdict: [
                [decided, tag] if isinstance(decided, int) else [decided[0], tag, *decided[1:]]
                for decided in body.get(verdict, ())
            ]
            for verdict in ("accept", "reject")
        }
        return self.post("/api/v1/decisions", body | pairs | {"only_open": True})

    def runs(self) -> list[ListedRun]:
        """The runs on the overview, latest first."""
        return [
            ListedRun(
                int(row.get("data-run")),
                row.xpath("string(span[2])"),
                bool(row.xpath("button")),
            )
            for row in self.get("/overview").elements("//ol[@id='runs']/li")
        ]

    def search(self, query: str = "") -> Results:
        """The photographs on a search page."""
        (grid,) = self.get(f"/search?{query}").elements("//ul[@id='grid']") or (None,)
        if grid is None:
            return Results([], [], [], "")
        tiles = grid.xpath("li/button | li/span")
        return Results(
            [tile.xpath("string(.//img/@alt | span)").split(" and ")[0] for tile in tiles],
            [int(tile.get("data-content", "0")) for tile in tiles],
            [json.loads(tile.get("data-stack", "[]")) for tile in tiles],
            grid.get("data-next"),
        )

    def photograph(self, path: str) -> Any:
        """A photograph by its path."""
        return self.get(f"/api/v1/photographs/at?path={path}").json

    def next_event(self, query: str = "") -> int | None:
        """The first photograph of the event that By event shows."""
        answer = self.get(f"/events?{query}")
        if answer.status == 200:
            return None
        return int(answer.headers["location"].partition("?")[0].removeprefix("events/"))

    def doubts(self, query: str = "") -> list[dict[str, str]]:
        """The doubts on their page, as its script reads them."""
        rows = self.get(f"/doubtful{query}").elements("//ul[@id='doubts']/li")
        return [dict(row.attrib) for row in rows]

    def open(self, key: str) -> Answer:
        response = self.ask("GET", f"/?key={key}")
        self.enter(response)
        return response

    def enter(self, response: Answer) -> None:
        """Keep the secrets of an answer that lets this browser in."""
        self.cookie = response.headers["set-cookie"].partition(";")[0]
        self.folder = response.headers["location"].removesuffix("/")

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        data = json.dumps({} if body is None else body).encode()
        return self.ask("POST", path, data, {"Content-Type": "application/json"} | headers)
