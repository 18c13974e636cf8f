"""The address of a review, and the loop that answers."""

from __future__ import annotations

import contextlib
import socket

import uvicorn

from tagkin.errors import InvalidInput
from tagkin.server.app import create_app
from tagkin.server.review import Review
from tagkin.server.security import Access

__all__ = ["DEFAULT_PORT", "Server"]

DEFAULT_PORT = 8765
_IDLE = 60  # seconds that a connection of a browser stays open between two requests
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
            ws="none",
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
