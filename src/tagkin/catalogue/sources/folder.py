"""A folder as the source of a collection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tagkin.catalogue.database import Database
from tagkin.catalogue.listing import Listed, Listing, PhotographRead
from tagkin.catalogue.source import TagWriter, UndoWrite, WriteOptions
from tagkin.catalogue.sources.folder_files import check_listing, list_folder, read_photograph
from tagkin.catalogue.sources.folder_undo import undo_in_folder
from tagkin.catalogue.sources.folder_writer import FolderWriter
from tagkin.catalogue.sources.written_files import finish_writes, follow_writes
from tagkin.catalogue.write_records import PastWrite
from tagkin.collection.discovery import has_photograph
from tagkin.collection.sidecars import check_exiftool
from tagkin.progress import Progress

__all__ = ["check_folder", "open_source"]


def check_folder(root: Path) -> None:
    """Reject a folder without photographs."""
    if not has_photograph(root):
        check_listing(root, list_folder(root))


def open_source(database: Database) -> FolderSource:
    """Return the source of the photographs in a folder."""
    return FolderSource(database)


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

    def read(self, listed: Listed, with_content: bool) -> PhotographRead:
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

    def follow_writes(self, photograph: int, path: str) -> None:
        """Find the sidecars that moved with a photograph."""
        follow_writes(self._database, photograph, path)

    def open_undo(self, writes: Sequence[PastWrite]) -> AbstractContextManager[UndoWrite]:
        """Restore files."""
        return undo_in_folder(self._database, writes)
