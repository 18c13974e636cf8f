"""The photographs of a server as last listed, and their paths in the catalogue.

A path has the month and the name of a photograph, and the start of its checksum. It lasts: a
photograph keeps it while the server knows its id, whatever changes there, and has it again if the
same file is uploaded anew.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tagkin.filesystem import make_private_folder, write_whole

__all__ = ["Asset", "Library", "choose_path"]

_FILE = "library.json"
_LONGEST = 80  # characters of a name
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]')  # in names on some system


@dataclass(frozen=True)
class Asset:
    """A photograph on the server."""

    id: str
    path: str
    """In the catalogue."""
    checksum: str
    """SHA-1 of the original file, in hexadecimal."""
    taken: str | None
    """By the camera's clock, ISO 8601."""
    camera: str


@dataclass
class Library:
    """The photographs of a user as last listed."""

    assets: dict[str, Asset] = field(default_factory=dict)
    """By path."""
    stacks: list[list[str]] = field(default_factory=list)
    """Paths of photographs that the server shows as one."""
    owner: str = ""
    """The id of the user."""
    updated: str = ""
    """The time of the last change that was seen, by the server's clock, ISO 8601."""
    listed: float = 0.0
    """When all photographs were listed, by this machine's clock; 0: never."""

    @classmethod
    def read(cls, folder: Path) -> Library:
        """Read the library in a folder; an empty one if there is none, or it is damaged."""
        try:
            stored = json.loads((folder / _FILE).read_bytes())
            assets = {asset["path"]: Asset(**asset) for asset in stored.pop("assets")}
            return cls(assets, **stored)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls()

    def write(self, folder: Path) -> None:
        """Keep the library in a folder, for this user alone."""
        stored: dict[str, Any] = vars(self) | {"assets": [asdict(a) for a in self.assets.values()]}
        make_private_folder(folder)
        write_whole(folder / _FILE, json.dumps(stored).encode(), private=True)


def choose_path(name: str, month: str, checksum: str) -> str:
    """Return the path of a photograph by its name and the month in which it was taken."""
    stem = _FORBIDDEN.sub("_", name.rpartition(".")[0] or name).strip(". ")[:_LONGEST]
    return f"{month.replace('-', '/')}/{stem.rstrip('. ') or 'photograph'}-{checksum[:12]}.jpg"
