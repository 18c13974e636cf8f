"""A server that answers every request with bytes of a test's choice, at its pace."""

import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress

Bytes = Iterable[bytes]


def drip(data: bytes, pause: float = 0.05) -> Bytes:
    """Yield bytes one by one."""
    for byte in data:
        time.sleep(pause)
        yield bytes([byte])


class HostileServer:
    """Sends what `answer()` yields to whoever connects, after a request if it reads one."""

    def __init__(self, answer, *, reads_request: bool = True):
        self._answer, self._reads_request = answer, reads_request
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.n_requests = 0
        self._is_closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "HostileServer":
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        self._socket.close()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            if self._reads_request and b"\r\n\r\n" not in connection.recv(1 << 16):
                return
            self.n_requests += 1
            for part in self._answer():
                if self._is_closed:
                    return
                connection.sendall(part)


def head(*headers: str, status: str = "200 OK") -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", *headers, "", "")).encode()
