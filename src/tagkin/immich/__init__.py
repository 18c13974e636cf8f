"""Photographs and tags on an Immich server, by its HTTP interface.

- `http`: requests to one address, bounded in time and size; the only module that connects
- `client`: the address and the key, kept for this user alone; Immich's answers, with repetitions
- `library`: photographs and tags as the server sends them, and as last listed, with their paths in
  the catalogue
- `eyes_service`: the machine learning service, which turns pictures and texts into vectors
- `server`: `ImmichServer`, which lists photographs, and reads and changes their tags
"""

from typing import TYPE_CHECKING

from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.immich.client import Connection as Connection
    from tagkin.immich.client import check_address as check_address
    from tagkin.immich.client import check_key as check_key
    from tagkin.immich.client import read_connection as read_connection
    from tagkin.immich.client import store_connection as store_connection
    from tagkin.immich.library import Asset as Asset
    from tagkin.immich.server import ImmichServer as ImmichServer

__all__ = [
    "Asset",
    "Connection",
    "ImmichServer",
    "check_address",
    "check_key",
    "read_connection",
    "store_connection",
]

# Imported at first use, because every command knows the name.
_HOMES = {
    "Asset": "library",
    "Connection": "client",
    "ImmichServer": "server",
    "check_address": "client",
    "check_key": "client",
    "read_connection": "client",
    "store_connection": "client",
}
__getattr__ = lazy_names(__name__, _HOMES)
