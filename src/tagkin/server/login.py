"""Logging in with a password, where other machines reach the page.

The password is kept as a hash by scrypt only. A session is a random cookie, of which the server
keeps a hash and the end. After a wrong password, the next attempt from the same network has to
wait, twice as long each time; an attempt before that is not checked at all.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict
from importlib import resources
from urllib.parse import parse_qs

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from tagkin.errors import InvalidInput

MIN_PASSWORD = 12
"""Characters of a password, at least."""
LIFETIME = 24 * 3600.0
"""Seconds until a session ends."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 300.0
"""Seconds that the attempt after a first wrong password waits, and after very many."""
_MAX_PASSWORD = 1000
_MAX_WAITING = 8  # passwords that wait for their check
_MAX_NETWORKS, _MAX_SESSIONS = 10_000, 100
_FORGOTTEN = 3600.0  # seconds after which wrong passwords count no more
_COST = {"n": 2**15, "r": 8, "p": 1, "maxmem": 2**26}  # 32 MiB, a tenth of a second

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tagkin</title><link rel="stylesheet" href="/login.css"></head>
<body><main><h1>tagkin</h1><form method="post" action="/login">
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required
 autofocus maxlength="1000">
<p role="alert">{said}</p><button>Log in</button></form></main></body></html>
"""


class Password:
    """A password that can be compared, and is not kept."""

    def __init__(self, text: str):
        if len(text) < MIN_PASSWORD:
            raise InvalidInput(
                f"The password has {len(text)} characters. Choose one of {MIN_PASSWORD} or more."
            )
        if len(text) > _MAX_PASSWORD:
            raise InvalidInput(f"The password has more than {_MAX_PASSWORD:,} characters.")
        self._salt = secrets.token_bytes(16)
        self._hash = self._digest(text)

    def matches(self, text: str) -> bool:
        """Whether a text is the password; takes a tenth of a second."""
        return len(text) <= _MAX_PASSWORD and hmac.compare_digest(self._digest(text), self._hash)

    def _digest(self, text: str) -> bytes:
        return hashlib.scrypt(text.encode("utf-8", "replace"), salt=self._salt, **_COST)


class Logins:
    """The sessions of a server, and attempts to begin one."""

    def __init__(self, password: Password):
        self._password = password
        self._sessions: OrderedDict[bytes, float] = OrderedDict()
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._turn = asyncio.Lock()  # passwords are checked one at a time
        self._n_waiting = 0

    # --- sessions -----------------------------------------------------------------------------

    def begin(self) -> str:
        """Begin a session, and return the secret for its cookie."""
        session = secrets.token_urlsafe(32)
        self._sessions[_hash(session)] = time.time() + LIFETIME
        while len(self._sessions) > _MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def is_open(self, session: str) -> bool:
        """Whether a session has begun and not ended."""
        return time.time() < self._sessions.get(_hash(session), 0.0)

    def end(self, session: str) -> None:
        """End a session."""
        self._sessions.pop(_hash(session), None)

    # --- attempts -----------------------------------------------------------------------------

    async def attempt(self, request: Request, body: bytes) -> Response | None:
        """Check the password of a form; None if it is right, else the answer."""
        network = _network_of(request)
        if self._n_waiting >= _MAX_WAITING:
            return login_page("Too many attempts at once. Try again in a moment.", 429)
        self._n_waiting += 1
        try:
            async with self._turn:
                # looked at in turn, because attempts may come side by side
                if (wait := self._wait_of(network)) > 0:
                    said = f"Too many wrong passwords. Try again in {wait:.0f} s."
                    answer = login_page(said, 429)
                    answer.headers["retry-after"] = f"{wait + 1:.0f}"
                    return answer
                form = parse_qs(body.decode("utf-8", "replace"), max_num_fields=4)
                text = form.get("password", [""])[0]
                if await run_sync(self._password.matches, text):
                    self._wrong.pop(network, None)
                    return None
                self._note_wrong(network)
        except ValueError:  # too many fields
            pass
        finally:
            self._n_waiting -= 1
        return login_page("Wrong password.", 403)

    def _wait_of(self, network: str) -> float:
        return self._wrong.get(network, (0, 0.0))[1] - time.monotonic()

    def _note_wrong(self, network: str) -> None:
        n, until = self._wrong.pop(network, (0, 0.0))
        now = time.monotonic()
        n = n + 1 if now < until + _FORGOTTEN else 1
        wait = min(FIRST_WAIT * 2.0 ** min(n - 1, 20), LONGEST_WAIT)
        self._wrong[network] = n, now + wait
        while len(self._wrong) > _MAX_NETWORKS:
            self._wrong.popitem(last=False)


def login_page(said: str = "", status: int = 200) -> Response:
    """Return the page that asks for the password, with what is wrong."""
    return HTMLResponse(_PAGE.format(said=said), status)


def login_style() -> Response:
    """Return the style of the page, which is not secret."""
    style = resources.files("tagkin.server") / "static" / "login.css"
    return Response(style.read_bytes(), media_type="text/css")


def _hash(session: str) -> bytes:
    return hashlib.sha256(session.encode("utf-8", "replace")).digest()


def _network_of(request: Request) -> str:
    """Return the address of a client; of IPv6 the network, all of which one person may have."""
    text = "" if request.client is None else request.client.host
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return text
