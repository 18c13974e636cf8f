"""A server that keeps photographs and their tags: the interface that a catalogue needs of it.

`tagkin.immich` has it. Paths are those of a catalogue: from its root, unique and lasting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from tagkin.images import Failure
from tagkin.progress import Progress

__all__ = ["SERVERS", "ServerPhoto", "TagServer"]

SERVERS = {"immich": "Immich"}
"""The names of servers' collections, and of their programs."""


class ServerPhoto(NamedTuple):
    """A photograph on a server."""

    path: str
    version: bytes
    """Identifies its content; at least 16 bytes, such as a checksum of the original file."""
    tags: Sequence[str]
    """With | between levels."""
    taken: datetime | None = None
    """By the camera's clock."""
    camera: str = ""


class TagServer(Protocol):
    """A server. Every method may raise `ServerError`, which ends a run."""

    @property
    def name(self) -> str:
        """The name of the program, which is also the place of its tags."""

    @property
    def address(self) -> str:
        """Where it is."""

    def list_photographs(
        self, step: Progress, *, keep: bool
    ) -> tuple[list[ServerPhoto], list[Failure]]:
        """Return all photographs, and why others are left out.

        Without `keep`, nothing is stored on this machine.
        """

    def list_bursts(self) -> list[list[str]]:
        """Return the photographs that the server shows as one, as of the last listing."""

    def read_pixels(self, path: str) -> bytes:
        """Return a picture of a photograph; raise `UnreadableImage` if there is none."""

    def find_tags(self, path: str, *, to_write: bool = False) -> Mapping[str, str] | None:
        """Return the tags that a photograph has now, by their ids; None if it is gone.

        Raise `SidecarError` if it is another photograph now, or, with `to_write`, if the server
        would not keep tags.
        """

    def make_tags(self, tags: Sequence[str]) -> dict[str, str]:
        """Return the ids of tags, which are made if needed."""

    def add_tags(self, path: str, ids: Sequence[str]) -> dict[str, str]:
        """Add tags to a photograph; return the reasons of those that the server refused."""

    def remove_tags(self, path: str, ids: Sequence[str]) -> dict[str, str]:
        """Remove tags from a photograph; return the reasons of those that the server refused."""
