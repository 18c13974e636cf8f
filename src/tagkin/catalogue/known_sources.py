"""Which source a catalogue has."""

from __future__ import annotations

from tagkin.catalogue.database import Database
from tagkin.catalogue.folder_source import FolderSource
from tagkin.catalogue.source import Source

__all__ = ["open_source"]


def open_source(database: Database) -> Source:
    """Return the source of a catalogue's photographs."""
    return FolderSource(database)
