"""The fields of exported lines, with a check for each.

An export can come from anybody, so every field is checked before anything of its line is stored.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TypeGuard, TypeVar

from tagkin.catalogue.target_paths import is_inside
from tagkin.collection.levels import tidy
from tagkin.errors import InvalidInput

__all__ = ["DecisionLine", "IncompleteLine", "TagLine", "read_line"]

T = TypeVar("T")
Check = Callable[[object], T]
"""Converts a value, or raises a ValueError that completes "`field` must be ..."."""

_LONGEST_TAG = 2000  # characters
_LONGEST_TEXT = 10_000  # characters
_MOST_KIN = 100_000
_HEX = re.compile("[0-9a-f]{64}")


# --- checks ------------------------------------------------------------------------------


def _optional(check: Check[T]) -> Check[T | None]:
    return lambda value: None if value is None else check(value)


def _is_text(value: object, longest: int, errors: str = "strict") -> TypeGuard[str]:
    if not isinstance(value, str) or len(value) > longest:
        return False
    try:
        value.encode("utf-8", errors)
    except UnicodeEncodeError:
        return False
    return True


def _text(value: object) -> str:
    if not _is_text(value, _LONGEST_TEXT):
        raise ValueError(f"text of at most {_LONGEST_TEXT:,} characters")
    return value


def _tag(value: object) -> str:
    if not _is_text(value, _LONGEST_TAG) or not tidy(value):
        raise ValueError(f"a tag of at most {_LONGEST_TAG:,} characters")
    return value


def _folder(value: object) -> str:
    """Check a folder from the root, which need not be UTF-8."""
    if not _is_text(value, _LONGEST_TEXT, "surrogateescape") or (value and not is_inside(value)):
        raise ValueError("a folder inside the collection")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _verdict(value: object) -> int:
    if type(value) is not int or value not in (1, -1):
        raise ValueError("1 or -1")
    return value


def _share(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError("a number from 0 to 1")
    return float(value)


def _digest(value: object) -> bytes:
    if not isinstance(value, str) or not _HEX.fullmatch(value):
        raise ValueError("a SHA-256 in hexadecimal")
    return bytes.fromhex(value)


def _kin(value: object) -> tuple[tuple[bytes, float], ...]:
    try:
        if isinstance(value, list) and len(value) <= _MOST_KIN:
            return tuple((_digest(digest), _share(share)) for digest, share in value)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"a list of at most {_MOST_KIN:,} pairs of a SHA-256 and a share")


def _moment(value: object) -> str:
    """Return a time as the catalogue stores it: later times sort after earlier times."""
    try:
        moment = datetime.datetime.fromisoformat(_text(value))
        if moment.tzinfo is not None:
            return moment.astimezone(datetime.UTC).isoformat(timespec="microseconds")
    except (OverflowError, ValueError):
        pass
    raise ValueError("a date and time with a UTC offset (ISO 8601)")


# --- lines -------------------------------------------------------------------------------


def _checked(check: Check[T]) -> T:
    """Declare a field of a line with its check."""
    declared: T = field(metadata={"check": check})
    return declared


@dataclass(frozen=True)
class TagLine:
    """An edited or finished tag."""

    tag: str = _checked(_tag)
    same_as: str | None = _checked(_optional(_tag))
    forgotten: bool = _checked(_flag)
    hidden: bool = _checked(_flag)
    finished: bool = _checked(_flag)


@dataclass(frozen=True)
class IncompleteLine:
    """A folder whose tags in files are incomplete."""

    folder: str = _checked(_folder)


@dataclass(frozen=True)
class DecisionLine:
    """A decision on a tag of a photograph; without a tag, the photograph is finished."""

    content: bytes = _checked(_digest)
    tag: str | None = _checked(_optional(_tag))
    verdict: int = _checked(_verdict)
    made_at: str = _checked(_moment)
    confidence: float | None = _checked(_optional(_share))
    kin: tuple[tuple[bytes, float], ...] = _checked(_kin)
    name_share: float | None = _checked(_optional(_share))
    readout_share: float | None = _checked(_optional(_share))
    note: str | None = _checked(_optional(_text))


Line = TagLine | IncompleteLine | DecisionLine

_LINES: dict[str, type[Line]] = {
    "tag": TagLine,
    "incomplete": IncompleteLine,
    "decision": DecisionLine,
}
"""The records of each kind of line. Other fields are ignored."""


def read_line(plain: Mapping[str, object]) -> Line | None:
    """Return the record of a line, checked and converted, or None if its kind is unknown.

    Raises
    ------
    InvalidInput
        Names the field and what it must be.
    """
    if (kind := str(plain["kind"])) not in _LINES:
        return None
    values = {}
    for column in fields(_LINES[kind]):
        value = plain.get(column.name)
        try:
            values[column.name] = column.metadata["check"](value)
        except ValueError as error:
            raise InvalidInput(
                f"`{column.name}` must be {error}; found {_show_value(value)}"
            ) from None
    line = _LINES[kind](**values)
    if isinstance(line, DecisionLine) and line.tag is None and line.verdict != -1:
        raise InvalidInput("`verdict` must be -1 if `tag` is null: the photograph is finished")
    return line


def _show_value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
