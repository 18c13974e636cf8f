"""Requests to one address, bounded in time and size.

Python's own client follows no redirect, reads no proxy or password from the environment, and
unpacks nothing. Certificates are verified with those that the system trusts.
"""

from __future__ import annotations

import socket
import ssl
import time
import weakref
from collections.abc import Collection, Mapping
from contextlib import suppress
from email.message import Message
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse
from io import BufferedReader, IOBase, RawIOBase
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tagkin.errors import ServerError

__all__ = ["BUSY", "DEADLINE", "MAX_BYTES", "PAUSES", "TIMEOUT", "Answer", "Host", "one_line"]

PAUSES = (0.5, 2.0, 8.0)
"""Seconds before a request is repeated, if the server is busy or the connection breaks."""
_LONGEST_WAIT = 60.0  # seconds that a server may ask to wait
BUSY = frozenset((429, 500, 502, 503, 504))
"""Answers after which a request is repeated."""
CONNECT_TIMEOUT = 10.0  # seconds
TIMEOUT = 60.0
"""Seconds without a byte, after which a request has failed."""
DEADLINE = 120.0
"""Seconds of a whole request, however steadily its answer drips."""
MAX_BYTES = 16 << 20
"""Of an answer: 1,000 photographs have 3 MB, and a preview has less."""
_MAX_RECEIVED = 2 * MAX_BYTES  # of a whole answer, with headers and the sizes of chunks
_BLOCK = 1 << 16


class _Unreachable(Exception):
    """The connection failed, or broke off."""


class Answer(NamedTuple):
    """The answer to a request."""

    status: int
    headers: Message
    data: bytes


class Host:
    """A server at an address, for any number of threads; each request has its own connection.

    Parameters
    ----------
    address : str
        Beginning with http:// or https://; paths of requests follow it.
    headers : mapping
        Sent with every request.
    """

    def __init__(self, address: str, headers: Mapping[str, str]):
        self.address, self._headers = address, dict(headers)
        self._parts = urlsplit(address)
        is_encrypted = self._parts.scheme == "https"
        self._context = ssl.create_default_context() if is_encrypted else None
        self._idle: list[_Connection] = []
        weakref.finalize(self, _close_all, self._idle)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        kind: str | None = None,
        busy: Collection[int] = BUSY,
    ) -> Answer:
        """Return the answer to a request, whose body is of a media type `kind`.

        The request must do no harm if it is repeated: it is, if the server is `busy`.

        Raises
        ------
        ServerError
            If there is no answer, or if it is too long, takes too long, or is packed.
        """
        for pause in (*PAUSES, None):
            try:
                answer = self._try(method, path, body, kind)
            except _Unreachable as error:
                reason = f"cannot be reached ({one_line(str(error))})"
            else:
                if answer.status not in busy:
                    return answer
                reason = f"is busy or fails (it answers {answer.status})"
                pause = _longer(pause, answer.headers.get("retry-after"))
            if pause is not None:
                time.sleep(pause)
        raise ServerError(
            f"{self.address} {reason}. What was done so far is kept; try again later."
        )

    def _try(self, method: str, path: str, body: bytes | None, kind: str | None) -> Answer:
        headers = self._headers | ({} if kind is None else {"Content-Type": kind})
        try:
            connection = self._idle.pop()
        except IndexError:
            port = self._parts.port or (80 if self._context is None else 443)
            connection = _Connection(self._parts.hostname or "", port, self._context)
        try:
            return self._send(connection, method, path, body, headers)
        except _Unreachable:
            _close_all(self._idle)  # the server may have closed the others as well
            raise

    def _send(
        self,
        connection: _Connection,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> Answer:
        connection.deadline = time.monotonic() + DEADLINE
        is_whole = False
        try:
            connection.request(method, f"{self._parts.path}/{path}", body, dict(headers))
            answer = self._receive(connection)
            is_whole = True
        except ServerError:
            raise
        except (OSError, HTTPException, ValueError) as error:
            if time.monotonic() < connection.deadline:
                raise _Unreachable(str(error) or type(error).__name__) from error
            raise ServerError(
                f"{self.address} did not finish an answer within {DEADLINE:g} seconds. What was "
                "done so far is kept; try again later."
            ) from error
        finally:
            if is_whole:
                self._idle.append(connection)
            else:
                connection.close()
        return answer

    def _receive(self, connection: _Connection) -> Answer:
        with connection.getresponse() as response:
            packed = response.headers.get("content-encoding", "identity")
            if packed.lower() != "identity":
                raise ServerError(
                    f"{self.address} packs its answer ({packed[:20]}), which tagkin does not read."
                )
            parts, size = [], 0
            while part := response.read(_BLOCK):
                parts.append(part)
                size += len(part)
                if size > MAX_BYTES:
                    raise ServerError(f"{self.address} answers with more than {MAX_BYTES:,} bytes.")
            if response.length:  # what is missing of the length that it gave
                raise HTTPException("the answer broke off")
            return Answer(response.status, response.headers, b"".join(parts))


class _Connection(HTTPConnection):
    """A connection whose operations end at a deadline."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None):
        super().__init__(host, port, timeout=CONNECT_TIMEOUT)
        self.default_port = 80 if context is None else 443
        self.response_class = partial(_Response, self)  # type: ignore[assignment]
        self.deadline = 0.0
        self._encryption = context

    def connect(self) -> None:
        """Connect, and agree on encryption."""
        super().connect()
        self.limit_time(self.sock)
        if self._encryption is not None:
            self.sock = self._encryption.wrap_socket(self.sock, server_hostname=self.host)

    def send(self, data: Any) -> None:
        """Send all bytes in one operation of the socket."""
        if self.sock is not None:
            self.limit_time(self.sock)
        super().send(data)

    def limit_time(self, sock: socket.socket) -> None:
        """Let the next operation of a socket end in time.

        Raises
        ------
        TimeoutError
            After the deadline.
        """
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the request takes too long")
        sock.settimeout(min(seconds, TIMEOUT))


class _Response(HTTPResponse):
    def __init__(self, connection: _Connection, sock: socket.socket, *args: Any, **kwargs: Any):
        super().__init__(sock, *args, **kwargs)
        self.fp = BufferedReader(_Reader(connection, sock, self.fp), _BLOCK)


class _Reader(RawIOBase):
    """The bytes from a socket, until the deadline; `file` keeps the socket open."""

    def __init__(self, connection: _Connection, sock: socket.socket, file: IOBase):
        self._connection, self._sock, self._file = connection, sock, file
        self._size = 0

    def close(self) -> None:
        self._file.close()
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.limit_time(self._sock)
        n_bytes = self._sock.recv_into(buffer)
        self._size += n_bytes
        if self._size > _MAX_RECEIVED:  # a chunk whose size is below 0 is read to its end
            raise ServerError(
                f"{self._connection.host} answers with more than {MAX_BYTES:,} bytes."
            )
        return n_bytes


def one_line(text: str) -> str:
    """Return the start of a server's text, for a message."""
    return " ".join("".join(c if c.isprintable() else " " for c in text[:200]).split())


def _longer(pause: float | None, retry_after: str | None) -> float | None:
    """Return the pause, or the longer one that the server asks for."""
    if pause is None or not retry_after:
        return pause
    try:
        return min(max(pause, float(retry_after)), _LONGEST_WAIT)
    except ValueError:  # a date
        return pause


def _close_all(connections: list[_Connection]) -> None:
    with suppress(IndexError):
        while True:
            connections.pop().close()
