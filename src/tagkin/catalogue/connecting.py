"""Connect to the server whose photographs become a collection."""

from __future__ import annotations

from tagkin.catalogue.known_catalogues import server_folder
from tagkin.errors import InvalidInput

__all__ = ["check_key", "connect_immich"]


def check_key(key: str) -> str:
    """Return a key without spaces around it; reject what is not a key."""
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidInput("A key has letters, digits and signs only. Copy it from Immich again.")
    return key


def connect_immich(address: str, key: str) -> str:
    """Ask an Immich server whether it knows a key, and keep both; return the user's name there."""
    from tagkin.immich import Connection, ImmichServer, check_address, store_connection

    folder, connection = server_folder(), Connection(check_address(address), check_key(key))
    user = ImmichServer(connection, folder).check()
    store_connection(folder, connection)
    return user
