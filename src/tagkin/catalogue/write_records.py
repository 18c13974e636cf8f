"""Records of writes to files, with the former content of each file.

A write is planned in the catalogue before the file is touched, and marked as done afterwards. In
between, the digests tell whether the file was written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tagkin.catalogue.columns import damaged, pack_before, read_json, sql_text, unpack_before
from tagkin.catalogue.database import Part
from tagkin.catalogue.filters import Filters
from tagkin.catalogue.target_paths import check_target_names, target_path
from tagkin.errors import SidecarError

__all__ = ["PastWrite", "ToWrite", "Writes"]

_COLUMNS = "id, run, photograph, file, tags, added, before, after, backup, state, note, modified"
# Whether a write went into the photograph, or into a file beside its current path.
_IS_BESIDE = (
    "(w.backup IS NOT NULL OR substr(w.file, 1, length(w.file) - 4) = p.path "
    "OR (substr(w.file, 1, length(w.file) - 4) || '.' = substr(p.path, 1, length(w.file) - 3) "
    "AND instr(substr(p.path, length(w.file) - 2), '.') = 0 "
    "AND instr(substr(p.path, length(w.file) - 2), '/') = 0))"
)


@dataclass(frozen=True)
class ToWrite:
    """A photograph whose files lack accepted tags."""

    photograph: int
    path: str
    """From the root."""
    tags: Sequence[str]


@dataclass(frozen=True)
class PastWrite:
    """A recorded write."""

    id: int
    run: int
    photograph: int
    file: str
    """From the root."""
    tags: Sequence[str]
    """The tags that it added."""
    added: Sequence[tuple[str, str]]
    """The values that it added for them: property and value."""
    before: bytes | None
    """The former content; None if there was no file. For a photograph, its SHA-256."""
    after: str
    """SHA-256 of the new content."""
    backup: str | None
    """Name of the backup that exiftool keeps of a photograph; None for sidecars."""
    state: str
    """planned, done, failed or undone."""
    note: str | None
    modified: int | None = None
    """The former modification time of a sidecar, in nanoseconds."""


class Writes(Part):
    """The recorded writes of a catalogue: ``catalogue.writes``."""

    def pending(self, filters: Filters | None = None) -> list[ToWrite]:
        """Return accepted tags that the files of a photograph lack, by photograph.

        Every copy of a photograph gets the tags, unless filters choose copies. A tag that was
        written and then removed by somebody is not written again, unless the photograph moved away
        from its sidecar.
        """
        filters = filters or Filters()
        condition, values = filters.sql_condition(self._db, "d")
        condition = condition.replace("d.run", "d.suggested_by")
        place, more = filters.sql_place("p")
        rows = self._db.rows(
            "SELECT p.id, p.path, t.name FROM decisions d JOIN tags t ON t.id = d.tag "
            "JOIN photographs p ON p.content = d.content AND p.gone IS NULL "
            f"WHERE d.holds AND d.verdict = 1 AND {condition} AND {place} AND NOT EXISTS "
            "(SELECT 1 FROM found f JOIN tags o ON o.id = f.tag "
            "WHERE f.photograph = p.id AND o.key = t.key) "
            "AND NOT EXISTS (SELECT 1 FROM writes w, json_each(w.tags) written "
            "WHERE w.photograph = p.id AND w.state = 'done' AND written.value = t.name "
            f"AND {_IS_BESIDE}) ORDER BY p.path, d.id",
            values + more,
        )
        tags: dict[tuple[int, str], list[str]] = {}
        for photograph, path, name in rows:
            tags.setdefault((photograph, path), []).append(name)
        return [ToWrite(*key, names) for key, names in tags.items()]

    def plan(
        self,
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
        """Record a write durably before it is done; return its number.

        The parameters are those of `PastWrite`.
        """
        with self._db.transaction() as connection:
            cursor = connection.execute(
                "INSERT INTO writes (run, photograph, file, tags, added, before, after, backup, "
                "modified, state) VALUES (?, ?, CAST(? AS TEXT), ?, ?, "
                "?, ?, CAST(? AS TEXT), ?, 'planned')",
                (
                    run,
                    photograph,
                    sql_text(file),
                    json.dumps(list(tags), ensure_ascii=False),
                    json.dumps([list(pair) for pair in added], ensure_ascii=False),
                    pack_before(before),
                    bytes.fromhex(after),
                    None if backup is None else sql_text(backup),
                    modified,
                ),
            )
        return int(cursor.lastrowid or 0)

    def end(self, number: int, state: str, note: str | None = None) -> None:
        """Mark a planned write as "done" or "failed"."""
        with self._db.transaction() as connection:
            connection.execute(
                "UPDATE writes SET state = ?, note = ? WHERE id = ?", (state, note, number)
            )

    def mark_undone(self, number: int, run: int, note: str | None = None) -> None:
        """Mark a write as undone by a run."""
        with self._db.transaction() as connection:
            connection.execute(
                "UPDATE writes SET state = 'undone', undone_by = ?, note = ? WHERE id = ?",
                (run, note, number),
            )

    def update(
        self,
        number: int,
        before: bytes | None,
        after: str,
        backup: str | None = None,
        modified: int | None = None,
    ) -> None:
        """Update a write after an earlier one was undone."""
        with self._db.transaction() as connection:
            connection.execute(
                "UPDATE writes SET before = ?, after = ?, backup = CAST(? AS TEXT), modified = ? "
                "WHERE id = ?",
                (
                    pack_before(before),
                    bytes.fromhex(after),
                    None if backup is None else sql_text(backup),
                    modified,
                    number,
                ),
            )

    def of_run(self, run: int) -> list[PastWrite]:
        """Return the writes of a run, in the order in which they were planned."""
        return self._select("run = ? ORDER BY id", (run,))

    def runs_to_undo(self, runs: Sequence[int]) -> set[int]:
        """Return those of the runs that have writes left to undo."""
        rows = self._db.rows(
            "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM writes "
            "WHERE run = value AND state IN ('done', 'planned'))",
            (json.dumps(list(runs)),),
        )
        return {run for (run,) in rows}

    def later_than(self, write: PastWrite) -> list[PastWrite]:
        """Return later writes to the same file that still apply."""
        condition = "file = CAST(? AS TEXT) AND id > ? AND state = 'done' ORDER BY id"
        return self._select(condition, (sql_text(write.file), write.id))

    def unfinished(self) -> list[PastWrite]:
        """Return writes that were planned and never marked, because the run was killed."""
        return self._select("state = 'planned' ORDER BY id", ())

    def _select(self, condition: str, values: tuple[Any, ...]) -> list[PastWrite]:
        rows = self._db.rows(f"SELECT {_COLUMNS} FROM writes WHERE {condition}", values)
        try:
            return [_past_write(*row) for row in rows]
        except (AttributeError, TypeError, ValueError) as error:
            raise damaged(str(error)) from error

    def path_of(self, write: PastWrite) -> Path:
        """Return the real path of a written file, if no name in the catalogue leads elsewhere.

        Raises
        ------
        SidecarError
            As in `target_path`, and for a name that no write can have.
        """
        query = "SELECT path FROM photographs WHERE id = ?"
        photograph = self._db.value(query, (write.photograph,)) or ""
        try:
            check_target_names(photograph, write.file, write.backup)
        except ValueError as error:
            raise SidecarError(
                f"{self._db.absolute(write.file)}: the catalogue is damaged, the file must be "
                f"{error}. It is unchanged."
            ) from error
        return target_path(self._db, write.file)

    def vanished_photograph(self, write: PastWrite) -> str | None:
        """Return the photograph of a write if neither it nor the file exists, else None.

        It was moved since the last scan, or the drive is not connected, so nobody knows what the
        file holds.
        """
        path = self._db.value(
            "SELECT path FROM photographs WHERE id = ? AND gone IS NULL", (write.photograph,)
        )
        if path is None or os.path.lexists(self._db.absolute(write.file)):
            return None
        photograph = self._db.absolute(path)
        return None if os.path.lexists(photograph) else photograph


def _past_write(*row: Any) -> PastWrite:
    id, run, photograph, file, tags, added, before, after, backup, state, note, modified = row
    if not isinstance(modified, int | None):
        raise TypeError(f"a {type(modified).__name__} instead of a time")
    return PastWrite(
        id,
        run,
        photograph,
        _check_text(file),
        [_check_text(tag) for tag in read_json(tags, list)],
        [(_check_text(name), _check_text(value)) for name, value in read_json(added, list)],
        unpack_before(before),
        after.hex(),
        None if backup is None else _check_text(backup),
        state,
        note,
        modified,
    )


def _check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a {type(value).__name__} instead of text")
    return value
