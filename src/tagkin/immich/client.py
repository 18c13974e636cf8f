"""Requests to one Immich server: bounded in time, size and number, and to no other address."""

from __future__ import annotations

import email.utils
import json
import ssl
import time
import weakref
from typing import TYPE_CHECKING, Any

from tagkin.errors import MissingExtra, ServerError, pip_install
from tagkin.immich.connection import Connection
from tagkin.version import __version__

if TYPE_CHECKING:
    import httpx

__all__ = ["MAX_BYTES", "PAUSES", "TIMEOUT", "Client"]

PAUSES = (0.5, 2.0, 8.0)
"""Seconds before a request is repeated, if the server is busy or the connection breaks."""
TIMEOUT = 60.0
"""Seconds without a byte, after which a request has failed."""
MAX_BYTES = 100_000_000
"""Of an answer."""
_LONGEST_WAIT = 60.0  # seconds that a server may ask to wait
_BUSY = (429, 500, 502, 503, 504)
_ABSENT = (400, 404)  # Immich answers 400 for a photograph that does not exist


class Client:
    """The HTTP interface of a server.

    The client follows no redirect, reads no proxy, password or certificate from the environment,
    and verifies certificates with those that the system trusts. All requests that tagkin makes may
    be repeated without harm.
    """

    def __init__(self, connection: Connection):
        self.address = connection.address
        library = _import_httpx()
        self._errors: Any = library.TransportError
        self._client: httpx.Client = library.Client(
            base_url=f"{connection.address}/api/",
            headers={
                "x-api-key": connection.key,
                "accept": "application/json, image/*",
                "user-agent": f"tagkin/{__version__}",
            },
            timeout=library.Timeout(TIMEOUT, connect=10.0),
            follow_redirects=False,
            trust_env=False,
            verify=ssl.create_default_context(),
        )
        weakref.finalize(self, self._client.close)  # connections end with this object

    def get(self, path: str, **parameters: str) -> Any:
        """Return the JSON answer to GET, or None if there is no such thing."""
        return self._parse(self._request("GET", path, params=parameters))

    def get_bytes(self, path: str, **parameters: str) -> bytes | None:
        """Return the answer to GET, or None if there is no such thing."""
        return self._request("GET", path, params=parameters)

    def send(self, method: str, path: str, body: Any) -> Any:
        """Return the JSON answer to a request with a JSON body, or None if nothing is there."""
        return self._parse(self._request(method, path, json=body))

    def _request(self, method: str, path: str, **content: Any) -> bytes | None:
        for pause in (*PAUSES, None):
            try:
                status, headers, data = self._try(method, path, content)
            except self._errors as error:
                reason = f"cannot be reached ({str(error) or type(error).__name__})"
            else:
                if status not in _BUSY:
                    return self._check(status, headers, data)
                reason = f"is busy or fails (it answers {status})"
                pause = _longer(pause, headers.get("retry-after"))
            if pause is not None:
                time.sleep(pause)
        raise ServerError(
            f"{self.address} {reason}. What was done so far is kept; try again later."
        )

    def _try(
        self, method: str, path: str, content: dict[str, Any]
    ) -> tuple[int, httpx.Headers, bytes]:
        with self._client.stream(method, path, **content) as response:
            parts, size = [], 0
            for part in response.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > MAX_BYTES:
                    raise ServerError(f"{self.address} answers with more than {MAX_BYTES:,} bytes.")
            return response.status_code, response.headers, b"".join(parts)

    def _check(self, status: int, headers: httpx.Headers, data: bytes) -> bytes | None:
        """Return the content of an answer, None if it says that there is no such thing."""
        if 200 <= status < 300:
            return data
        if status in _ABSENT:
            return None
        if status == 401:
            raise ServerError(
                f"{self.address} does not know the key. Make one in Immich's account settings, and "
                f"connect again: tagkin connect immich {self.address}"
            )
        if status == 403:
            raise ServerError(
                f"{self.address} refuses the key: {_message(data)}. Add the permission in Immich's "
                "account settings, under API keys."
            )
        if 300 <= status < 400:
            raise ServerError(
                f"{self.address} sends requests elsewhere ({headers.get('location', '')[:200]}), "
                "which tagkin does not follow. Connect to the address where Immich itself answers."
            )
        raise ServerError(f"{self.address} answers {status}: {_message(data)}.")

    def _parse(self, data: bytes | None) -> Any:
        try:
            return None if data is None else json.loads(data or b"null")
        except (ValueError, RecursionError) as error:
            raise ServerError(
                f"{self.address} does not answer as Immich does ({error})."
            ) from error


def _longer(pause: float | None, retry_after: str | None) -> float | None:
    """Return the pause, or the longer one that the server asks for."""
    if pause is None or not retry_after:
        return pause
    try:
        wait = float(retry_after)
    except ValueError:
        try:
            moment = email.utils.parsedate_to_datetime(retry_after)
        except ValueError:
            return pause
        wait = moment.timestamp() - time.time()
    return min(max(pause, wait), _LONGEST_WAIT)


def _message(data: bytes) -> str:
    """Return the server's own message, on one line."""
    try:
        message = json.loads(data)["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "it does not say why"
    text = message if isinstance(message, str) else json.dumps(message)
    return " ".join("".join(c if c.isprintable() else " " for c in text[:200]).split()).rstrip(".")


def _import_httpx() -> Any:
    try:
        import httpx
    except ImportError as error:
        raise MissingExtra(f"A connection to Immich needs {pip_install('immich')}") from error
    return httpx
