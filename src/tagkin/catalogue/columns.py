"""Values as columns store them: paths, JSON, evidence, former contents of files; damaged values."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Sequence
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

# There may be millions. Shares are stored in 1/65535. Each kin takes six bytes. Four optional bytes
# before the kin hold the shares of the tag's name and of the photograph itself.
_KIN = struct.Struct("<IH")
_SHARES = struct.Struct("<HH")
_ONE = 0xFFFF


class StoredEvidence(NamedTuple):
    """The evidence for a tag on a photograph, as its column stores it."""

    kin: Sequence[tuple[int, float]] = ()
    """Contents that support the tag, with their shares of the kin's support, from 0 to 1."""
    name_share: float | None = None
    """The share of the tag's name in the evidence; None if it was not stored."""
    readout_share: float | None = None
    """The share of the photograph itself. The kin have the remaining share."""


def pack_evidence(
    kin: Iterable[tuple[int, float]] = (),
    name_share: float | None = None,
    readout_share: float | None = None,
) -> bytes:
    """Return evidence as bytes; pass both shares or neither."""
    data = b"".join(_KIN.pack(content, _quantize(share)) for content, share in kin)
    if name_share is None or readout_share is None:
        return data
    return _SHARES.pack(_quantize(name_share), _quantize(readout_share)) + data


def unpack_evidence(data: bytes | None) -> StoredEvidence:
    """Invert `pack_evidence`; shares are exact to 1/65535."""
    data = data or b""
    has_shares = len(data) % _KIN.size == _SHARES.size
    start = _SHARES.size if has_shares else 0
    end = len(data) - (len(data) - start) % _KIN.size  # ignore an incomplete entry
    kin = [(content, share / _ONE) for content, share in _KIN.iter_unpack(data[start:end])]
    if not has_shares:
        return StoredEvidence(kin)
    name_share, readout_share = _SHARES.unpack_from(data)
    return StoredEvidence(kin, name_share / _ONE, readout_share / _ONE)


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
