"""The web server: listens at an address, routes behind a guard, errors as sentences.

Behind the guard, the addresses of a collection start with its number. All others are those of the
start page.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from pathlib import Path

import anyio
import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from tagkin.errors import InvalidInput, NotFound, StorageError
from tagkin.machine import return_memory_at_once
from tagkin.server import api, files_page, pages, start
from tagkin.server.desk import Desk, Opened
from tagkin.server.presence import Presence
from tagkin.server.security import Access, Guard
from tagkin.server.session import Review
from tagkin.server.start_folders import Folders

DEFAULT_PORT = 8765
_IDLE = 60  # seconds that a browser's connection stays open between two requests
_MAX_CONNECTIONS = 64  # some systems allow a process only 256 open files
_BACKLOG = 32  # connections accepted at once
_PATIENCE = 3  # seconds for unfinished answers when the server stops
_NUMBERED = re.compile(r"/([0-9]{1,9})(?=/)")
_HTTP_ERRORS = {404: "There is no such page.", 405: "This method is not allowed here."}


class Server:
    """A desk at an address of this machine, where requests wait for `run`.

    The default `port` is 8765, or any free port; 0 is any free port. `ends_when_left` ends `run` a
    minute after the last page was closed. The page shows only folders in `within`, if it is given.
    """

    def __init__(
        self,
        desk: Desk,
        access: Access,
        port: int | None = None,
        *,
        ends_when_left: bool = False,
        within: Path | None = None,
    ):
        self._socket = _listen(access, port)
        self.port = int(self._socket.getsockname()[1])
        self.address = access.address(self.port)
        self.first_address = access.address(self.port, once=True)
        self._presence = Presence()
        self.was_left = False
        """Whether `run` ended because all pages were closed."""
        self._desk, self._ends_when_left = desk, ends_when_left
        work = start.Start(
            desk,
            Folders(within),
            self._presence,
            self.stop,
            is_shared=access.password is not None,
            ends_when_left=ends_when_left,
        )
        config = uvicorn.Config(
            _create_app(work, access),
            log_level="error",
            access_log=False,
            server_header=False,
            lifespan="off",
            http=_Connection,
            ws="none",
            proxy_headers=False,
            backlog=_BACKLOG,
            timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=_PATIENCE,
        )
        self._server = uvicorn.Server(config)

    def run(self) -> None:
        """Answer until Ctrl-C, or until another thread calls `stop`."""
        return_memory_at_once()
        if self._ends_when_left:
            self._presence.watch(self._leave, lambda: self._desk.is_busy)
        try:
            with contextlib.suppress(KeyboardInterrupt):
                self._server.run(sockets=[self._socket])
        finally:
            self.close()

    def stop(self) -> None:
        """Stop `run`."""
        self._server.should_exit = True

    def close(self) -> None:
        """Release the address, as `run` does at its end."""
        self._presence.stop()
        self._socket.close()

    def _leave(self) -> None:
        self.was_left = True
        self.stop()


class _Connection(H11Protocol):
    """A connection that closes the longest waiting connection if there are too many.

    A connection waits if it is idle or its client has not sent the whole request. If no other
    connection waits, the oldest is closed. So no client can keep others out.
    """

    # uvicorn has no public means for this: `limit_concurrency` refuses the newest connection, and
    # an application sees neither idle connections nor requests that are not whole. `Config(http=)`
    # takes a protocol; `connections`, `transport` and `cycle` are attributes of uvicorn's own.
    # tests/server/test_connections.py fails if a new version of uvicorn changes them.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._made_at = self.loop.time()
        others = [c for c in self.connections if isinstance(c, _Connection) and c is not self]
        still_open = [other for other in others if not other.transport.is_closing()]
        if len(still_open) >= _MAX_CONNECTIONS:
            oldest = min(still_open, key=lambda other: (not other._is_waiting(), other._made_at))
            oldest.transport.abort()

    def _is_waiting(self) -> bool:
        request = self.cycle
        return request is None or request.response_complete or request.more_body


def _listen(access: Access, port: int | None) -> socket.socket:
    """Listen at an address; other machines have to find it at the same port every time."""
    family = socket.AF_INET6 if ":" in access.host else socket.AF_INET
    both = family == socket.AF_INET6 and access.host == "::" and socket.has_dualstack_ipv6()
    others = [0] if access.password is None else []
    ports = [DEFAULT_PORT, *others] if port is None else [port]
    for number in ports:
        try:
            listener = socket.create_server(
                (access.host, number), family=family, dualstack_ipv6=both
            )
            # otherwise the end of each answer waits 40 ms for a confirmation of its start
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return listener
        except OSError as error:
            reason = error.strerror or error
    raise InvalidInput(
        f"Cannot listen at {access.host}, port {ports[-1]}: {reason}. Choose another port with "
        "--port."
    )


# --- the application ---------------------------------------------------------------------------


def _create_app(work: start.Start, access: Access) -> ASGIApp:
    """Create the ASGI application of a desk, which the caller closes."""
    app = _new_app(work)
    app.include_router(start.router)
    app.include_router(start.everywhere)
    return Guard(_Addresses(work, app), access, lambda: _home(work.desk))


def _home(desk: Desk) -> str:
    """Return the first page, from the secret folder."""
    return "" if desk.opened is None else f"{desk.opened.number}/"


class _Addresses:
    """Passes a request on to the collection with the number in its path, or to the start page."""

    def __init__(self, work: start.Start, app: ASGIApp):
        self._work, self._app = work, app
        self._opened: Opened | None = None  # that the next application is for
        self._review_app: ASGIApp = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        folder = scope["root_path"]
        numbered = _NUMBERED.match(scope["path"], len(folder))
        if numbered is None:
            await self._app(scope, receive, send)
            return
        opened = self._work.desk.opened
        if opened is None or int(numbered[1]) != opened.number:
            await _say_closed(Request(scope), folder)(scope, receive, send)
            return
        if opened is not self._opened:
            self._opened, self._review_app = opened, _review_app(self._work, opened.review)
        await self._review_app({**scope, "root_path": f"{folder}/{opened.number}"}, receive, send)


def _say_closed(request: Request, folder: str) -> Response:
    """Answer a window that shows a collection which is no longer open."""
    is_visit = request.headers.get("sec-fetch-mode", "navigate") == "navigate"
    if is_visit and request.method == "GET" and "/api/" not in request.scope["path"]:
        return RedirectResponse(f"{folder}/start", 303)
    return api.Json({"error": "Another collection was opened. Reload the page."}, 410)


def _review_app(work: start.Start, review: Review) -> ASGIApp:
    app = _new_app(work)
    app.state.review = review
    app.state.pictures = anyio.CapacityLimiter(pages.N_PICTURES)
    app.include_router(api.router, prefix=api.PREFIX)
    app.include_router(start.everywhere)
    app.include_router(pages.router)
    app.include_router(files_page.router)
    return app


def _new_app(work: start.Start) -> FastAPI:
    app = FastAPI(
        openapi_url=None,
        redirect_slashes=False,
        # nothing leaves the machine, whatever the environment asks for
        telemetry={"auto_configure": False, "tracing": False, "metrics": False, "logs": False},
    )
    app.state.start = work
    app.mount("/static", pages.Assets())
    for kind in (InvalidInput, StorageError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _answer_error)
    return app


def _answer_error(request: Request, error: Exception) -> Response:
    status, text = _describe(error)
    base = request.base_url.path
    if request.url.path.startswith(f"{base}api/"):
        return api.Json({"error": text}, status)
    return HTMLResponse(pages.render("error.html.jinja", base=base, text=text), status)


def _describe(error: Exception) -> tuple[int, str]:
    """Return the status and the sentence for an error."""
    match error:
        case RequestValidationError():  # its values may be anything, so they are not repeated
            places = (".".join(map(str, detail["loc"][:2])) for detail in error.errors())
            return 422, f"The request was not understood: {', '.join(sorted(set(places)))}."
        case InvalidInput():
            return 404 if isinstance(error, NotFound) else 400, str(error)
        case StorageError():
            return 503, str(error)
        case HTTPException():
            text = _HTTP_ERRORS.get(error.status_code, "The request was not understood.")
            return error.status_code, text
    return 500, f"Internal error ({type(error).__name__}). The terminal says more."
