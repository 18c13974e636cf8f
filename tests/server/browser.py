"""A client that speaks HTTP to a running server, and keeps a cookie as a browser does."""

import http.client
import json
import threading
from typing import Any, NamedTuple

from tagkin.server import Access, Review, Server


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


class Running:
    """A server in a thread of this process, at a port that is free."""

    def __init__(self, review: Review, access: Access | None = None):
        self.access = access or Access()
        self.server = Server(review, self.access, port=0)
        self._thread = threading.Thread(target=self.server.run, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return self.server.port

    def stop(self) -> None:
        self.server.stop()
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
