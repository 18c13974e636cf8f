"""Which source a catalogue has: its folder, or a server that a person connected to.

The folder of a server in the user's data folder holds its connection and small copies of its
photographs. It is the root of the catalogue. No other folder can name a server.
"""

from __future__ import annotations

from pathlib import Path

from tagkin.catalogue.database import Database
from tagkin.catalogue.folder_source import FolderSource
from tagkin.catalogue.known_catalogues import default_data_folder
from tagkin.catalogue.server_source import ServerSource
from tagkin.catalogue.source import Source
from tagkin.errors import InvalidInput
from tagkin.tag_server import SERVERS

__all__ = ["open_source", "server_folder", "server_name"]


def server_folder(name: str) -> Path:
    """Return the folder of a server's collection."""
    return default_data_folder().absolute() / "servers" / name


def server_name(root: Path) -> str:
    """Return the program whose server a root is the folder of; empty for other folders."""
    is_known = root.name in SERVERS and root == server_folder(root.name).resolve()
    return SERVERS[root.name] if is_known else ""


def open_source(database: Database) -> Source:
    """Return the source of a catalogue's photographs."""
    if not server_name(database.root):
        return FolderSource(database)
    from tagkin.immich import ImmichServer, read_connection  # imported if a person connected

    connection = read_connection(database.root)
    if connection is None:
        raise InvalidInput("Not connected to Immich: tagkin connect immich ADDRESS")
    return ServerSource(database, ImmichServer(connection, database.root))
