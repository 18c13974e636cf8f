"""The guard in front of all routes: who may ask, and what every answer carries.

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
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from tagkin.errors import InvalidInput
from tagkin.server.assets import render

__all__ = ["MAX_BODY", "Access", "Guard", "is_loopback"]

MAX_BODY = 1 << 20  # bytes of a request; a page of ten thousand decisions has fewer
_MAX_ADDRESS = 8192
_MIN_PASSWORD = 8
_MAX_ATTEMPTS = 8  # passwords that wait to be checked
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

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _secret() -> Any:
    return field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)


@dataclass(frozen=True)
class Access:
    """Who may use a review.

    Raises
    ------
    InvalidInput
        If others could reach the address and there is no password, or a short one.
    """

    host: str = "127.0.0.1"
    """The address that is listened on."""
    password: str | None = field(default=None, repr=False)
    """For an address that others can reach."""
    key: str = _secret()
    """The secret in the printed address."""
    first_key: str = _secret()
    """The secret in the address that the browser is started with. It opens the review once."""
    session: str = _secret()
    """The secret in the cookie."""
    folder: str = _secret()
    """The secret that every path starts with."""

    def __post_init__(self) -> None:
        if not is_loopback(self.host) and not self.password:
            raise InvalidInput(
                f"Others can reach {self.host}: give a password with --password, or leave out "
                "--host."
            )
        if self.password is not None and len(self.password) < _MIN_PASSWORD:
            raise InvalidInput(f"The password has fewer than {_MIN_PASSWORD} characters.")

    def address(self, port: int, *, once: bool = False) -> str:
        """Return the address to open, with the key for all openings or for the first."""
        key = self.first_key if once else self.key
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/?key={key}"

    def allows_host(self, given: str) -> bool:
        """Whether a Host header names this machine, and not a foreign name that points here."""
        match = _HOST.fullmatch(given.lower())
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
    """Lets requests through to an application, or answers them itself.

    Parameters
    ----------
    app : ASGI application
    access : Access
    """

    def __init__(self, app: App, access: Access):
        self.app, self.access = app, access
        self._folder = f"/{access.folder}"
        self._keys = {access.key, access.first_key}
        self._turn = asyncio.Lock()  # passwords are checked one at a time
        self._n_attempts = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
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
        await self.app(inner, _again(body, receive), send)

    async def _answer(self, request: Request) -> Response | None:
        """Answer a request that the application must not see; None for all others."""
        if not self.access.allows_host(request.headers.get("host", "")):
            return PlainTextResponse("This is not the address of the review.", 403)
        if not _is_from_here(request):
            return PlainTextResponse("The request came from a page that is not the review's.", 403)
        if len(request.scope["path"]) + len(request.scope["query_string"]) > _MAX_ADDRESS:
            return PlainTextResponse("The address is too long.", 414)
        if self._takes_key(request):
            return self._let_in(request)
        has_password = self.access.password is not None
        if has_password and request.scope["path"] == _LOGIN:
            return await self._login(request)
        if self._is_inside(request) and self._has_cookie(request):
            return None
        if has_password and request.scope["path"].startswith("/static/"):
            return None  # the style of the page that asks for the password is not a secret
        if has_password and request.method == "GET":
            return RedirectResponse(_LOGIN, 303)
        return PlainTextResponse("Open the address that `tagkin review` has printed.", 403)

    # --- secrets --------------------------------------------------------------------------

    def _takes_key(self, request: Request) -> bool:
        """Whether the address holds a key. The first key holds once."""
        if request.scope["path"] != "/" or request.method != "GET":
            return False
        given = request.query_params.get("key", "")
        matches = {key for key in self._keys if _is_same(given, key)}
        self._keys -= matches & {self.access.first_key}
        return bool(matches)

    def _is_inside(self, request: Request) -> bool:
        path: str = request.scope["path"]
        return _is_same(path[: len(self._folder) + 1], f"{self._folder}/")

    def _has_cookie(self, request: Request) -> bool:
        """Whether one of the cookies is ours: another port may set a cookie of the same name."""
        parts = request.headers.get("cookie", "").split(";")
        return any(_is_same(part.strip(), f"{_COOKIE}={self.access.session}") for part in parts)

    # --- who comes in -----------------------------------------------------------------------

    def _let_in(self, request: Request) -> Response:
        """Set the cookie and lead to the first page.

        A browser that comes from elsewhere sends the cookie only if a page of ours leads on.
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
        given = parse_qs(body.decode("utf-8", "replace")).get("password", [""])[0]
        self._n_attempts += 1
        try:
            async with self._turn:
                if _is_same(given, self.access.password or ""):
                    return self._let_in(request)
                await asyncio.sleep(1)
        finally:
            self._n_attempts -= 1
        return HTMLResponse(render("login.html.jinja", is_wrong=True), 403)


async def _body_of(request: Request) -> bytes | None:
    """Read the body of a request; None if it is too large, whatever its headers say."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            return None
    return body


def _too_large() -> Response:
    return PlainTextResponse(f"The request is larger than {MAX_BODY:,} bytes.", 413)


def _again(body: bytes, receive: Receive) -> Receive:
    """Receive the same body for the application, then the messages after it."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return first.pop() if first else await receive()

    return received


def _is_from_here(request: Request) -> bool:
    """Whether a page of the review itself sent a request, or a person who opens the address."""
    headers = request.headers
    site = headers.get("sec-fetch-site", "none")
    if request.method in _SAFE:
        is_opening = headers.get("sec-fetch-mode", "navigate") == "navigate"
        return site in ("same-origin", "none") or is_opening
    if site not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    if origin is None or (origin == "null" and site == "same-origin"):
        return True  # no browser leaves out both; a form of ours has no origin to tell
    return origin == f"http://{headers.get('host')}"


def _is_same(given: str, secret: str) -> bool:
    return bool(secret) and hmac.compare_digest(
        given.encode("utf-8", "replace"), secret.encode("utf-8", "replace")
    )


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in message["headers"]}
            added = (
                _HEADERS if b"cache-control" in own else _HEADERS | {"cache-control": "no-store"}
            )
            message["headers"] = [
                *message["headers"],
                *((name.encode(), value.encode()) for name, value in added.items()),
            ]
        await send(message)

    return sent
