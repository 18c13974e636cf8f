"""Which source a catalogue has: its folder, or a server that a person connected to.

In a folder, tags are in photographs and sidecars. The folder of a server in the user's data folder
holds its connection and small copies of its photographs. It is the root of the catalogue. No other
folder can name a server.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tagkin.catalogue.database import Database
from tagkin.catalogue.file_reading import (
    Listed,
    Listing,
    Reading,
    check_listing,
    list_folder,
    read_photograph,
)
from tagkin.catalogue.known_catalogues import default_data_folder
from tagkin.catalogue.server_source import ServerSource
from tagkin.catalogue.source import Source, TagWriter, UndoWrite, WriteOptions
from tagkin.catalogue.undo import undo_in_folder
from tagkin.catalogue.write_records import PastWrite
from tagkin.catalogue.write_run import FolderWriter
from tagkin.catalogue.written_files import finish_writes
from tagkin.collection.sidecars import check_exiftool
from tagkin.errors import InvalidInput
from tagkin.immich.name import NAME
from tagkin.progress import Progress

__all__ = ["FolderSource", "open_source", "server_folder", "server_name"]


class FolderSource:
    """The folder of a catalogue; see `tagkin.catalogue.source.Source`."""

    def __init__(self, database: Database):
        self._database = database

    @property
    def title(self) -> str:
        """The path of the folder."""
        return str(self._database.root)

    def list_photographs(self, step: Progress) -> Listing:
        """Find photographs and sidecars by their names and states."""
        listing = list_folder(self._database.root)
        check_listing(self._database.root, listing)
        return listing

    def read(self, listed: Listed, with_content: bool) -> Reading:
        """Read a photograph and its sidecars."""
        return read_photograph(listed, with_content)

    def check_options(self, options: WriteOptions) -> None:
        """Reject `embed` if exiftool is missing."""
        if options.embed:
            check_exiftool()

    def open_writer(self, options: WriteOptions, paths: Iterable[str]) -> TagWriter:
        """Return a writer of sidecars, or into photographs."""
        return FolderWriter(self._database, options, paths)

    def finish_writes(self) -> int:
        """Compare the files of unfinished writes with their records."""
        return finish_writes(self._database)

    def open_undo(self, writes: Sequence[PastWrite]) -> AbstractContextManager[UndoWrite]:
        """Restore files."""
        return undo_in_folder(self._database, writes)


def server_folder() -> Path:
    """Return the folder of the collection on a server."""
    return default_data_folder().absolute() / "servers" / NAME.lower()


def server_name(root: Path) -> str:
    """Return the program whose server a root is the folder of; empty for other folders."""
    return NAME if root == server_folder().resolve() else ""


def open_source(database: Database) -> Source:
    """Return the source of a catalogue's photographs."""
    if not server_name(database.root):
        return FolderSource(database)
    from tagkin.immich import ImmichServer, read_connection  # imported if a person connected

    connection = read_connection(database.root)
    if connection is None:
        raise InvalidInput("Not connected to Immich: tagkin connect immich ADDRESS")
    return ServerSource(database, ImmichServer(connection, database.root))
