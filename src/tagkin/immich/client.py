"""The connection to one Immich server, and requests to it.

The address and the key are in a file for this user alone. Requests go to no other address.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlencode, urlsplit

from tagkin.errors import InvalidInput, ServerError, StorageError
from tagkin.filesystem import make_private_folder, write_whole
from tagkin.immich.http import BUSY, Answer, Host, one_line
from tagkin.version import __version__

__all__ = [
    "Client",
    "Connection",
    "Json",
    "UnusableAnswer",
    "check_address",
    "check_key",
    "read_connection",
    "store_connection",
]

Json: TypeAlias = Any
"""An answer of the server, which can hold anything: whoever reads it checks it."""

_SURROGATE = re.compile("[\ud800-\udfff]")  # half a character, which JSON can escape
_FILE = "connection.json"
_HOME = (".local", ".lan", ".home", ".internal", ".home.arpa")  # ends of names in a home network


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
        If it is not the address of a server, or if the key could cross the internet unencrypted.
    """
    try:
        parts = urlsplit(text.strip())
        # as it is looked up: signs of other scripts can be digits and dots
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port
    except ValueError as error:
        raise InvalidInput(f"{text!r} is not the address of a server ({error}).") from error
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidInput(f"{text!r} is not the address of a server, such as https://immich.home.")
    if not re.fullmatch("[!-~]*", host + parts.path):
        raise InvalidInput(f"{text!r} is not the address of a server: it has unusual letters.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput(
            "The address of a server has neither a name and password nor ? or #. The key goes into "
            "TAGKIN_IMMICH_KEY, or is asked for."
        )
    if parts.scheme == "http" and not _is_at_home(host):
        raise InvalidInput(
            f"http://{host} could send the key unencrypted over the internet. Use https://, or the "
            "address of the server in your own network."
        )
    place = f"[{host}]" if ":" in host else host
    path = parts.path.rstrip("/").removesuffix("/api").rstrip("/")
    return f"{parts.scheme}://{place}{'' if port is None else f':{port}'}{path}"


def check_key(key: str) -> str:
    """Return a key without spaces around it; reject what is not a key."""
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidInput("A key has letters, digits and signs only. Copy it from Immich again.")
    return key


def _is_at_home(host: str) -> bool:
    """Whether a host is on this machine or in a private network."""
    with suppress(OSError):  # the system also reads 134744072 and 8.8.2056 as addresses
        host = socket.inet_ntoa(socket.inet_aton(host))
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_HOME)
    address = getattr(address, "ipv4_mapped", None) or address
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
        return Connection(check_address(stored["address"]), check_key(str(stored["key"])))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"{folder / _FILE} cannot be read ({error}). Connect again: tagkin connect immich "
            "ADDRESS"
        ) from error


# --- requests ----------------------------------------------------------------------------


class UnusableAnswer(ServerError):
    """An answer to one request is a refusal or nonsense; other requests may get better ones."""


class Client:
    """The HTTP interface of a server. All requests that tagkin makes may be repeated."""

    def __init__(self, connection: Connection):
        self.address, self._key = connection.address, connection.key
        headers = {
            "x-api-key": connection.key,
            "accept": "application/json, image/*",
            "user-agent": f"tagkin/{__version__}",
        }
        self._host = Host(f"{connection.address}/api", headers)

    def get(self, path: str) -> Json:
        """Return the JSON answer to GET."""
        return self._parse(self._request("GET", path))

    def find(self, path: str) -> Json:
        """Return the JSON answer to GET, or None if Immich says that there is no such thing."""
        return self._parse(self._request("GET", path, may_be_absent=True))

    def find_bytes(self, path: str, **parameters: str) -> bytes | None:
        """Return the answer to GET, or None if Immich says that there is no such thing.

        If a file of Immich's own is missing, it answers 500, which is not repeated.
        """
        answer = self._host.request("GET", f"{path}?{urlencode(parameters)}", busy=BUSY - {500})
        return None if _is_absent(answer) else self._check(answer)

    def send(self, method: str, path: str, body: object, *, may_be_absent: bool = False) -> Json:
        """Return the JSON answer to a request with a JSON body; None if absent, which may be."""
        data = json.dumps(body).encode()
        return self._parse(self._request(method, path, data, may_be_absent=may_be_absent))

    def _request(
        self, method: str, path: str, body: bytes | None = None, *, may_be_absent: bool = False
    ) -> bytes | None:
        kind = None if body is None else "application/json"
        answer = self._host.request(method, path, body, kind)
        return None if may_be_absent and _is_absent(answer) else self._check(answer)

    def _check(self, answer: Answer) -> bytes:
        """Return the content of an answer, unless it is an error."""
        if 200 <= answer.status < 300:
            return answer.data
        if answer.status == 401:
            raise ServerError(
                f"{self.address} does not know the key. Make one in Immich's account settings, and "
                f"connect again: tagkin connect immich {self.address}"
            )
        if answer.status == 403:
            raise ServerError(
                f"{self.address} refuses the key: {self._message(answer)}. Add the permission in "
                "Immich's account settings, under API keys."
            )
        if 300 <= answer.status < 400:
            elsewhere = one_line(answer.headers.get("location", "").replace(self._key, "…"))
            raise ServerError(
                f"{self.address} sends requests elsewhere ({elsewhere}), which tagkin does not "
                "follow. Connect to the address where Immich itself answers."
            )
        raise UnusableAnswer(f"{self.address} answers {answer.status}: {self._message(answer)}.")

    def _message(self, answer: Answer) -> str:
        """Return the server's own message without the key, which it may repeat."""
        return _message(answer).replace(self._key, "…")

    def _parse(self, data: bytes | None) -> Json:
        try:
            if data is None:
                return None
            text = data.decode(errors="replace") or "null"
            value = json.loads(text)
            if re.search(r"\\u[dD][89a-fA-F]", text):
                text = json.dumps(value, ensure_ascii=False)
                value = None  # two of it may not fit into the memory
                value = json.loads(_SURROGATE.sub("\ufffd", text))
            return value
        except (ValueError, RecursionError) as error:
            raise UnusableAnswer(
                f"{self.address} does not answer as Immich does ({error})."
            ) from error


def _is_absent(answer: Answer) -> bool:
    """Whether Immich says that something does not exist; it does so with 400 as well."""
    says_so = _message(answer).lower().startswith("not found")
    return answer.status == 404 or (answer.status == 400 and says_so)


def _message(answer: Answer) -> str:
    """Return the server's own message, on one line."""
    try:
        message = json.loads(answer.data)["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "it does not say why"
    text = message if isinstance(message, str) else json.dumps(message)
    return one_line(text).rstrip(".")
