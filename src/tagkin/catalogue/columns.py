"""Values as columns store them: paths, JSON, evidence, former contents of files; damaged values."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from tagkin.collection.xmp import MAX_BYTES
from tagkin.errors import StorageError

__all__ = [
    "REBUILD",
    "StoredEvidence",
    "damage_error",
    "find_damage",
    "pack_evidence",
    "pack_json",
    "read_json",
    "sql_text",
    "unpack_before",
    "unpack_evidence",
]

REBUILD = (
    "Put the file aside and scan again: your tags are in your files; decisions come back with "
    "`tagkin import`, if you exported them."
)
"""The remedy for a damaged catalogue."""

T = TypeVar("T", dict[str, Any], list[Any])  # JSON holds values of any type


def damage_error(reason: str) -> StorageError:
    """Return the error for a value that tagkin cannot have written."""
    return StorageError(
        f"The catalogue is damaged: a stored value is invalid ({reason}). {REBUILD}"
    )


# --- text --------------------------------------------------------------------------------


def sql_text(text: str) -> str | bytes:
    """Return a path for ``CAST(? AS TEXT)``; a path that is not UTF-8 becomes its bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return os.fsencode(text)
    return text


def pack_json(value: Sequence[object]) -> bytes:
    """Return a list as JSON for ``CAST(? AS TEXT)``; paths in it need not be UTF-8."""
    return json.dumps(list(value), ensure_ascii=False).encode("utf-8", "surrogateescape")


def read_json(text: str | bytes, kind: type[T]) -> T:
    """Parse a JSON column that holds a ``dict`` or a ``list``.

    Raises
    ------
    StorageError
        If it holds something else: SQLite does not notice changed bytes inside text.
    """
    try:
        value = json.loads(text)
    except (RecursionError, TypeError, ValueError) as error:
        raise damage_error(str(error)) from error
    if not isinstance(value, kind):
        raise damage_error(f"a {type(value).__name__} instead of a {kind.__name__}")
    return value


# --- evidence ----------------------------------------------------------------------------

# There may be millions. Shares are stored in 1/65535. Each kin takes six bytes. Before the kin,
# there may be the shares of the first two inputs, or a byte and the shares of all, as the length
# tells.
_KIN = struct.Struct("<IH")
_INPUTS = ("name", "readout", "time", "place", "folder")
_NO_SHARES, _FEW, _ALL = map(struct.Struct, ("<", "<HH", "<xHHHHH"))
_ONE = 0xFFFF


class StoredEvidence(NamedTuple):
    """The evidence for a tag on a photograph, as its column stores it."""

    kin: Sequence[tuple[int, float]] = ()
    """Contents that support the tag, with their shares of the kin's support, from 0 to 1."""
    shares: Mapping[str, float] = MappingProxyType({})
    """The shares of the tag's "name", of the "readout" of the photograph itself, and of other
    photographs by "time", "place" and "folder". The kin have the remaining share. Empty if they
    were not stored."""


def pack_evidence(
    kin: Iterable[tuple[int, float]] = (), shares: Mapping[str, float] = MappingProxyType({})
) -> bytes:
    """Return evidence as bytes; missing shares are 0, unless all are."""
    data = b"".join(_KIN.pack(content, _quantize(share)) for content, share in kin)
    if not shares:
        return data
    numbers = [_quantize(shares.get(name, 0.0)) for name in _INPUTS]
    return (_ALL.pack(*numbers) if any(numbers[2:]) else _FEW.pack(*numbers[:2])) + data


def unpack_evidence(data: bytes | None) -> StoredEvidence:
    """Invert `pack_evidence`; shares are exact to 1/65535."""
    data = data or b""
    forms = {form.size % _KIN.size: form for form in (_FEW, _ALL)}
    form = forms.get(len(data) % _KIN.size, _NO_SHARES)
    if len(data) < form.size:
        form = _NO_SHARES
    end = len(data) - (len(data) - form.size) % _KIN.size  # ignore an incomplete entry
    kin = [(content, share / _ONE) for content, share in _KIN.iter_unpack(data[form.size : end])]
    numbers = form.unpack_from(data)
    return StoredEvidence(kin, {n: x / _ONE for n, x in zip(_INPUTS, numbers, strict=False)})


def _quantize(share: float) -> int:
    return round(_ONE * min(max(share, 0.0), 1.0))


# --- former contents of files ------------------------------------------------------------


def unpack_before(packed: bytes) -> bytes:
    """Decompress the former content of a file.

    Raises
    ------
    StorageError
        If it is not compressed, or larger than any sidecar.
    """
    unpacking = zlib.decompressobj()
    try:
        before = unpacking.decompress(packed, MAX_BYTES + 1)
    except (TypeError, zlib.error) as error:
        raise damage_error(str(error)) from error
    if len(before) > MAX_BYTES or not unpacking.eof or unpacking.unused_data:
        raise damage_error("the former content of a file is too large or incomplete")
    return before


# --- damage ------------------------------------------------------------------------------


_TYPES = {
    "INTEGER": "'integer'",
    "REAL": "'real', 'integer'",
    "TEXT": "'text'",
    "BLOB": "'blob'",
}
_JSON = {
    *("settings", "parameters", "outcome", "places", "lists", "stale"),
    *("tags", "added", "removed", "removed_tags"),
}
_TIMES = {"started_at", "ended_at", "made_at", "taken", "applied_at"}


def find_damage(connection: sqlite3.Connection) -> str | None:
    """Return where a value has a wrong type or form, breaks a rule or refers to nothing.

    None if there is no such value.
    """
    ((problem,), *_) = connection.execute("PRAGMA quick_check(1)").fetchall()
    if problem != "ok":
        return str(problem)
    if (broken := connection.execute("PRAGMA foreign_key_check").fetchone()) is not None:
        return f"a reference in the table {broken[0]} to nothing in the table {broken[2]}"
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    ).fetchall()
    for (table,) in tables:
        for _, column, kind, *_ in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
            wrong = f"typeof({column}) NOT IN ({_TYPES.get(kind, 'typeof(' + column + ')')})"
            if column in _JSON:
                wrong += f" OR NOT json_valid(CAST({column} AS TEXT))"
            elif column in _TIMES:
                wrong += f" OR datetime({column}) IS NULL"
            query = f'SELECT 1 FROM "{table}" WHERE {column} IS NOT NULL AND ({wrong}) LIMIT 1'
            if connection.execute(query).fetchone() is not None:
                return f"in the column {column} of the table {table}"
    return None
