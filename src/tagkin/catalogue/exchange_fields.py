"""The fields of exported lines, with a check for each.

An export can come from anybody, so every field is checked before anything of its line is stored.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TypeVar

from tagkin.catalogue.target_paths import is_inside
from tagkin.collection.levels import tidy
from tagkin.errors import InvalidInput

__all__ = ["DecisionLine", "IncompleteLine", "TagLine", "read_line"]

T = TypeVar("T")
S = TypeVar("S")
Check = Callable[[object], T]
"""Converts a value, or raises a ValueError that completes "`field` must be ..."."""

_LONGEST_TAG = 2000  # characters
_LONGEST_TEXT = 10_000  # characters
_MOST_VALUES = 100_000  # in a list
_HEX = re.compile("[0-9a-f]{64}")


# --- checks ------------------------------------------------------------------------------


def _optional(check: Check[T]) -> Check[T | None]:
    return lambda value: None if value is None else check(value)


def _one_of(*allowed: T) -> Check[T]:
    def check(value: object) -> T:
        for option in allowed:
            if type(value) is type(option) and value == option:
                return option
        raise ValueError(" or ".join(map(repr, allowed)))

    return check


def _list_of(check: Check[T]) -> Check[tuple[T, ...]]:
    def check_all(value: object) -> tuple[T, ...]:
        if not isinstance(value, list) or len(value) > _MOST_VALUES:
            raise ValueError(f"a list of at most {_MOST_VALUES:,} values")
        try:
            return tuple(check(item) for item in value)
        except ValueError as error:
            raise ValueError(f"a list, each of its values {error}") from None

    return check_all


def _pair(first: Check[T], second: Check[S]) -> Check[tuple[T, S]]:
    def check(value: object) -> tuple[T, S]:
        if not isinstance(value, list) or len(value) != 2:
            raise ValueError("a pair")
        return first(value[0]), second(value[1])

    return check


def _string(expected: str, is_valid: Callable[[str], object]) -> Check[str]:
    def check(value: object) -> str:
        if not isinstance(value, str) or not is_valid(value):
            raise ValueError(expected)
        return value

    return check


def _share(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError("a number from 0 to 1")
    return float(value)


def _is_unicode(text: str, errors: str = "strict") -> bool:
    try:
        text.encode("utf-8", errors)
    except UnicodeEncodeError:
        return False
    return True


def _moment(value: object) -> str:
    """Return a time as the catalogue stores it: later times sort after earlier times."""
    try:
        moment = datetime.datetime.fromisoformat(_text(value))
        if moment.tzinfo is not None:
            return moment.astimezone(datetime.UTC).isoformat(timespec="microseconds")
    except (OverflowError, TypeError, ValueError):
        pass
    raise ValueError("a date and time with a UTC offset (ISO 8601)")


_text = _string(
    f"text of at most {_LONGEST_TEXT:,} characters",
    lambda text: len(text) <= _LONGEST_TEXT and _is_unicode(text),
)
_tag = _string(
    f"a tag of at most {_LONGEST_TAG:,} characters",
    lambda tag: len(tag) <= _LONGEST_TAG and _is_unicode(tag) and tidy(tag),
)
_folder = _string(  # which need not be UTF-8
    "a folder inside the collection",
    lambda path: not path or (is_inside(path) and _is_unicode(path, "surrogateescape")),
)
_hex = _string("a SHA-256 in hexadecimal", _HEX.fullmatch)


def _digest(value: object) -> bytes:
    return bytes.fromhex(_hex(value))


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
    forgotten: bool = _checked(_one_of(True, False))
    hidden: bool = _checked(_one_of(True, False))
    finished: bool = _checked(_one_of(True, False))


@dataclass(frozen=True)
class IncompleteLine:
    """A folder whose tags in files are incomplete."""

    folder: str = _checked(_folder)


@dataclass(frozen=True)
class DecisionLine:
    """A decision on a tag of a photograph; without a tag, the photograph is finished."""

    content: bytes = _checked(_digest)
    tag: str | None = _checked(_optional(_tag))
    verdict: int = _checked(_one_of(1, -1))
    made_at: str = _checked(_moment)
    confidence: float | None = _checked(_optional(_share))
    kin: tuple[tuple[bytes, float], ...] = _checked(_list_of(_pair(_digest, _share)))
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
