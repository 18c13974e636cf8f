"""Records of writes to files, with the former content of each file.

A write is planned in the catalogue before the file is touched, and marked as done afterwards. In
between, the digests tell whether the file was written.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from tagkin.catalogue.columns import damage_error, read_json, sql_text, unpack_before
from tagkin.catalogue.database import CataloguePart, Database, Row, SqlValue
from tagkin.catalogue.decision_records import IMPLIES
from tagkin.catalogue.filters import Filters
from tagkin.catalogue.photographs import path_of
from tagkin.catalogue.target_paths import check_target_names, target_path
from tagkin.collection.sidecars import Embedded, Written
from tagkin.collection.sidecars.tag_fields import PROVENANCE
from tagkin.errors import SidecarError
from tagkin.images.formats import raw_suffixes

__all__ = ["NOT_EMBEDDED", "PastWrite", "ToWrite", "Writes", "photographs_written_into"]

NOT_EMBEDDED = raw_suffixes() - {".dng"}
"""Files that get a sidecar, because programs expect one, although exiftool could write into some.
DNG is made for embedding."""

# Whether a write went into the photograph, to a server, or into a file beside its current path.
_IS_BESIDE = (
    "(w.backup IS NOT NULL OR w.file = p.path OR substr(w.file, 1, length(w.file) - 4) = p.path "
    "OR (substr(w.file, 1, length(w.file) - 4) || '.' = substr(p.path, 1, length(w.file) - 3) "
    "AND instr(substr(p.path, length(w.file) - 2), '.') = 0 "
    "AND instr(substr(p.path, length(w.file) - 2), '/') = 0))"
)

# Accepted tags that the files of a photograph lack.
_PENDING = (
    "FROM decisions d JOIN tags t ON t.id = d.tag "
    "JOIN photographs p ON p.content = d.content AND p.gone IS NULL "
    "WHERE d.holds AND d.verdict = 1 AND NOT EXISTS "
    "(SELECT 1 FROM found f JOIN tags o ON o.id = f.tag "
    "WHERE f.photograph = p.id AND o.key = t.key) "
    "AND NOT EXISTS (SELECT 1 FROM writes w, json_each(w.tags) written "
    "WHERE w.photograph = p.id AND w.run > d.run AND w.state = 'done' AND written.value = t.name "
    f"AND {_IS_BESIDE} AND NOT EXISTS (SELECT 1 FROM writes r, json_each(r.removed_tags) o "
    "WHERE r.file = w.file AND r.state = 'done' AND r.id > w.id AND o.value = t.name)) "
    # a tag with levels brings its parents along
    "AND NOT EXISTS (SELECT 1 FROM decisions e JOIN tags deep ON deep.id = e.tag "
    "WHERE e.content = d.content AND e.holds AND e.verdict = 1 AND instr(deep.name, '|') "
    f"AND {IMPLIES.format('deep', 't')}) "
    "AND NOT EXISTS (SELECT 1 FROM found f JOIN tags deep ON deep.id = f.tag "
    f"WHERE f.photograph = p.id AND instr(deep.name, '|') AND {IMPLIES.format('deep', 't')})"
)


@dataclass(frozen=True)
class ToWrite:
    """A photograph whose files lack accepted tags, or have rejected ones."""

    photograph: int
    path: str
    """From the root."""
    tags: Sequence[str]
    removals: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Files, from the root, with the rejected tags to remove: spelling → tag."""


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
    removed_tags: Sequence[str] = ()
    """The tags that it removed."""
    removed: Sequence[tuple[str, str]] = ()
    """The values that it removed for them: property and value."""
    mark: str = ""
    """Its name in `tagkin:Written` of the file; no other write has it."""

    @property
    def has_mark(self) -> bool:
        """Whether it left its mark in the file; a write that adds no new tag leaves none."""
        return any(name == PROVENANCE.name for name, _ in self.added)

    @property
    def changed_tags(self) -> list[str]:
        """The tags that it added, and those that it removed."""
        return [*self.tags, *self.removed_tags]


class Writes(CataloguePart):
    """The recorded writes of a catalogue: ``catalogue.writes``."""

    def pending(self, filters: Filters | None = None) -> list[ToWrite]:
        """Return accepted tags that the files of a photograph lack, by photograph.

        Every copy of a photograph gets the tags, unless filters choose copies. A tag that was
        written and then removed by somebody is not written again, unless it was accepted again or
        the photograph moved away from its sidecar.
        """
        condition, values = self._decision_condition(filters or Filters())
        rows = self._db.rows(
            f"SELECT p.id, p.path, t.name {_PENDING} AND {condition} ORDER BY p.path, d.id",
            values,
        )
        tags: dict[tuple[int, str], list[str]] = {}
        for photograph, path, name in rows:
            tags.setdefault((photograph, path), []).append(name)
        return [ToWrite(*key, names) for key, names in tags.items()]

    def count_pending(self) -> int:
        """Count the photographs of `pending`."""
        n: int = self._db.value(f"SELECT count(DISTINCT p.id) {_PENDING}")
        return n

    def decisions_on(self, photo: ToWrite) -> list[Row]:
        """Return tag, verdict and confidence of the decisions that apply to a photograph."""
        return self._db.rows(
            "SELECT t.name, d.verdict, d.confidence FROM decisions d JOIN tags t ON t.id = d.tag "
            "JOIN photographs p ON p.content = d.content WHERE p.id = ? AND d.holds",
            (photo.photograph,),
        )

    def still_decided(self, photo: ToWrite) -> ToWrite:
        """Drop tags on which a person changed the decision since the run began."""
        verdicts = {tag: verdict for tag, verdict, _ in self.decisions_on(photo)}
        tags = [tag for tag in photo.tags if verdicts.get(tag) == 1]
        removals = {
            file: {word: tag for word, tag in words.items() if verdicts.get(tag) == -1}
            for file, words in photo.removals.items()
        }
        removals = {file: words for file, words in removals.items() if words}
        return replace(photo, tags=tags, removals=removals)

    def _decision_condition(self, filters: Filters) -> tuple[str, list[SqlValue]]:
        """Return the condition on a decision `d` and a photograph `p`, and its values."""
        condition, values = filters.sql_condition(self._db, "d")
        place, more = filters.sql_place()
        return f"d.holds AND {condition} AND {place}", values + more

    def pending_removals(self, filters: Filters, *, embed: bool) -> tuple[list[ToWrite], set[str]]:
        """Return rejected tags that sidecars have, by photograph.

        With `embed`, tags inside photographs as well. A tag that somebody added after it was
        rejected, or after it was removed, stays, unless it was rejected again.

        Also return files that have rejected tags and are never changed: the tag file of the
        collection, and RAW files other than DNG.
        """
        condition, values = self._decision_condition(filters)
        rows = self._db.rows(
            "SELECT * FROM (SELECT p.id, p.path, t.name, json_extract(s.value, '$[0]'), "
            "coalesce(nullif(json_extract(s.value, '$[1]'), ''), p.path) AS file, d.run AS decided "
            "FROM decisions d JOIN tags t ON t.id = d.tag "
            "JOIN photographs p ON p.content = d.content AND p.gone IS NULL "
            "JOIN found f ON f.photograph = p.id JOIN tags o ON o.id = f.tag AND o.key = t.key, "
            "json_each(f.places) s "
            f"WHERE d.verdict = -1 AND d.was_in_files AND {condition}) x "
            "WHERE NOT EXISTS (SELECT 1 FROM writes w, json_each(w.removed_tags) r "
            "WHERE w.file = x.file AND w.state = 'done' AND w.run > x.decided "
            "AND r.value = x.name) ORDER BY x.path, x.file",
            values,
        )
        removals: dict[tuple[int, str], dict[str, dict[str, str]]] = {}
        unchanged: set[str] = set()
        for photograph, path, name, spelling, file, _ in rows:
            suffix = os.path.splitext(file)[1].lower()
            is_inside = (file == path or suffix == ".dng") and suffix not in NOT_EMBEDDED
            if suffix == ".xmp" or (embed and is_inside):
                files = removals.setdefault((photograph, path), {})
                files.setdefault(file, {})[spelling] = name
            elif not is_inside:
                unchanged.add(file)
        return [ToWrite(*key, (), files) for key, files in removals.items()], unchanged

    def out_of_step(self, filters: Filters, *, embed: bool) -> list[ToWrite]:
        """Return photographs whose sidecars have lists with different tags.

        With `embed`, photographs with other tags inside as well. The filters choose photographs.
        """
        place, values = filters.sql_place()
        rows = self._db.rows(
            "SELECT p.id, p.path FROM seen_lists s JOIN photographs p ON p.id = s.photograph "
            f"WHERE (NOT s.in_step OR ? AND NOT s.in_step_inside) AND p.gone IS NULL AND {place}",
            [embed, *values],
        )
        return [ToWrite(photograph, path, ()) for photograph, path in rows]

    def plan(self, run: int, photo: ToWrite, file: str, change: Written | Embedded) -> int:
        """Record a write durably before it is done; return its number.

        A photograph is too large to keep; exiftool keeps a backup.
        """
        columns: dict[str, object] = {
            "run": run,
            "photograph": photo.photograph,
            "file": file,
            "tags": photo.tags if change.added else (),
            "added": change.added,
            "after": change.after_digest,
            "removed_tags": sorted(set(photo.removals.get(file, {}).values())),
            "removed": change.removed,
            "mark": change.mark,
            "state": "planned",
        }
        if isinstance(change, Written):
            columns |= {"before": change.before, "modified": change.modified}
        else:
            before, backup = change.before_digest.encode(), change.backup.name
            columns |= {"before": before, "backup": backup}
        places = ", ".join(map(_place, columns))
        return self._db.execute(
            f"INSERT INTO writes ({', '.join(columns)}) VALUES ({places})", _as_stored(columns)
        )

    def update(self, number: int, **columns: object) -> None:
        """Change columns of a write, with values as in `PastWrite`.

        Two columns more are for undo: `is_undoing` while it changes the file, so a scan knows who
        did if it is killed; and `was_missed` if it did not find the file, so the next undo is of
        an earlier run.
        """
        changes = ", ".join(f"{name} = {_place(name)}" for name in columns)
        self._db.execute(
            f"UPDATE writes SET {changes} WHERE id = :id", {**_as_stored(columns), "id": number}
        )

    def disown(self, undone: PastWrite, later: Sequence[PastWrite]) -> None:
        """Remove the changes of an undone write from the records of later writes."""
        with self._db.transaction():
            for write in later:
                added = [pair for pair in write.added if pair not in undone.removed]
                removed = [pair for pair in write.removed if pair not in undone.added]
                if (added, removed) != (list(write.added), list(write.removed)):
                    self.update(write.id, added=added, removed=removed)

    def of_run(self, run: int) -> list[PastWrite]:
        """Return the writes of a run, in the order in which they were planned."""
        return self._select("run = ? ORDER BY id", (run,))

    def of_photograph(self, photograph: int) -> list[PastWrite]:
        """Return the writes to the files of a photograph that still apply."""
        return self._select("photograph = ? AND state IN ('planned', 'done')", (photograph,))

    def later_than(self, write: PastWrite) -> list[PastWrite]:
        """Return later writes to the same file that still apply."""
        condition = "file = CAST(? AS TEXT) AND id > ? AND state = 'done' ORDER BY id"
        return self._select(condition, (sql_text(write.file), write.id))

    def unfinished(self) -> list[PastWrite]:
        """Return writes that were planned and never marked, because the run was killed."""
        return self._select("state = 'planned' ORDER BY id", ())

    def _select(self, condition: str, values: Sequence[SqlValue]) -> list[PastWrite]:
        query = f"SELECT {', '.join(_COLUMNS)} FROM writes WHERE {condition}"
        try:
            return [
                PastWrite(*map(_from_stored, _COLUMNS, row)) for row in self._db.rows(query, values)
            ]
        except (AttributeError, TypeError, ValueError) as error:
            raise damage_error(str(error)) from error

    def path_of(self, write: PastWrite) -> Path:
        """Return the real path of a written file, if no name in the catalogue leads elsewhere.

        Raises
        ------
        SidecarError
            As in `target_path`, and for a name that no write can have.
        """
        photograph = path_of(self._db, write.photograph) or ""
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
        path = path_of(self._db, write.photograph, exists=True)
        if path is None or os.path.lexists(self._db.absolute(write.file)):
            return None
        photograph = self._db.absolute(path)
        return None if os.path.lexists(photograph) else photograph


def photographs_written_into(database: Database) -> dict[str, int]:
    """Return photographs with embedded tags, by their digests before and after writing."""
    rows = database.rows(
        "SELECT photograph, before, after FROM writes "
        "WHERE backup IS NOT NULL AND state IN ('done', 'undone') ORDER BY id"
    )
    digests = {unpack_before(before).decode("latin-1"): id for id, before, _ in rows}
    return digests | {after.hex(): id for id, _, after in rows}


def _as_json(values: Iterable[object]) -> str:
    return json.dumps(list(values), ensure_ascii=False)


def _read_texts(text: str) -> list[str]:
    return [_check_text(value) for value in read_json(text, list)]


def _read_pairs(text: str) -> list[tuple[str, str]]:
    return [(_check_text(name), _check_text(value)) for name, value in read_json(text, list)]


def _check_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a {type(value).__name__} instead of text")
    return value


# How columns store values, and how they are read; other columns need nothing.
_FORMS: dict[str, tuple[Callable[[Any], SqlValue], Callable[[Any], object]]] = {
    "file": (sql_text, _check_text),
    "tags": (_as_json, _read_texts),
    "added": (_as_json, _read_pairs),
    "before": (zlib.compress, unpack_before),
    "after": (bytes.fromhex, bytes.hex),
    "backup": (sql_text, _check_text),
    "note": (sql_text, _check_text),  # may name a file
    "removed_tags": (_as_json, _read_texts),
    "removed": (_as_json, _read_pairs),
}
_COLUMNS = tuple(column.name for column in fields(PastWrite))


def _as_stored(columns: Mapping[str, Any]) -> dict[str, SqlValue]:
    return {
        name: _FORMS[name][0](value) if name in _FORMS and value is not None else value
        for name, value in columns.items()
    }


def _from_stored(name: str, value: Any) -> Any:
    return _FORMS[name][1](value) if name in _FORMS and value is not None else value


def _place(column: str) -> str:
    return f"CAST(:{column} AS TEXT)" if _FORMS.get(column, ("",))[0] is sql_text else f":{column}"
