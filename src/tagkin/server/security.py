"""Who may ask, and what every answer carries: one guard in front of all routes.

A review runs on the machine of one person, in whose browser any other page runs as well. So a
request needs a secret that only the opened address has; its Host must be a name of this machine
(or a foreign name that was made to point here would do); and whatever changes something must come
from a page of the review itself.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tagkin.errors import InvalidInput
from tagkin.server.assets import render

__all__ = ["MAX_BODY", "Access", "Guard", "is_loopback"]

MAX_BODY = 1 << 20  # bytes of a request; a page of ten thousand decisions has fewer
_MAX_ADDRESS = 8192
_MIN_PASSWORD = 8
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_SAFE = frozenset({"GET", "HEAD"})
_LOGIN = "/login"
_TOO_LARGE = (413, f"The request is larger than {MAX_BODY:,} bytes.")

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
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
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """The secret in the address that is opened."""
    first_key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """One that opens it once: programs that are started can be seen by other users."""
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """The secret in the cookie that it is exchanged for."""

    def __post_init__(self) -> None:
        if not is_loopback(self.host) and not self.password:
            raise InvalidInput(
                f"Others can reach {self.host}: give a password with --password, or leave out "
                "--host."
            )
        if self.password is not None and len(self.password) < _MIN_PASSWORD:
            raise InvalidInput(f"The password has fewer than {_MIN_PASSWORD} characters.")

    @property
    def cookie(self) -> str:
        """The name of the cookie: several reviews run side by side."""
        return f"tagkin-{hmac.new(self.session.encode(), b'name', 'sha256').hexdigest()[:8]}"

    def address(self, port: int, *, once: bool = False) -> str:
        """What to open: with a secret in it, that of the first opening or one for all."""
        key = self.first_key if once else self.key
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/?key={key}"

    def allows_host(self, given: str) -> bool:
        """Whether a Host header names this machine, and not a foreign name that points here."""
        name = urlsplit(f"//{given}").hostname if given else None
        if name is None:
            return False
        if is_loopback(self.host):
            return name in _LOOPBACK
        return name in _LOOPBACK or name == self.host.lower() or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """In front of an application: lets requests through, or answers them itself.

    Parameters
    ----------
    app : ASGI application
    access : Access
    """

    def __init__(self, app: App, access: Access):
        self.app, self.access = app, access
        self._attempt = asyncio.Lock()  # passwords are tried one at a time
        self._keys = {access.key, access.first_key}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        send = _with_headers(send)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(send, *refusal)
            return
        if self._has_key(scope):
            await self._let_in(send, headers)
            return
        is_login = self.access.password is not None and scope["path"] == _LOGIN
        if not is_login and not self._has_cookie(headers) and not self._is_open(scope):
            await self._refuse_stranger(scope, send)
            return
        body = await _whole(receive)
        if body is None:
            await _answer(send, *_TOO_LARGE)
        elif is_login:
            await self._login(scope["method"], body, send)
        else:
            await self.app(scope, _again(body, receive), send)

    # --- what is refused ------------------------------------------------------------------

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        if not self.access.allows_host(headers.get("host", "")):
            return 403, "This is not the address of the review."
        if not _is_from_here(scope["method"], headers):
            return 403, "The request came from a page that is not the review's."
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > _MAX_ADDRESS:
            return 414, "The address is too long."
        if int(_digits(headers.get("content-length", "0"))) > MAX_BODY:
            return _TOO_LARGE
        return None

    def _has_key(self, scope: Scope) -> bool:
        if scope["path"] != "/" or scope["method"] != "GET":
            return False
        given = parse_qs(scope["query_string"].decode("latin-1")).get("key", [""])[0]
        found = [key for key in self._keys if _same(given, key)]
        self._keys.difference_update({self.access.first_key}.intersection(found))
        return bool(found)

    def _has_cookie(self, headers: dict[str, str]) -> bool:
        for part in headers.get("cookie", "").split(";"):
            name, _, value = part.strip().partition("=")
            if name == self.access.cookie and _same(value, self.access.session):
                return True
        return False

    def _is_open(self, scope: Scope) -> bool:
        """The style of the page that asks for the password is no secret."""
        return self.access.password is not None and scope["path"].startswith("/static/")

    async def _refuse_stranger(self, scope: Scope, send: Send) -> None:
        if self.access.password is not None and scope["method"] == "GET":
            await _answer(send, 303, "", location=_LOGIN)
        else:
            await _answer(send, 403, "Open the address that `tagkin review` has printed.")

    # --- who comes in -----------------------------------------------------------------------

    async def _let_in(self, send: Send, headers: dict[str, str]) -> None:
        """Give out the cookie, and go to the first page.

        A browser that comes from elsewhere sends the cookie only when a page of ours leads on.
        """
        name = f"{self.access.cookie}={self.access.session}"
        cookie = {"set-cookie": f"{name}; HttpOnly; SameSite=Strict; Path=/"}
        if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
            await _answer(send, 303, "", location="/", **cookie)
        else:
            await _answer(send, 200, _ENTRANCE, kind=_HTML, **cookie)

    async def _login(self, method: str, body: bytes, send: Send) -> None:
        if method != "POST":
            await _answer(send, 200, render("login.html.jinja", is_wrong=False), kind=_HTML)
            return
        given = parse_qs(body.decode("utf-8", "replace")).get("password", [""])[0]
        async with self._attempt:
            if _same(given, self.access.password or ""):
                await self._let_in(send, {})
                return
            await asyncio.sleep(1)
        await _answer(send, 403, render("login.html.jinja", is_wrong=True), kind=_HTML)


_HTML = "text/html; charset=utf-8"
_ENTRANCE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>tagkin</title>
<meta http-equiv="refresh" content="0; url=/"></head>
<body><p><a href="/">To the review</a></p></body></html>
"""


async def _whole(receive: Receive) -> bytes | None:
    """The body of a request; None where it is larger than it may be, whatever its headers say."""
    body = b""
    while len(body) <= MAX_BODY:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body if len(body) <= MAX_BODY else None
    return None


def _again(body: bytes, receive: Receive) -> Receive:
    """The same body for the application, then what comes after it."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return first.pop() if first else await receive()

    return received


def _is_from_here(method: str, headers: dict[str, str]) -> bool:
    """Whether a page of the review itself sent a request, or a person who opens the address."""
    site = headers.get("sec-fetch-site", "none")
    if method in _SAFE:
        is_opening = headers.get("sec-fetch-mode", "navigate") == "navigate"
        return site in ("same-origin", "none") or is_opening
    if site not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    if origin is None or (origin == "null" and site == "same-origin"):
        return True  # no browser leaves out both; a form of ours has no origin to tell
    return urlsplit(origin).netloc == headers.get("host")


def _same(given: str, secret: str) -> bool:
    return bool(secret) and hmac.compare_digest(
        given.encode("utf-8", "replace"), secret.encode("utf-8", "replace")
    )


def _digits(text: str) -> str:
    return text if text.isascii() and text.isdigit() and len(text) < 19 else str(MAX_BODY + 1)


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


async def _answer(
    send: Send, status: int, text: str, *, kind: str = "text/plain; charset=utf-8", **headers: str
) -> None:
    body = text.encode()
    pairs = {"content-type": kind, "content-length": str(len(body))} | headers
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode(), value.encode()) for name, value in pairs.items()],
        }
    )
    await send({"type": "http.response.body", "body": body})
