"""Where the photographs of collections live: each source has a module here.

- `folder`: a folder. `folder_files` lists and reads its photographs, `folder_writer` writes tags
  into sidecars or photographs, `folder_undo` restores files, and `written_files` finds the files of
  past writes
- `immich`: an Immich server
- `server_source`: what servers that keep tags have in common

Other modules of the catalogue know a source as a `tagkin.catalogue.source.Source`, which
`open_source` returns. A source is a module with a function `open_source`; one of a server also has
`connect`, and its name in `tagkin.tag_servers`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from tagkin.catalogue.database import Database
from tagkin.catalogue.known_catalogues import server_of
from tagkin.catalogue.source import Source

__all__ = ["check_new_root", "connect", "open_source"]


def open_source(database: Database) -> Source:
    """Return the source of a catalogue's photographs, by its root."""
    source: Source = _module(server_of(database.root) or "folder").open_source(database)
    return source


def check_new_root(root: Path) -> None:
    """Reject a folder without photographs, such as a mistyped one; it gets no catalogue."""
    if not server_of(root):
        _module("folder").check_folder(root)


def connect(server: str, address: str, key: str) -> str:
    """Ask a server whether it knows a key, and keep both; return the user's name there.

    `server` is its name in `tagkin.tag_servers`.
    """
    user: str = _module(server).connect(address, key)
    return user


def _module(name: str) -> Any:
    """Return the module of a source, which is imported at first use."""
    return import_module(f"{__name__}.{name}")
