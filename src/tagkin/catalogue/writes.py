"""Every write to a file, with what stood there before.

A write is planned in the catalogue before the file is touched, and marked as done after. Whatever
happens in between, the digests tell which of the two the file holds.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.database import sql_text
from tagkin.catalogue.filters import Filters
from tagkin.catalogue.texts import damaged, from_text
from tagkin.collection.xmp import MAX_BYTES

__all__ = [
    "PastWrite",
    "ToWrite",
    "changed_write",
    "end_write",
    "later_writes",
    "plan_write",
    "tags_to_write",
    "undone_write",
    "unfinished_writes",
    "unpack_before",
    "vanished",
    "writes_of",
]

_COLUMNS = "id, run, photograph, file, tags, added, before, after, backup, state, note, modified"
# Whether a write went into the photograph, or into a file that lies beside it where it is now.
_WITH_IT = (
    "(w.backup IS NOT NULL OR substr(w.file, 1, length(w.file) - 4) = p.path "
    "OR (substr(w.file, 1, length(w.file) - 4) || '.' = substr(p.path, 1, length(w.file) - 3) "
    "AND instr(substr(p.path, length(w.file) - 2), '.') = 0 "
    "AND instr(substr(p.path, length(w.file) - 2), '/') = 0))"
)


@dataclass(frozen=True)
class ToWrite:
    """A photograph whose files lack tags that were accepted."""

    photograph: int
    path: str
    """From the root."""
    tags: Sequence[str]


@dataclass(frozen=True)
class PastWrite:
    """A write in the catalogue."""

    id: int
    run: int
    photograph: int
    file: str
    """From the root."""
    tags: Sequence[str]
    """The tags that it added."""
    added: Sequence[tuple[str, str]]
    """What was put in for them: property and value."""
    before: bytes | None
    """What stood there; None where there was no file."""
    after: str
    """SHA-256 of what was written."""
    backup: str | None
    """A copy of what stood there that another program keeps."""
    state: str
    """planned, done, failed or undone."""
    note: str | None
    modified: int | None = None
    """When the sidecar that stood there was modified, in nanoseconds."""


def tags_to_write(catalogue: Catalogue, filters: Filters | None = None) -> list[ToWrite]:
    """Accepted tags that the files of a photograph do not carry, by photograph.

    Copies of a photograph get the tags each, unless filters say which. A tag that was written and
    taken out again by somebody is not written again, unless the photograph was moved away from it.
    """
    condition, values = (filters or Filters()).conditions(catalogue, "d")
    condition = condition.replace("d.run", "d.suggested_by")
    place, more = (filters or Filters()).places("p")
    rows = catalogue.rows(
        "SELECT p.id, p.path, t.name FROM decisions d JOIN tags t ON t.id = d.tag "
        "JOIN photographs p ON p.content = d.content AND p.gone IS NULL "
        f"WHERE d.holds AND d.verdict = 1 AND {condition} AND {place} AND NOT EXISTS "
        "(SELECT 1 FROM found f JOIN tags o ON o.id = f.tag "
        "WHERE f.photograph = p.id AND o.key = t.key) "
        "AND NOT EXISTS (SELECT 1 FROM writes w, json_each(w.tags) one "
        f"WHERE w.photograph = p.id AND w.state = 'done' AND one.value = t.name AND {_WITH_IT}) "
        "ORDER BY p.path, d.id",
        values + more,
    )
    found: dict[tuple[int, str], list[str]] = {}
    for photograph, path, name in rows:
        found.setdefault((photograph, path), []).append(name)
    return [ToWrite(*key, tags) for key, tags in found.items()]


def plan_write(
    catalogue: Catalogue,
    run: int,
    photograph: int,
    file: str,
    tags: Sequence[str],
    *,
    added: Sequence[tuple[str, str]],
    before: bytes | None,
    after: str,
    backup: str | None = None,
    modified: int | None = None,
) -> int:
    """Keep what stands in a file, before it is written; the number of the write.

    It is on the disk when this returns. The parameters are those of `PastWrite`.
    """
    with catalogue.transaction() as connection:
        cursor = connection.execute(
            "INSERT INTO writes (run, photograph, file, tags, added, before, after, backup, "
            "modified, state) "
            "VALUES (?, ?, CAST(? AS TEXT), ?, ?, ?, ?, CAST(? AS TEXT), ?, 'planned')",
            (
                run,
                photograph,
                sql_text(file),
                json.dumps(list(tags), ensure_ascii=False),
                json.dumps([list(pair) for pair in added], ensure_ascii=False),
                _pack_before(before),
                bytes.fromhex(after),
                None if backup is None else sql_text(backup),
                modified,
            ),
        )
    return int(cursor.lastrowid or 0)


def end_write(catalogue: Catalogue, number: int, state: str, note: str | None = None) -> None:
    """Mark a planned write as "done" or "failed"."""
    with catalogue.transaction() as connection:
        connection.execute(
            "UPDATE writes SET state = ?, note = ? WHERE id = ?", (state, note, number)
        )


def undone_write(catalogue: Catalogue, number: int, run: int, note: str | None = None) -> None:
    """Mark a write as undone by a run."""
    with catalogue.transaction() as connection:
        connection.execute(
            "UPDATE writes SET state = 'undone', undone_by = ?, note = ? WHERE id = ?",
            (run, note, number),
        )


def vanished(catalogue: Catalogue, write: PastWrite) -> str | None:
    """The photograph of a write, where neither it nor the file is there and no scan has said so.

    It was moved, or the drive is not connected: what stands in the file nobody knows.
    """
    row = catalogue.row(
        "SELECT path FROM photographs WHERE id = ? AND gone IS NULL", (write.photograph,)
    )
    if row is None or os.path.lexists(catalogue.absolute(write.file)):
        return None
    photograph = catalogue.absolute(row[0])
    return None if os.path.lexists(photograph) else photograph


def writes_of(catalogue: Catalogue, run: int) -> list[PastWrite]:
    """The writes of a run, in the order in which they were planned."""
    return _past(catalogue, "run = ? ORDER BY id", (run,))


def later_writes(catalogue: Catalogue, write: PastWrite) -> list[PastWrite]:
    """Writes to the same file that came after one and still stand."""
    condition = "file = CAST(? AS TEXT) AND id > ? AND state = 'done' ORDER BY id"
    return _past(catalogue, condition, (sql_text(write.file), write.id))


def changed_write(
    catalogue: Catalogue,
    number: int,
    before: bytes | None,
    after: str,
    backup: str | None = None,
    modified: int | None = None,
) -> None:
    """Update a write after an earlier one was undone."""
    with catalogue.transaction() as connection:
        connection.execute(
            "UPDATE writes SET before = ?, after = ?, backup = CAST(? AS TEXT), modified = ? "
            "WHERE id = ?",
            (
                _pack_before(before),
                bytes.fromhex(after),
                None if backup is None else sql_text(backup),
                modified,
                number,
            ),
        )


def unfinished_writes(catalogue: Catalogue) -> list[PastWrite]:
    """Writes that were planned and never marked: the run was killed."""
    return _past(catalogue, "state = 'planned' ORDER BY id", ())


def _past(catalogue: Catalogue, condition: str, values: tuple[Any, ...]) -> list[PastWrite]:
    rows = catalogue.rows(f"SELECT {_COLUMNS} FROM writes WHERE {condition}", values)
    try:
        return [_past_write(*row) for row in rows]
    except (AttributeError, TypeError, ValueError) as error:
        raise damaged(str(error)) from error


def _past_write(*row: Any) -> PastWrite:
    id, run, photograph, file, tags, added, before, after, backup, state, note, modified = row
    return PastWrite(
        id,
        run,
        photograph,
        _as_text(file),
        [_as_text(tag) for tag in from_text(tags, list)],
        [(_as_text(name), _as_text(value)) for name, value in from_text(added, list)],
        unpack_before(before),
        after.hex(),
        None if backup is None else _as_text(backup),
        state,
        note,
        _as_time(modified),
    )


def _as_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a {type(value).__name__} where text was kept")
    return value


def _as_time(value: Any) -> int | None:
    if value is not None and not isinstance(value, int):
        raise TypeError(f"a {type(value).__name__} where a time was kept")
    return value


def _pack_before(before: bytes | None) -> bytes | None:
    return None if before is None else zlib.compress(before)


def unpack_before(packed: bytes | None) -> bytes | None:
    """Decompress what stood in a file; None where there was no file.

    Raises
    ------
    StorageError
        If it is not compressed, or larger than any sidecar.
    """
    if packed is None:
        return None
    unpacking = zlib.decompressobj()
    try:
        before = unpacking.decompress(packed, MAX_BYTES + 1)
    except (TypeError, zlib.error) as error:
        raise damaged(str(error)) from error
    if len(before) > MAX_BYTES or not unpacking.eof or unpacking.unused_data:
        raise damaged("the former content of a file is too large or incomplete")
    return before
