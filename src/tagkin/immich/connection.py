"""The address of a server and the key to it, in a file for this user alone."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tagkin.errors import InvalidInput, StorageError
from tagkin.filesystem import make_private_folder, write_whole

__all__ = ["Connection", "check_address", "read_connection", "store_connection"]

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
    """Keep a connection in a folder, both for this user alone.

    Parameters
    ----------
    folder : Path
        The folder of the collection.
    connection : Connection
        Address and key.
    """
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
