"""Tags by file name, as tag files and the catalogues of other programs have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tagkin.errors import InvalidInput

__all__ = ["TagTable"]


@dataclass(frozen=True)
class TagTable:
    """Images by file name, and their tags.

    Tags are stripped; blank and repeated tags of an image are dropped. So every table can be
    written in every format and read back the same.
    """

    file_names: Sequence[str]
    tags: Sequence[Sequence[str]]
    """The tags of each file."""
    roots: Sequence[str] = ()
    """Folders that the names begin with, as the catalogue of another program has them."""
    synonyms: Mapping[str, str] = field(default_factory=dict)
    """Synonym → tag, as the catalogue of another program has them."""

    def __post_init__(self) -> None:
        if len(self.file_names) != len(self.tags):
            raise InvalidInput(
                f"Found {len(self.file_names)} file names and {len(self.tags)} lists of tags."
            )
        for name, row in zip(self.file_names, self.tags, strict=True):
            if not isinstance(name, str) or not name:
                raise InvalidInput(f"A file name must be a non-empty text; found {name!r}.")
            if isinstance(row, str) or not all(isinstance(tag, str) for tag in row or ()):
                raise InvalidInput(f"The tags of {name!r} must be a list of texts; found {row!r}.")
        twice = [name for name, n in Counter(self.file_names).items() if n > 1]
        if twice:
            raise InvalidInput(f"The file name {twice[0]!r} occurs twice. Combine its tags.")
        tidy = [[tag.strip() for tag in row or ()] for row in self.tags]
        object.__setattr__(self, "file_names", list(self.file_names))
        object.__setattr__(self, "tags", [[t for t in dict.fromkeys(row) if t] for row in tidy])

    def __len__(self) -> int:
        return len(self.file_names)
