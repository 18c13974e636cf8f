"""Photographs and tags on an Immich server, by its HTTP interface.

- `client`: requests, with limits and repetitions; the only module that connects
- `items`: photographs and tags as the server sends them
- `connection`: the address and the key, kept for this user alone
- `library`: the photographs as last listed, with their paths in the catalogue
- `server`: `ImmichServer`, a `tagkin.tag_server.TagServer`
"""

from tagkin.immich.connection import Connection, check_address, read_connection, store_connection
from tagkin.immich.server import ImmichServer

__all__ = [
    "Connection",
    "ImmichServer",
    "check_address",
    "read_connection",
    "store_connection",
]
