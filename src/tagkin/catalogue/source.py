"""Where the photographs of a collection live: the interface that a catalogue knows.

The modules of `tagkin.catalogue.sources` have it for a folder and for servers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tagkin.catalogue.listing import Listed, Listing, PhotographRead
from tagkin.catalogue.selection import Selection
from tagkin.catalogue.write_records import PastWrite, ToWrite
from tagkin.collection.sidecars import Convention
from tagkin.progress import Progress

__all__ = ["FileUndone", "FileWrite", "Source", "TagWriter", "UndoWrite", "WriteOptions"]


@dataclass(frozen=True)
class FileWrite:
    """The tags that go into one file."""

    photograph: str
    """From the root."""
    file: str
    """The file, from the root."""
    tags: Sequence[str]
    is_new: bool
    """Whether the file is created."""
    state: str
    """written, there (it had them all), or to write (in a dry run)."""
    is_embedded: bool = False
    """Whether the file is the photograph itself or its RAW file, not a sidecar."""
    why: str = ""
    """Why a new sidecar has its name."""
    removed: Sequence[str] = ()
    """The tags that are removed from the file."""


@dataclass(frozen=True)
class FileUndone:
    """The result of undoing one write."""

    file: str
    """From the root."""
    tags: Sequence[str]
    """The tags that were written, and the tags that were removed."""
    how: str
    """As `how` of a `Restored` sidecar or photograph; "to restore" or "to remove" in a dry run."""
    said: str = ""
    """The same in words."""


class WriteOptions(NamedTuple):
    """How to write tags; see `Catalogue.write`."""

    convention: Convention | None = None
    embed: bool = False
    remove: bool = False
    selection: Selection = Selection()
    align: bool = False


UndoWrite = Callable[[PastWrite], FileUndone]
"""A function that undoes a write; its errors are `WriteError` and `InvalidInput`."""


class TagWriter(AbstractContextManager["TagWriter"], Protocol):
    """Writes the tags of one photograph after the other, inside a ``with`` block."""

    def plan_files(self, photo: ToWrite) -> list[FileWrite]:
        """Return what `write` would do, without looking at more than names."""

    def write(self, run: int, photo: ToWrite) -> list[FileWrite]:
        """Write the tags of a photograph, completely or not at all; record each write first."""


class Source(Protocol):
    """Where the photographs of a collection live."""

    @property
    def title(self) -> str:
        """Its name for people."""

    def list_photographs(self, step: Progress) -> Listing:
        """Return the photographs with their states; an error if there are none."""

    def read(self, listed: Listed, with_content: bool) -> PhotographRead:
        """Read the content of a photograph, if wanted, and its tags with their places."""

    def check_options(self, options: WriteOptions) -> None:
        """Reject ways to write that this source does not have."""

    def open_writer(self, options: WriteOptions, paths: Iterable[str]) -> TagWriter:
        """Return a writer of tags; `paths` are all photographs, from the root."""

    def finish_writes(self) -> int:
        """Find out which writes of killed runs were done; return how many there were."""

    def follow_writes(self, photograph: int, path: str) -> None:
        """Update the records of writes to a photograph that a scan found at another path."""

    def open_undo(self, writes: Sequence[PastWrite]) -> AbstractContextManager[UndoWrite]:
        """Return a ``with`` block in which these writes can be undone."""
