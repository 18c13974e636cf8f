"""Tags by file name, as tag files and the catalogues of other programs have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["TagTable"]


@dataclass(frozen=True)
class TagTable:
    """Images by file name, and their tags.

    Tags are stripped; blank and repeated tags of an image are dropped.
    """

    file_names: Sequence[str]
    tags: Sequence[Sequence[str]]
    """The tags of each file."""
    roots: Sequence[str] = ()
    """Folders that the names begin with, as the catalogue of another program has them."""
    synonyms: Mapping[str, str] = field(default_factory=dict)
    """Synonym → tag, as the catalogue of another program has them."""

    def __post_init__(self) -> None:
        tidy = ([tag.strip() for tag in row] for row in self.tags)
        object.__setattr__(self, "tags", [[t for t in dict.fromkeys(row) if t] for row in tidy])

    def __len__(self) -> int:
        return len(self.file_names)
