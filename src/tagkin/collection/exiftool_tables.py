"""Tables of metadata from ``exiftool -csv -r FOLDER > metadata.csv``.

The column ``SourceFile`` names the images. Each kind of keyword has its own column, perhaps with
the kind before the name, as in ``IPTC:Keywords``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

__all__ = ["COLUMNS", "SOURCE", "tag_columns", "tags_of"]

SOURCE = "SourceFile"
COLUMNS = ("HierarchicalSubject", "Subject", "Keywords")
_SEPARATORS = (";", ",")  # exiftool's default is a comma; | separates levels


def tag_columns(header: Iterable[str], wanted: str | None = None) -> list[str]:
    """Return the columns that have tags, or the wanted column if it exists."""
    if wanted is not None:
        return [name for name in header if name == wanted]
    by_kind = {name: name.rsplit(":", 1)[-1] for name in header}
    return [name for kind in COLUMNS for name in by_kind if by_kind[name] == kind]


def tags_of(
    cells: Mapping[str, str], columns: Sequence[str], separator: str | None = None
) -> list[str]:
    """Return the tags of an image; the last level of a tag is not repeated as a tag."""
    words = [
        word.strip()
        for cell in map(cells.__getitem__, columns)
        for word in cell.split(separator or _separator(cell))
    ]
    last = {word.rsplit("|", 1)[1] for word in words if "|" in word}
    return [word for word in words if word and word not in last]


def _separator(cell: str) -> str:
    return next((mark for mark in _SEPARATORS if mark in cell), _SEPARATORS[-1])
