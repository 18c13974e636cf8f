"""The fields of exported lines, with a check for each.

An export can come from anybody, so every field is checked before anything of its line is stored.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from tagkin.catalogue.columns import unpack_before
from tagkin.catalogue.target_paths import check_target_names, is_inside
from tagkin.collection.levels import tidy
from tagkin.errors import InvalidInput, StorageError

__all__ = ["LINES", "read_fields"]

Check = Callable[[Any], Any]
"""Converts a value, or raises a ValueError that completes "`field` must be ..."."""

_LONGEST_TAG = 2000  # characters
_LONGEST_TEXT = 10_000  # characters
_MOST_VALUES = 100_000  # in a list
_DEEPEST = 8  # levels of parameters
_HEX = re.compile("[0-9a-f]{64}")
_COMMAND = re.compile("[a-z]{1,20}( [a-z]{1,20})?")
_PROPERTY = re.compile("[A-Za-z]{1,20}:[A-Za-z]{1,40}")


def read_fields(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a line, checked and converted; its kind is in `LINES`.

    Raises
    ------
    InvalidInput
        Names the field and what it must be.
    """
    fields = {}
    for name, check in LINES[line["kind"]].items():
        try:
            fields[name] = check(line.get(name))
        except ValueError as error:
            raise InvalidInput(
                f"`{name}` must be {error}; found {_show_value(line.get(name))}"
            ) from None
    if line["kind"] == "write":
        _check_write(fields)
    if line["kind"] == "decision" and fields["tag"] is None and fields["verdict"] != -1:
        raise InvalidInput("`verdict` must be -1 if `tag` is null: the photograph is finished")
    return fields


def _check_write(fields: dict[str, Any]) -> None:
    try:
        check_target_names(fields["path"], fields["file"], fields["backup"])
    except ValueError as error:
        raise InvalidInput(f"`file` must be {error}; found {_show_value(fields['file'])}") from None
    if fields["backup"] is not None:
        before = unpack_before(fields["before"]) or b""
        if not _HEX.fullmatch(before.decode("latin-1")):
            raise InvalidInput("`before` must be the SHA-256 of the photograph's backup")


def _show_value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


# --- checks ------------------------------------------------------------------------------


def _optional(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def _or_empty(check: Check) -> Check:
    return lambda value: [] if value is None else check(value)


def _one_of(*allowed: Any) -> Check:
    def check(value: Any) -> Any:
        if not any(type(value) is type(option) and value == option for option in allowed):
            raise ValueError(" or ".join(map(repr, allowed)))
        return value

    return check


def _list_of(check: Check) -> Check:
    def check_all(value: Any) -> list[Any]:
        if not isinstance(value, list) or len(value) > _MOST_VALUES:
            raise ValueError(f"a list of at most {_MOST_VALUES:,} values")
        try:
            return [check(item) for item in value]
        except ValueError as error:
            raise ValueError(f"a list, each of its values {error}") from None

    return check_all


def _pair(first: Check, second: Check) -> Check:
    def check(value: Any) -> tuple[Any, Any]:
        if not isinstance(value, list) or len(value) != 2:
            raise ValueError("a pair")
        return first(value[0]), second(value[1])

    return check


def _string(expected: str, is_valid: Callable[[str], object]) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, str) or not is_valid(value):
            raise ValueError(expected)
        return value

    return check


def _number(value: Any) -> int:
    if type(value) is not int or not 0 < value < 2**63:
        raise ValueError("a positive whole number")
    return value


def _share(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise ValueError("a number from 0 to 1")
    return float(value)


def _is_unicode(text: str, errors: str = "strict") -> bool:
    try:
        text.encode("utf-8", errors)
    except UnicodeEncodeError:
        return False
    return True


def _moment(value: Any) -> str:
    """Return a time as the catalogue stores it: later times sort after earlier times."""
    try:
        moment = datetime.datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            return moment.astimezone(datetime.UTC).isoformat(timespec="microseconds")
    except (OverflowError, TypeError, ValueError):
        pass
    raise ValueError("a date and time with a UTC offset (ISO 8601)")


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not _is_plain(value, _DEEPEST):
        raise ValueError(f"an object of finite values, at most {_DEEPEST} levels deep")
    return value


def _is_plain(value: Any, levels: int) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return levels > 0 and all(_is_plain(item, levels - 1) for item in inside)
    return True


def _compressed(value: Any) -> bytes:
    """Return the compressed bytes, which are stored unchanged."""
    expected = "a file's content, compressed by zlib, in base64"
    if not isinstance(value, str):
        raise ValueError(expected)
    try:
        data = base64.b64decode(value, validate=True)
        unpack_before(data)
    except (binascii.Error, StorageError, ValueError):
        raise ValueError(expected) from None
    return data


_text = _string(
    f"text of at most {_LONGEST_TEXT:,} characters",
    lambda text: len(text) <= _LONGEST_TEXT and _is_unicode(text),
)
_tag = _string(
    f"a tag of at most {_LONGEST_TAG:,} characters",
    lambda tag: len(tag) <= _LONGEST_TAG and _is_unicode(tag) and tidy(tag),
)
_path = _string(  # which need not be UTF-8
    "a path inside the collection",
    lambda path: is_inside(path) and _is_unicode(path, "surrogateescape"),
)
_hex = _string("a SHA-256 in hexadecimal", _HEX.fullmatch)


def _digest(value: Any) -> bytes:
    return bytes.fromhex(_hex(value))


_values = _list_of(_pair(_string("a property such as dc:subject", _PROPERTY.fullmatch), _text))

LINES: dict[str, dict[str, Check]] = {
    "run": {
        "id": _number,
        "what": _string("a command", _COMMAND.fullmatch),
        "started_at": _moment,
        "ended_at": _optional(_moment),
        "model": _optional(_text),
        "parameters": _mapping,
        "outcome": _mapping,
        "undoes": _optional(_number),
    },
    "tag": {
        "tag": _tag,
        "same_as": _optional(_tag),
        "forgotten": _one_of(True, False),
        "hidden": _optional(_one_of(True, False)),
    },
    "decision": {
        "run": _number,
        "content": _digest,
        "tag": _optional(_tag),
        "verdict": _one_of(1, -1),
        "made_at": _moment,
        "suggested_by": _optional(_number),
        "confidence": _optional(_share),
        "kin": _list_of(_pair(_digest, _share)),
        "name_share": _optional(_share),
        "readout_share": _optional(_share),
        "note": _optional(_text),
        "taken_back_by": _optional(_number),
    },
    "write": {
        "run": _number,
        "path": _path,
        "file": _path,
        "tags": _list_of(_tag),
        "added": _values,
        "removed_tags": _or_empty(_list_of(_tag)),
        "removed": _or_empty(_values),
        "before": _optional(_compressed),
        "after": _digest,
        "backup": _optional(_path),
        "state": _one_of("planned", "done", "failed", "undone"),
        "undone_by": _optional(_number),
        "note": _optional(_text),
        "modified": _optional(_number),
    },
}
"""Fields of each kind of line, with what they must be. Other fields are ignored."""
