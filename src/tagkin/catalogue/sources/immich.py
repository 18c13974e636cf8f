"""An Immich server as the source of a collection."""

from __future__ import annotations

from tagkin.catalogue.database import Database
from tagkin.catalogue.known_catalogues import server_folder
from tagkin.catalogue.sources.server_source import ServerSource
from tagkin.errors import InvalidInput
from tagkin.immich import (
    Connection,
    ImmichServer,
    check_address,
    check_key,
    read_connection,
    store_connection,
)

__all__ = ["connect", "open_source"]


def open_source(database: Database) -> ServerSource:
    """Return the source of the photographs on the server that a person connected to."""
    connection = read_connection(database.root)
    if connection is None:
        raise InvalidInput("Not connected to Immich: tagkin connect immich ADDRESS")
    return ServerSource(database, ImmichServer(connection, database.root))


def connect(address: str, key: str) -> str:
    """Ask the server whether it knows a key, and keep both; return the user's name there."""
    folder, connection = server_folder("immich"), Connection(check_address(address), check_key(key))
    user = ImmichServer(connection, folder).check()
    store_connection(folder, connection)
    return user
