"""Numbers and names in sentences."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

__all__ = [
    "changes_text",
    "count",
    "edited_text",
    "is_by_name",
    "name_first",
    "percent",
    "quote_tags",
    "shares_text",
]

_NAMED = 3  # of a list, in a message
_CHANGES = {
    "added": "new",
    "moved": "moved or renamed",
    "copied": "copied",
    "edited": "edited",
    "retagged": "with other tags",
    "gone": "gone",
}


def count(n: int, one: str, several: str | None = None) -> str:
    """Return a number with its word; the default plural adds an s.

    >>> count(1, "tag"), count(1200, "tag"), count(0, "copy", "copies")
    ('1 tag', '1,200 tags', '0 copies')
    """
    return f"{n:,} {one if n == 1 else several or one + 's'}"


def name_first(names: Sequence[str], most: int = _NAMED) -> str:
    """Name the first few of a list.

    >>> name_first(["a", "b", "c", "d"]), name_first(["a"])
    ('a, b, c, …', 'a')
    """
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def quote_tags(tags: Sequence[str], most: int | None = None) -> str:
    """Write tags in quotes, so commas and blanks in them are clear; at most the first few.

    >>> print(quote_tags(["red", "Paris, France"]), quote_tags(["a", "b", "c"], 2))
    "red", "Paris, France" "a", "b" and 1 more
    """
    quoted = [json.dumps(str(tag), ensure_ascii=False) for tag in tags]
    more = f" and {len(quoted) - most:,} more" if most and len(quoted) > most else ""
    return ", ".join(quoted[:most]) + more


def changes_text(counts: Mapping[str, int]) -> str:
    """Write what a scan has found to be new or changed.

    >>> changes_text({"added": 1200, "gone": 3, "edited": 0})
    '1,200 new, 3 gone'
    """
    return ", ".join(
        f"{counts[name]:,} {word}" for name, word in _CHANGES.items() if counts.get(name)
    )


def edited_text(names: Sequence[str], suggesting: str) -> str:
    """Say which photographs have decisions that wait, and what keeps these; empty without any.

    >>> print(edited_text(["a.jpg", "b.jpg"], "`tagkin suggest` keeps"))
    2 photographs were edited or replaced: a.jpg, b.jpg. Decisions on the former picture wait. \
`tagkin suggest` keeps them if the new one shows the same; otherwise accept its tags again.
    """
    if not names:
        return ""
    were = count(len(names), "photograph was", "photographs were")
    return (
        f"{were} edited or replaced: {name_first(names)}. Decisions on the former picture wait. "
        f"{suggesting} them if the new one shows the same; otherwise accept its tags again."
    )


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share as a person reads it; a dash if it is unknown.

    >>> percent(0.345), percent(0.345, 1), percent(None)
    ('34 %', '34.5 %', '–')
    """
    return "–" if share is None or math.isnan(share) else f"{100 * share:.{digits}f} %"


def is_by_name(name_share: float | None, readout_share: float | None) -> bool:
    """Whether the tag's name contributes most to a suggestion; False if that is unknown.

    >>> is_by_name(0.5, 0.2), is_by_name(0.3, 0.5), is_by_name(None, None)
    (True, False, False)
    """
    if name_share is None or readout_share is None:
        return False
    return name_share >= max(readout_share, 1 - name_share - readout_share)


def shares_text(name_share: float | None, readout_share: float | None) -> str:
    """Say how much kin, the photograph and the tag's name contribute; empty if unknown.

    The largest part comes first.

    >>> shares_text(0.0, 0.25)
    '75 % by its kin, 25 % by the photograph itself'
    >>> shares_text(1.0, 0.0)
    "100 % by the meaning of the tag's name"
    >>> shares_text(0.875, 0.125)
    "88 % by the meaning of the tag's name, 12 % by the photograph itself"
    """
    if name_share is None or readout_share is None:
        return ""
    parts = [
        (1 - name_share - readout_share, "by its kin"),
        (readout_share, "by the photograph itself"),
        (name_share, "by the meaning of the tag's name"),
    ]
    parts.sort(key=lambda part: -part[0])
    return ", ".join(f"{percent(share)} {source}" for share, source in parts if share >= 0.005)
