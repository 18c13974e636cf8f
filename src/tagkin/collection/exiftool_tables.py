"""Tables of metadata as exiftool writes them: ``exiftool -csv -r FOLDER > metadata.csv``.

Images are in the column ``SourceFile``. Their tags are in as many columns as there are kinds
of keywords in a photograph, perhaps with the kind before the name, as in ``IPTC:Keywords``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

__all__ = ["COLUMNS", "SOURCE", "tag_columns", "tags_of"]

SOURCE = "SourceFile"
COLUMNS = ("HierarchicalSubject", "Subject", "Keywords")
_SEPARATORS = (";", ",")  # a comma unless asked for something else; | is between levels


def tag_columns(header: Iterable[str], wanted: str | None = None) -> list[str]:
    """Those of the columns that have tags, or the one wanted if it is there."""
    if wanted is not None:
        return [name for name in header if name == wanted]
    by_kind = {name: name.rsplit(":", 1)[-1] for name in header}
    return [name for kind in COLUMNS for name in by_kind if by_kind[name] == kind]


def tags_of(
    cells: Mapping[str, str], columns: Sequence[str], separator: str | None = None
) -> list[str]:
    """The tags of an image. Of a tag with levels the last one is not a tag of its own as well."""
    words = [
        word.strip()
        for cell in map(cells.__getitem__, columns)
        for word in cell.split(separator or _separator(cell))
    ]
    last = {word.rsplit("|", 1)[1] for word in words if "|" in word}
    return [word for word in words if word and word not in last]


def _separator(cell: str) -> str:
    return next((mark for mark in _SEPARATORS if mark in cell), _SEPARATORS[-1])
