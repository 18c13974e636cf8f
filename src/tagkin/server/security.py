"""The guard in front of all routes, which checks requests and adds headers to answers.

A review runs on the machine of one person. Other users may work on that machine, and other pages
run in the person's browser. So a request needs two secrets: the start of its path, and a cookie.
A browser sends a cookie to every port of a host, but only the review's own pages know the path.
The Host must be a name of this machine, because a foreign name can be made to point here. Only a
page of the review itself may change something.

A page that other machines reach needs a password (`tagkin.server.login`) in place of the key in the
address. Then the cookie is a session that ends, and the names of the machine are listed.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tagkin.errors import InvalidInput
from tagkin.server.login import LIFETIME, Logins, Password, login_page, login_style

HOST = "127.0.0.1"
"""The address to listen at, which only this machine reaches."""
MAX_BODY = 1 << 20  # bytes of a request; ten thousand decisions take fewer
_MAX_ADDRESS = 8192
_SAFE = frozenset({"GET", "HEAD"})
_COOKIE = "tagkin"
_OWN_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
_HOST_HEADER = re.compile(r"(?:\[([0-9a-f:.]+)\]|([0-9a-z._-]+))(?::[0-9]+)?")
_ANY = ("0.0.0.0", "::")  # noqa: S104 (names of all addresses of a machine)

_ENTRANCE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>tagkin</title>
<meta http-equiv="refresh" content="0; url={home}"></head>
<body><p><a href="{home}">To the review</a></p></body></html>
"""
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'self'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def _new_secret() -> str:
    return secrets.token_urlsafe(32)


@dataclass(frozen=True, repr=False)
class Access:
    """Who may use a server: its secrets, and for other machines its password and names."""

    key: str = field(default_factory=_new_secret)
    """The secret in the printed address."""
    first_key: str = field(default_factory=_new_secret)
    """The secret in the address for the browser, which opens the review once."""
    session: str = field(default_factory=_new_secret)
    """The secret in the cookie."""
    folder: str = field(default_factory=_new_secret)
    """The secret at the start of every path."""
    host: str = HOST
    """The address to listen at."""
    password: Password | None = None
    """What people on other machines type; needed for any other `host` than the default."""
    names: frozenset[str] = frozenset()
    """Names of this machine, as browsers on other machines know it."""

    def __post_init__(self) -> None:
        _check_host(self.host)
        if self.host != HOST and self.password is None:
            raise InvalidInput(f"Other machines can reach {self.host}, so it needs a password.")
        for name in self.names:
            match = _HOST_HEADER.fullmatch(name.lower())
            if match is None or ":" in name:
                raise InvalidInput(f"{name!r} is not the name of a machine, such as nas.home.")

    def allows_host(self, header: str) -> bool:
        """Whether a Host header names this machine, and not a foreign name that points here.

        A page of somebody else cannot be at a number.
        """
        match = _HOST_HEADER.fullmatch(header.lower())
        if match is None:
            return False
        name = match[1] or match[2]
        if name in _OWN_NAMES:
            return True
        listed = {listed.lower() for listed in self.names}
        return self.password is not None and (name in listed or _is_number(name))

    def address(self, port: int, *, once: bool = False) -> str:
        """Return the address to open, with the key that works always or, for the browser, once.

        With a password, there is no key.
        """
        if self.password is not None:
            name = min(self.names, default=HOST if self.host in _ANY else self.host)
            return f"http://{f'[{name}]' if ':' in name else name}:{port}/"
        return f"http://{HOST}:{port}/?key={self.first_key if once else self.key}"


def _check_host(host: str) -> None:
    if not _is_number(host):
        raise InvalidInput(f"{host!r} is not the number of an address, such as 0.0.0.0.")


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """An ASGI application that passes allowed requests on to another."""

    def __init__(self, app: ASGIApp, access: Access, home: Callable[[], str] = lambda: ""):
        self.app, self.access, self._home = app, access, home
        self._folder = f"/{access.folder}"
        self._keys = {access.key, access.first_key} if access.password is None else set()
        self._logins = None if access.password is None else Logins(access.password)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        request, send = Request(scope, receive), _with_headers(send)
        try:
            answer = await self._answer(request)
            if answer is not None:
                await answer(scope, receive, send)
                return
            body = await _body_of(request)
        except ClientDisconnect:
            return
        if body is None:
            await _too_large()(scope, receive, send)
            return
        await self.app({**scope, "root_path": self._folder}, _repeat(body, receive), send)

    async def _answer(self, request: Request) -> Response | None:
        """Answer a request that the application must not get; None for all others."""
        # a foreign name can be made to point here
        if not self.access.allows_host(request.headers.get("host", "")):
            return PlainTextResponse("This is not the address of the review.", 403)
        if not _is_from_here(request, self._logins is not None):
            return PlainTextResponse("The request came from another page.", 403)
        if len(request.scope["path"]) + len(request.scope["query_string"]) > _MAX_ADDRESS:
            return PlainTextResponse("The address is too long.", 414)
        if self._logins is not None:
            return await self._answer_other_machine(request, self._logins)
        if self._use_key(request):
            return self._let_in(request, self.access.session)
        if self._is_inside(request) and self._has_cookie(request):
            return None
        return PlainTextResponse("Open the address that `tagkin review` has printed.", 403)

    async def _answer_other_machine(self, request: Request, logins: Logins) -> Response | None:
        """Answer a request that has no session; None for all others."""
        path, method = request.scope["path"], request.method
        if path == "/login" and method == "POST":
            body = await _body_of(request)
            if body is None:
                return _too_large()
            refusal = await logins.attempt(request, body)
            return refusal or self._let_in(request, logins.begin())
        if path == "/login" and method in _SAFE:
            return login_page()
        if path == "/login.css" and method in _SAFE:
            return login_style()
        sessions = [session for session in _cookies(request) if logins.is_open(session)]
        if not (self._is_inside(request) and sessions):
            if method in _SAFE and request.headers.get("sec-fetch-mode", "navigate") == "navigate":
                return RedirectResponse("/login", 303)
            return PlainTextResponse("Log in first.", 401)
        if path == f"{self._folder}/logout" and method == "POST":
            for session in sessions:
                logins.end(session)
            return RedirectResponse("/login", 303)
        return None

    # --- secrets --------------------------------------------------------------------------

    def _use_key(self, request: Request) -> bool:
        """Whether the address has a valid key; the first key works once."""
        if request.scope["path"] != "/" or request.method != "GET":
            return False
        candidate = request.query_params.get("key", "")
        matches = {key for key in self._keys if _is_same(candidate, key)}
        self._keys -= matches & {self.access.first_key}
        return bool(matches)

    def _is_inside(self, request: Request) -> bool:
        path: str = request.scope["path"]
        return _is_same(path[: len(self._folder) + 1], f"{self._folder}/")

    def _has_cookie(self, request: Request) -> bool:
        """Whether any cookie is ours; another port may set a cookie with the same name."""
        return any(_is_same(value, self.access.session) for value in _cookies(request))

    def _let_in(self, request: Request, session: str) -> Response:
        """Set the cookie and lead to the first page.

        A browser that comes from another site sends the cookie only from a page of ours.
        """
        site = request.headers.get("sec-fetch-site", "none")
        home = f"{self._folder}/{self._home()}"
        answer: Response
        if site in ("none", "same-origin"):
            answer = RedirectResponse(home, 303)
        else:
            answer = HTMLResponse(_ENTRANCE.format(home=home))
        answer.set_cookie(
            _COOKIE,
            session,
            max_age=None if self._logins is None else int(LIFETIME),
            path=f"{self._folder}/",
            # a reverse proxy speaks https to the browser
            secure=request.headers.get("origin", "").startswith("https://"),
            httponly=True,
            samesite="strict",
        )
        return answer


def _cookies(request: Request) -> list[str]:
    """Return the values of all cookies with our name."""
    parts = (part.strip() for part in request.headers.get("cookie", "").split(";"))
    start = f"{_COOKIE}="
    return [part.removeprefix(start) for part in parts if part.startswith(start)]


def _too_large() -> Response:
    return PlainTextResponse(f"The request is larger than {MAX_BODY:,} bytes.", 413)


async def _body_of(request: Request) -> bytes | None:
    """Read the body of a request; None if it is too large."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            return None
    return body


def _repeat(body: bytes, receive: Receive) -> Receive:
    """Return a function that receives the same body again, then the messages after it."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return first.pop() if first else await receive()

    return receive_again


def _is_from_here(request: Request, may_be_encrypted: bool) -> bool:
    """Whether a page of the review sent a request, or a person opened the address.

    A reverse proxy may encrypt what a browser gets, so its pages have another scheme.
    """
    headers = request.headers
    site = headers.get("sec-fetch-site", "none")
    if request.method in _SAFE:
        is_opening = headers.get("sec-fetch-mode", "navigate") == "navigate"
        return site in ("same-origin", "none") or is_opening
    if site not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    if origin is None or (origin == "null" and site == "same-origin"):
        return True  # browsers send at least one of them; our own forms may have no origin
    schemes = ("http", "https") if may_be_encrypted else ("http",)
    return origin in {f"{scheme}://{headers.get('host')}" for scheme in schemes}


def _is_same(candidate: str, secret: str) -> bool:
    return bool(secret) and hmac.compare_digest(
        candidate.encode("utf-8", "replace"), secret.encode("utf-8", "replace")
    )


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("cache-control", "no-store")
            headers.update(_HEADERS)
        await send(message)

    return send_with_headers
