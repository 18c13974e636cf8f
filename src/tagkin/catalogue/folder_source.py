"""A folder of photographs as the source of a collection: tags are in photographs and sidecars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from tagkin.catalogue.database import Database
from tagkin.catalogue.file_reading import Reading, ReadingOptions, read_photograph
from tagkin.catalogue.listing import Listed, Listing, check_listing, list_folder
from tagkin.catalogue.source import TagWriter, UndoWrite, WriteOptions
from tagkin.catalogue.undo import undo_in_folder
from tagkin.catalogue.write_records import PastWrite
from tagkin.catalogue.write_recovery import finish_writes
from tagkin.catalogue.write_run import FolderWriter
from tagkin.collection.sidecars import check_exiftool
from tagkin.progress import Progress

__all__ = ["FolderSource"]


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

    def read(self, listed: Listed, with_content: bool, options: ReadingOptions) -> Reading:
        """Read a photograph and its sidecars."""
        return read_photograph(listed, with_content, options)

    def list_series(self) -> list[list[str]]:
        """Return nothing: a folder has no stacks."""
        return []

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
