"""Decisions and history as JSON lines: what a catalogue holds that nothing else does.

A line is one object with a "kind": the first says what the file is, then come runs, tags that are
one or forgotten, decisions and writes. Photographs go by the digest of their content, so that the
lines hold on another machine and after a move.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.database import sql_text
from tagkin.catalogue.evidence import pack_evidence, unpack_evidence
from tagkin.catalogue.found import TagNumbers
from tagkin.catalogue.line_fields import LINES, read_fields
from tagkin.catalogue.texts import from_text
from tagkin.errors import InvalidInput

__all__ = ["Imported", "export_lines", "import_lines"]

_FORMAT, _VERSION = "tagkin-decisions", 1


# --- out ---------------------------------------------------------------------------------


def export_lines(catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    """Everything that only the catalogue knows, as objects for JSON lines."""
    yield {"kind": "tagkin", "format": _FORMAT, "version": _VERSION}
    for row in catalogue.rows(
        "SELECT id, what, started_at, ended_at, model, parameters, outcome, undoes FROM runs"
    ):
        names = ("id", "what", "started_at", "ended_at", "model", "parameters", "outcome", "undoes")
        run = dict(zip(names, row, strict=True))
        run |= {name: from_text(run[name], dict) for name in ("parameters", "outcome")}
        yield {"kind": "run"} | run
    for name, same_as, forgotten in catalogue.rows(
        "SELECT t.name, o.name, t.forgotten FROM tags t LEFT JOIN tags o ON o.id = t.same_as "
        "WHERE t.same_as IS NOT NULL OR t.forgotten"
    ):
        yield {"kind": "tag", "tag": name, "same_as": same_as, "forgotten": bool(forgotten)}
    yield from _decisions(catalogue)
    yield from _writes(catalogue)


def _decisions(catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    digests = {c: d.hex() for c, d in catalogue.rows("SELECT id, digest FROM contents")}
    for row in catalogue.rows(
        "SELECT d.content, (SELECT min(path) FROM photographs WHERE content = d.content), t.name, "
        "d.verdict, d.made_at, d.run, d.suggested_by, d.confidence, d.note, d.taken_back_by, "
        "d.evidence "
        "FROM decisions d JOIN tags t ON t.id = d.tag ORDER BY d.id"
    ):
        names = ("content", "path", "tag", "verdict", "made_at", "run", "suggested_by")
        one = dict(zip((*names, "confidence", "note", "taken_back_by"), row[:10], strict=True))
        one["content"] = digests[one["content"]]
        evidence = unpack_evidence(row[10])
        one["kin"] = [[digests[c], share] for c, share in evidence.kin if c in digests]
        one |= {"name_share": evidence.name_share, "readout_share": evidence.readout_share}
        yield {"kind": "decision"} | one


def _writes(catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    for row in catalogue.rows(
        "SELECT w.run, p.path, w.file, w.tags, w.added, w.before, w.after, w.backup, w.state, "
        "w.undone_by, w.note, w.modified FROM writes w JOIN photographs p ON p.id = w.photograph "
        "ORDER BY w.id"
    ):
        run, path, file, tags, added, before, after, backup, state, undone_by, note, modified = row
        yield {
            "kind": "write",
            "run": run,
            "path": path,
            "file": file,
            "tags": from_text(tags, list),
            "added": from_text(added, list),
            "before": None if before is None else base64.b64encode(before).decode("ascii"),
            "after": after.hex(),
            "backup": backup,
            "state": state,
            "undone_by": undone_by,
            "note": note,
            "modified": modified,
        }


# --- in ----------------------------------------------------------------------------------


@dataclass
class Imported:
    """What came in; what was there already is not counted."""

    runs: int = 0
    tags: int = 0
    decisions: int = 0
    writes: int = 0
    absent: int = 0
    """Writes to photographs that are not in this catalogue, which were left out."""


def import_lines(catalogue: Catalogue, lines: Iterable[str], *, dry_run: bool = False) -> Imported:
    """Take in what `export_lines` gave, all of it or nothing.

    What is there already is left as it is, so that importing twice changes nothing. Where two
    decisions are about the same tag of the same photograph, the later one holds.
    """
    found = Imported()
    try:
        with catalogue.transaction() as connection:
            _Import(connection, found).take(_objects(lines))
            if dry_run:
                raise _DryRun
    except _DryRun:
        pass
    return found


class _DryRun(Exception):
    """Nothing is to stay."""


def _objects(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    first = True
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
            kind, version = one["kind"], one.get("version", 0)
            is_newer = first and version > _VERSION
            if not isinstance(kind, str):
                raise TypeError(kind)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise InvalidInput(f"Line {number} is not what `tagkin export` writes.") from error
        if first and (kind, one.get("format")) != ("tagkin", _FORMAT):
            raise InvalidInput("The file does not begin as `tagkin export` writes it.")
        if is_newer:
            raise InvalidInput("The file was written by a newer tagkin. Install that version.")
        first = False
        yield number, one
    if first:
        raise InvalidInput("The file is empty.")


class _Import:
    def __init__(self, connection: sqlite3.Connection, found: Imported):
        self.connection, self.found = connection, found
        self.runs: dict[int, int] = {}
        self.numbers = TagNumbers(connection)
        # a write that is there may have been taken back since, or its file moved
        self.written = set(
            connection.execute(
                "SELECT run, photograph FROM writes WHERE state IN ('done', 'undone')"
            )
        )

    def take(self, objects: Iterator[tuple[int, dict[str, Any]]]) -> None:
        put = {"run": self._run, "tag": self._tag, "decision": self._decision, "write": self._write}
        for number, line in objects:
            if line["kind"] not in LINES:
                continue
            try:
                put[line["kind"]](read_fields(line))
            except (InvalidInput, sqlite3.IntegrityError) as error:
                reason = str(error).rstrip(".")
                raise InvalidInput(
                    f"Line {number} cannot be imported: {reason}. Nothing was imported."
                ) from error
        self._let_latest_hold()

    def _run_here(self, one: dict[str, Any], field: str) -> int | None:
        """Return the number that a run has in this catalogue."""
        if one[field] is None:
            return None
        if one[field] not in self.runs:
            raise InvalidInput(f"`{field}` names run {one[field]}, which no line before it has")
        return self.runs[one[field]]

    def _run(self, one: dict[str, Any]) -> None:
        """A run has another number here; the same command at the same moment is the same run."""
        same = self.connection.execute(
            "SELECT id FROM runs WHERE what = ? AND started_at = ?",
            (one["what"], one["started_at"]),
        ).fetchone()
        if same:
            self.runs[one["id"]] = same[0]
            return
        added = self.connection.execute(
            "INSERT INTO runs (what, started_at, ended_at, model, parameters, outcome, undoes) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                one["what"],
                one["started_at"],
                one["ended_at"],
                one["model"],
                json.dumps(one["parameters"]),
                json.dumps(one["outcome"]),
                self._run_here(one, "undoes"),
            ),
        )
        self.runs[one["id"]] = int(added.lastrowid or 0)
        self.found.runs += 1

    def _tag(self, one: dict[str, Any]) -> None:
        number = self.numbers[one["tag"]]
        if one["same_as"] is not None:
            into = self.numbers[one["same_as"]]
            if number == into:
                return
            from tagkin.catalogue.tags import merge_tag

            merge_tag(self.connection, number, into)
            self.numbers = TagNumbers(self.connection)
        elif one["forgotten"]:
            changed = self.connection.execute(
                "UPDATE tags SET forgotten = 1 WHERE id = ? AND NOT forgotten", (number,)
            )
            if not changed.rowcount:
                return
            self.connection.execute("DELETE FROM suggestions WHERE tag = ?", (number,))
        self.found.tags += 1

    def _content(self, digest: bytes) -> int:
        self.connection.execute("INSERT OR IGNORE INTO contents (digest) VALUES (?)", (digest,))
        row = self.connection.execute("SELECT id FROM contents WHERE digest = ?", (digest,))
        return int(row.fetchone()[0])

    def _decision(self, one: dict[str, Any]) -> None:
        content, tag = self._content(one["content"]), self.numbers[one["tag"]]
        row = (self._run_here(one, "run"), content, tag, one["verdict"], one["made_at"])
        # it may be on the name that the tag had before it was renamed
        if self.connection.execute(
            "SELECT 1 FROM decisions WHERE run = ?1 AND content = ?2 AND verdict = ?4 "
            "AND made_at = ?5 AND tag IN (?3, (SELECT id FROM tags WHERE name = ?6))",
            (*row, one["tag"]),
        ).fetchone():
            return
        evidence = pack_evidence(
            ((self._content(digest), share) for digest, share in one["kin"]),
            one["name_share"],
            one["readout_share"],
        )
        # which of several holds is said at the end
        self.connection.execute(
            "INSERT INTO decisions (run, content, tag, verdict, made_at, suggested_by, confidence, "
            "evidence, note, taken_back_by, holds) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
            (
                *row,
                self._run_here(one, "suggested_by"),
                one["confidence"],
                evidence,
                one["note"],
                self._run_here(one, "taken_back_by"),
            ),
        )
        self.found.decisions += 1

    def _let_latest_hold(self) -> None:
        """Let the latest decision on each tag of each content hold, and no suggestion beside it."""
        if not self.found.decisions:
            return
        latest = (
            "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY content, tag "
            "ORDER BY made_at DESC, id DESC) AS rank FROM decisions WHERE taken_back_by IS NULL) "
            "WHERE rank = 1"
        )
        self.connection.execute(
            f"UPDATE decisions SET holds = 0 WHERE holds AND id NOT IN ({latest})"
        )
        self.connection.execute(
            f"UPDATE decisions SET holds = 1 WHERE NOT holds AND id IN ({latest})"
        )
        self.connection.execute(
            "DELETE FROM suggestions WHERE EXISTS (SELECT 1 FROM decisions d WHERE "
            "d.content = suggestions.content AND d.tag = suggestions.tag AND d.holds)"
        )

    def _write(self, one: dict[str, Any]) -> None:
        path = sql_text(one["path"])
        photograph = self.connection.execute(
            "SELECT id FROM photographs WHERE path = CAST(? AS TEXT)", (path,)
        ).fetchone()
        if photograph is None:
            self.found.absent += 1
            return
        run, after = self._run_here(one, "run"), one["after"]
        file = sql_text(one["file"])
        if (run, photograph[0]) in self.written or self.connection.execute(
            "SELECT 1 FROM writes WHERE run = ? AND file = CAST(? AS TEXT) AND after = ?",
            (run, file, after),
        ).fetchone():
            return
        self.connection.execute(
            "INSERT INTO writes (run, photograph, file, tags, added, before, after, backup, state, "
            "undone_by, note, modified) "
            "VALUES (?, ?, CAST(? AS TEXT), ?, ?, ?, ?, CAST(? AS TEXT), ?, ?, ?, ?)",
            (
                run,
                photograph[0],
                file,
                json.dumps(one["tags"], ensure_ascii=False),
                json.dumps(one["added"], ensure_ascii=False),
                one["before"],
                after,
                None if one["backup"] is None else sql_text(one["backup"]),
                one["state"],
                self._run_here(one, "undone_by"),
                one["note"],
                one["modified"],
            ),
        )
        self.found.writes += 1
