"""Photographs and tags on an Immich server, by its HTTP interface.

- `client`: the address and the key, kept for this user alone; requests, with limits and
  repetitions; the only module that connects
- `library`: photographs and tags as the server sends them, and as last listed, with their paths in
  the catalogue
- `server`: `ImmichServer`, a `tagkin.tag_server.TagServer`
"""

from tagkin.immich.client import Connection, check_address, read_connection, store_connection
from tagkin.immich.server import ImmichServer

__all__ = [
    "Connection",
    "ImmichServer",
    "check_address",
    "read_connection",
    "store_connection",
]
