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
    "main_input",
    "name_first",
    "near_text",
    "percent",
    "quote_tags",
    "shares_of",
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


_INPUTS = {
    "kin": "by its kin",
    "readout": "by the photograph itself",
    "name": "by the meaning of the tag's name",
    "time": "by photographs taken at about the same time",
    "place": "by photographs taken at about the same place",
    "folder": "by photographs in the same folder or near it",
}
"""What a suggestion comes from."""


def shares_of(suggestion: object) -> dict[str, float]:
    """Return the shares of all inputs but kin in a suggestion, such as its `name_share`."""
    shares = {name: getattr(suggestion, f"{name}_share", None) for name in _INPUTS}
    return {name: float(share) for name, share in shares.items() if share is not None}


def main_input(shares: Mapping[str, float]) -> str:
    """Return the input that contributes most to a suggestion; empty if that is unknown.

    It is "picture" for kin and for the photograph itself. Of equal ones, a name comes first.

    >>> main_input({"name": 0.5, "readout": 0.2}), main_input({"name": 0.3, "readout": 0.5})
    ('name', 'picture')
    >>> main_input({"name": 0.3, "readout": 0.1, "time": 0.5}), main_input({})
    ('time', '')
    """
    if not shares:
        return ""
    parts = _with_kin(shares)
    largest = max(parts, key=lambda name: (parts[name], name == "name"))
    return "picture" if largest in ("kin", "readout") else largest


def is_by_name(shares: Mapping[str, float]) -> bool:
    """Whether the tag's name contributes most to a suggestion; False if that is unknown.

    >>> is_by_name({"name": 0.5, "readout": 0.2}), is_by_name({"name": 0.3, "readout": 0.5})
    (True, False)
    """
    return main_input(shares) == "name"


def shares_text(shares: Mapping[str, float]) -> str:
    """Say how much each input contributes to a suggestion; empty if unknown.

    The largest part comes first. The kin have the remaining share.

    >>> shares_text({"name": 0.0, "readout": 0.25})
    '75 % by its kin, 25 % by the photograph itself'
    >>> shares_text({"name": 1.0, "readout": 0.0})
    "100 % by the meaning of the tag's name"
    >>> shares_text({"name": 0.125, "readout": 0.0, "time": 0.875})
    "88 % by photographs taken at about the same time, 12 % by the meaning of the tag's name"
    """
    if not shares:
        return ""
    parts = sorted(_with_kin(shares).items(), key=lambda part: -part[1])
    return ", ".join(f"{percent(share)} {_INPUTS[name]}" for name, share in parts if share >= 0.005)


def _with_kin(shares: Mapping[str, float]) -> dict[str, float]:
    return {"kin": 1 - sum(shares.values()), **shares}


def near_text(n_with: int, n: int) -> str:
    """Say how many tagged photographs of about the same time have a tag; empty if none has it.

    >>> near_text(14, 16)
    '14 of 16 tagged photographs taken within two hours have it'
    >>> near_text(1, 1)
    'the only tagged photograph taken within two hours has it'
    """
    if not n_with:
        return ""
    if n == 1:
        return "the only tagged photograph taken within two hours has it"
    return f"{n_with:,} of {n:,} tagged photographs taken within two hours have it"
