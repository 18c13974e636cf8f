"""The connection to one Immich server, and requests to it.

The address and the key are in a file for this user alone. Requests are bounded in time, size and
number, and go to no other address.
"""

from __future__ import annotations

import ipaddress
import json
import ssl
import time
import weakref
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from tagkin.errors import InvalidInput, MissingExtra, ServerError, StorageError
from tagkin.filesystem import make_private_folder, write_whole
from tagkin.installing import install_command
from tagkin.version import __version__

if TYPE_CHECKING:
    import httpx

__all__ = [
    "MAX_BYTES",
    "PAUSES",
    "TIMEOUT",
    "Client",
    "Connection",
    "Json",
    "check_address",
    "read_connection",
    "store_connection",
]

Json: TypeAlias = Any
"""An answer of the server, which can hold anything: whoever reads it checks it."""

PAUSES = (0.5, 2.0, 8.0)
"""Seconds before a request is repeated, if the server is busy or the connection breaks."""
TIMEOUT = 60.0
"""Seconds without a byte, after which a request has failed."""
MAX_BYTES = 100_000_000
"""Of an answer."""
_LONGEST_WAIT = 60.0  # seconds that a server may ask to wait
_BUSY = (429, 500, 502, 503, 504)
_ABSENT = (400, 404)  # Immich answers 400 for a photograph that does not exist
_FILE = "connection.json"
_HOME = (".local", ".lan", ".internal", ".home.arpa")  # ends of names in a home network


class Connection(NamedTuple):
    """Where a server is, and the key to it."""

    address: str
    key: str

    def __repr__(self) -> str:
        return f"Connection({self.address!r})"  # without the key, which must not get into a log


def check_address(text: str) -> str:
    """Return the address of a server as it is kept.

    Raises
    ------
    InvalidInput
        If it is not the address of a server, or if the key would cross the internet unencrypted.
    """
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise InvalidInput(f"{text!r} is not the address of a server ({error}).") from error
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidInput(f"{text!r} is not the address of a server, such as https://immich.home.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput(
            "The address of a server has neither a name and password nor ? or #. The key goes into "
            "TAGKIN_IMMICH_KEY, or is asked for."
        )
    if parts.scheme == "http" and not _is_at_home(host):
        raise InvalidInput(
            f"http://{host} would send the key unencrypted over the internet. Use https://, or the "
            "address of the server in your own network."
        )
    place = f"[{host}]" if ":" in host else host
    path = parts.path.rstrip("/").removesuffix("/api").rstrip("/")
    return f"{parts.scheme}://{place}{'' if port is None else f':{port}'}{path}"


def _is_at_home(host: str) -> bool:
    """Whether a host is on this machine or in a private network."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_HOME)
    return address.is_private or address.is_loopback or address.is_link_local


def store_connection(folder: Path, connection: Connection) -> None:
    """Keep a connection in the folder of its collection, both for this user alone."""
    make_private_folder(folder)
    path = folder / _FILE
    path.unlink(missing_ok=True)  # so the permissions are those of a new file
    write_whole(path, json.dumps(connection._asdict()).encode(), private=True)


def read_connection(folder: Path) -> Connection | None:
    """Return the connection in a folder, or None without one."""
    try:
        stored = json.loads((folder / _FILE).read_bytes())
        return Connection(check_address(stored["address"]), str(stored["key"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"{folder / _FILE} cannot be read ({error}). Connect again: tagkin connect immich "
            "ADDRESS"
        ) from error


# --- requests ----------------------------------------------------------------------------


class Client:
    """The HTTP interface of a server.

    The client follows no redirect, reads no proxy, password or certificate from the environment,
    and verifies certificates with those that the system trusts. All requests that tagkin makes may
    be repeated without harm.
    """

    def __init__(self, connection: Connection):
        self.address = connection.address
        library = _import_httpx()
        self._errors: type[Exception] = library.TransportError
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

    def get(self, path: str, **parameters: str) -> Json:
        """Return the JSON answer to GET, or None if there is no such thing."""
        return self._parse(self._request("GET", path, params=parameters))

    def get_bytes(self, path: str, **parameters: str) -> bytes | None:
        """Return the answer to GET, or None if there is no such thing."""
        return self._request("GET", path, params=parameters)

    def send(self, method: str, path: str, body: object) -> Json:
        """Return the JSON answer to a request with a JSON body, or None if nothing is there."""
        return self._parse(self._request(method, path, json=body))

    def _request(self, method: str, path: str, **content: object) -> bytes | None:
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

    def _parse(self, data: bytes | None) -> Json:
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
        return min(max(pause, float(retry_after)), _LONGEST_WAIT)
    except ValueError:  # a date
        return pause


def _message(data: bytes) -> str:
    """Return the server's own message, on one line."""
    try:
        message = json.loads(data)["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "it does not say why"
    text = message if isinstance(message, str) else json.dumps(message)
    return " ".join("".join(c if c.isprintable() else " " for c in text[:200]).split()).rstrip(".")


def _import_httpx() -> ModuleType:
    try:
        import httpx
    except ImportError as error:
        raise MissingExtra(
            f"A connection to Immich needs httpx: {install_command('immich')}"
        ) from error
    return httpx
