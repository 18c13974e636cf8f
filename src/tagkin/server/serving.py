"""The address of a review, and the loop that answers."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tagkin.errors import InvalidInput
from tagkin.server.app import create_app
from tagkin.server.review import Review
from tagkin.server.security import Access

__all__ = ["DEFAULT_PORT", "Server"]

DEFAULT_PORT = 8765
_IDLE = 60  # seconds that a connection of a browser stays open between two requests
_MAX_CONNECTIONS = 64  # some systems let a process open 256 files
_BACKLOG = 32  # connections that are accepted at once
_PATIENCE = 3  # seconds for answers that are under way when it ends


class Server:
    """A review at an address; from the start on, requests wait there for `run`.

    Parameters
    ----------
    review : Review
    access : Access
    port : int, optional
        By default 8765, or any that is free where that one is not; 0 is any.

    Raises
    ------
    InvalidInput
        If the address cannot be used.
    """

    def __init__(self, review: Review, access: Access, port: int | None = None):
        self._socket = _listening(access.host, port)
        self.port = int(self._socket.getsockname()[1])
        self.address = access.address(self.port)
        self.first_address = access.address(self.port, once=True)
        config = uvicorn.Config(
            create_app(review, access),
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
        try:
            with contextlib.suppress(KeyboardInterrupt):
                self._server.run(sockets=[self._socket])
        finally:
            self.close()

    def stop(self) -> None:
        """Let `run` end."""
        self._server.should_exit = True

    def close(self) -> None:
        """Let go of the address; `run` does so at its end."""
        self._socket.close()


class _Connection(H11Protocol):
    """A connection that makes room: if there are too many, the longest waiting one is closed.

    A connection waits while the server has nothing to do for it: it is idle, or its client has
    not sent the whole request. If no other connection waits, the oldest one is closed. So nobody
    can keep others out, neither by requests that never end nor by one request after the other.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._made_at = self.loop.time()
        others = [one for one in self.connections if isinstance(one, _Connection)]
        opened = [one for one in others if one is not self and not one.transport.is_closing()]
        if len(opened) >= _MAX_CONNECTIONS:
            oldest = min(opened, key=lambda one: (not one._is_waiting(), one._made_at))
            oldest.transport.abort()

    def _is_waiting(self) -> bool:
        request = self.cycle
        return request is None or request.response_complete or request.more_body


def _listening(host: str, port: int | None) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    wanted = [DEFAULT_PORT, 0] if port is None else [port]
    for number in wanted:
        try:
            found = socket.create_server((host, number), family=family)
            # or the end of each answer waits until its beginning is confirmed: 40 ms
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return found
        except OSError as error:
            reason = error.strerror or error
    raise InvalidInput(
        f"The address {host}, port {wanted[-1]}, cannot be used: {reason}. Name another port with "
        "--port."
    )
