"""The guard in front of all routes, which checks requests and adds headers to answers.

A review runs on the machine of one person. Other users may work on that machine, and other pages
run in the person's browser. So a request needs two secrets: the start of its path, and a cookie.
A browser sends a cookie to every port of a host, but only the review's own pages know the path.
The Host must be a name of this machine, because a foreign name can be made to point here. Only a
page of the review itself may change something.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tagkin.errors import InvalidInput
from tagkin.server.assets import render

MAX_BODY = 1 << 20  # bytes of a request; ten thousand decisions take fewer
_MAX_ADDRESS = 8192
_MIN_PASSWORD = 8
_MAX_ATTEMPTS = 8  # passwords that wait for their check
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_SAFE = frozenset({"GET", "HEAD"})
_LOGIN = "/login"
_COOKIE = "tagkin"
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[0-9a-z._-]+)(:[0-9]+)?")

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'self'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _new_secret() -> str:
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Access:
    """Who may use a review; an address that others can reach needs a password."""

    host: str = "127.0.0.1"
    """The address to listen at."""
    password: str | None = field(default=None, repr=False)
    key: str = field(default_factory=_new_secret, repr=False)
    """The secret in the printed address."""
    first_key: str = field(default_factory=_new_secret, repr=False)
    """The secret in the address for the browser, which opens the review once."""
    session: str = field(default_factory=_new_secret, repr=False)
    """The secret in the cookie."""
    folder: str = field(default_factory=_new_secret, repr=False)
    """The secret at the start of every path."""

    def __post_init__(self) -> None:
        if not is_loopback(self.host) and not self.password:
            raise InvalidInput(
                f"Others can reach {self.host}. Set a password with --password, or omit --host."
            )
        if self.password is not None and len(self.password) < _MIN_PASSWORD:
            raise InvalidInput(f"The password has fewer than {_MIN_PASSWORD} characters.")

    def address(self, port: int, *, once: bool = False) -> str:
        """Return the address to open, with the key that works always or once.

        Parameters
        ----------
        port : int
            The port of the server.
        once : bool, default False
            Return the address that works once, for the browser.
        """
        key = self.first_key if once else self.key
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/?key={key}"

    def allows_host(self, header: str) -> bool:
        """Whether a Host header names this machine, and not a foreign name that points here."""
        match = _HOST.fullmatch(header.lower())
        if match is None:
            return False
        name = match[1].strip("[]")
        if name in _LOOPBACK or name == self.host.lower():
            return True
        return not is_loopback(self.host) and _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """An ASGI application that passes allowed requests on to another."""

    def __init__(self, app: ASGIApp, access: Access):
        self.app, self.access = app, access
        self._folder = f"/{access.folder}"
        self._keys = {access.key, access.first_key}
        self._turn = asyncio.Lock()  # passwords are checked one at a time
        self._n_attempts = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
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
        is_inside = self._is_inside(request)
        inner = {**scope, "root_path": self._folder} if is_inside else scope
        await self.app(inner, _repeat(body, receive), send)

    async def _answer(self, request: Request) -> Response | None:
        """Answer a request that the application must not get; None for all others."""
        if not self.access.allows_host(request.headers.get("host", "")):
            return PlainTextResponse("This is not the address of the review.", 403)
        if not _is_from_here(request):
            return PlainTextResponse("The request came from another page.", 403)
        if len(request.scope["path"]) + len(request.scope["query_string"]) > _MAX_ADDRESS:
            return PlainTextResponse("The address is too long.", 414)
        if self._use_key(request):
            return self._let_in(request)
        has_password = self.access.password is not None
        if has_password and request.scope["path"] == _LOGIN:
            return await self._login(request)
        if self._is_inside(request) and self._has_cookie(request):
            return None
        if has_password and request.scope["path"].startswith("/static/"):
            return None  # the style of the login page is not secret
        if has_password and request.method == "GET":
            return RedirectResponse(_LOGIN, 303)
        return PlainTextResponse("Open the address that `tagkin review` has printed.", 403)

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
        parts = request.headers.get("cookie", "").split(";")
        return any(_is_same(part.strip(), f"{_COOKIE}={self.access.session}") for part in parts)

    # --- logging in -------------------------------------------------------------------------

    def _let_in(self, request: Request) -> Response:
        """Set the cookie and lead to the first page.

        A browser that comes from another site sends the cookie only from a page of ours.
        """
        site = request.headers.get("sec-fetch-site", "none")
        home = f"{self._folder}/"
        answer: Response
        if site in ("none", "same-origin"):
            answer = RedirectResponse(home, 303)
        else:
            answer = HTMLResponse(render("entrance.html.jinja", home=home))
        answer.set_cookie(_COOKIE, self.access.session, path=home, httponly=True, samesite="strict")
        return answer

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            return HTMLResponse(render("login.html.jinja", is_wrong=False))
        body = await _body_of(request)
        if body is None:
            return _too_large()
        if self._n_attempts >= _MAX_ATTEMPTS:
            return PlainTextResponse("Too many passwords at once. Try again in a moment.", 429)
        password = parse_qs(body.decode("utf-8", "replace")).get("password", [""])[0]
        self._n_attempts += 1
        try:
            async with self._turn:
                if _is_same(password, self.access.password or ""):
                    return self._let_in(request)
                await asyncio.sleep(1)
        finally:
            self._n_attempts -= 1
        return HTMLResponse(render("login.html.jinja", is_wrong=True), 403)


async def _body_of(request: Request) -> bytes | None:
    """Read the body of a request; None if it is too large."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            return None
    return body


def _too_large() -> Response:
    return PlainTextResponse(f"The request is larger than {MAX_BODY:,} bytes.", 413)


def _repeat(body: bytes, receive: Receive) -> Receive:
    """Return a function that receives the same body again, then the messages after it."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return first.pop() if first else await receive()

    return receive_again


def _is_from_here(request: Request) -> bool:
    """Whether a page of the review sent a request, or a person opened the address."""
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
    return origin == f"http://{headers.get('host')}"


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
