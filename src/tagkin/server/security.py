"""The guard in front of all routes, which checks requests and adds headers to answers.

A review runs on the machine of one person. Other users may work on that machine, and other pages
run in the person's browser. So a request needs two secrets: the start of its path, and a cookie.
A browser sends a cookie to every port of a host, but only the review's own pages know the path.
The Host must be a name of this machine, because a foreign name can be made to point here. Only a
page of the review itself may change something.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
"""The address to listen at, which only this machine reaches."""
MAX_BODY = 1 << 20  # bytes of a request; ten thousand decisions take fewer
_MAX_ADDRESS = 8192
_SAFE = frozenset({"GET", "HEAD"})
_COOKIE = "tagkin"
_OWN_NAME = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?")

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
    """The secrets of a review."""

    key: str = field(default_factory=_new_secret)
    """The secret in the printed address."""
    first_key: str = field(default_factory=_new_secret)
    """The secret in the address for the browser, which opens the review once."""
    session: str = field(default_factory=_new_secret)
    """The secret in the cookie."""
    folder: str = field(default_factory=_new_secret)
    """The secret at the start of every path."""

    def address(self, port: int, *, once: bool = False) -> str:
        """Return the address to open, with the key that works always or, for the browser, once."""
        return f"http://{HOST}:{port}/?key={self.first_key if once else self.key}"


class Guard:
    """An ASGI application that passes allowed requests on to another."""

    def __init__(self, app: ASGIApp, access: Access, home: Callable[[], str] = lambda: ""):
        self.app, self.access, self._home = app, access, home
        self._folder = f"/{access.folder}"
        self._keys = {access.key, access.first_key}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        request, send = Request(scope, receive), _with_headers(send)
        try:
            answer = self._answer(request)
            if answer is not None:
                await answer(scope, receive, send)
                return
            body = await _body_of(request)
        except ClientDisconnect:
            return
        if body is None:
            too_large = f"The request is larger than {MAX_BODY:,} bytes."
            await PlainTextResponse(too_large, 413)(scope, receive, send)
            return
        await self.app({**scope, "root_path": self._folder}, _repeat(body, receive), send)

    def _answer(self, request: Request) -> Response | None:
        """Answer a request that the application must not get; None for all others."""
        # a foreign name can be made to point here
        if not _OWN_NAME.fullmatch(request.headers.get("host", "").lower()):
            return PlainTextResponse("This is not the address of the review.", 403)
        if not _is_from_here(request):
            return PlainTextResponse("The request came from another page.", 403)
        if len(request.scope["path"]) + len(request.scope["query_string"]) > _MAX_ADDRESS:
            return PlainTextResponse("The address is too long.", 414)
        if self._use_key(request):
            return self._let_in(request)
        if self._is_inside(request) and self._has_cookie(request):
            return None
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

    def _let_in(self, request: Request) -> Response:
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
            _COOKIE, self.access.session, path=f"{self._folder}/", httponly=True, samesite="strict"
        )
        return answer


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
