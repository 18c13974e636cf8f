"""Export and import of decisions and history, which only the catalogue has, as JSON lines.

Each line is an object with a "kind". The first names the format; then come runs, renamed, merged,
forgotten or hidden tags, decisions and writes. Photographs are identified by the digest of their
content, so the lines apply on another machine and after a move.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tagkin.catalogue.columns import pack_evidence, read_json, sql_text, unpack_evidence
from tagkin.catalogue.database import Database
from tagkin.catalogue.exchange_fields import LINES, read_fields
from tagkin.catalogue.tag_records import TagNumbers, forget_tag, hide_tag, merge_tag
from tagkin.errors import InvalidInput

__all__ = ["Imported", "export_lines", "import_lines"]

_FORMAT, _VERSION = "tagkin-decisions", 1
_REMOVED = ("removed_tags", "removed")  # tags and values that a write removed


# --- export ------------------------------------------------------------------------------


def export_lines(database: Database) -> Iterator[dict[str, Any]]:
    """Yield everything that only the catalogue knows, as objects for JSON lines."""
    yield {"kind": "tagkin", "format": _FORMAT, "version": _VERSION}
    names = ("id", "what", "started_at", "ended_at", "model", "parameters", "outcome", "undoes")
    for row in database.rows(f"SELECT {', '.join(names)} FROM runs"):
        run = dict(zip(names, row, strict=True))
        run |= {name: read_json(run[name], dict) for name in ("parameters", "outcome")}
        yield {"kind": "run"} | run
    for name, same_as, forgotten, hidden in database.rows(
        "SELECT t.name, o.name, t.forgotten, t.hidden FROM tags t "
        "LEFT JOIN tags o ON o.id = t.same_as "
        "WHERE t.same_as IS NOT NULL OR t.forgotten OR t.hidden"
    ):
        states = {"forgotten": bool(forgotten), "hidden": bool(hidden)}
        yield {"kind": "tag", "tag": name, "same_as": same_as} | states
    yield from _decisions(database)
    yield from _writes(database)


def _decisions(database: Database) -> Iterator[dict[str, Any]]:
    digests = {c: d.hex() for c, d in database.rows("SELECT id, digest FROM contents")}
    for row in database.rows(
        "SELECT d.content, (SELECT min(path) FROM photographs WHERE content = d.content), t.name, "
        "d.verdict, d.made_at, d.run, d.suggested_by, d.confidence, d.note, d.taken_back_by, "
        "d.evidence "
        "FROM decisions d LEFT JOIN tags t ON t.id = d.tag ORDER BY d.id"
    ):
        names = ("content", "path", "tag", "verdict", "made_at", "run", "suggested_by")
        decision = dict(zip((*names, "confidence", "note", "taken_back_by"), row[:10], strict=True))
        decision["content"] = digests[decision["content"]]
        evidence = unpack_evidence(row[10])
        decision["kin"] = [[digests[c], share] for c, share in evidence.kin if c in digests]
        decision |= {"name_share": evidence.name_share, "readout_share": evidence.readout_share}
        yield {"kind": "decision"} | decision


def _writes(database: Database) -> Iterator[dict[str, Any]]:
    names = ("run", "path", "file", "tags", "added", "before", "after", "backup", "state")
    for row in database.rows(
        "SELECT w.run, p.path, w.file, w.tags, w.added, w.before, w.after, w.backup, w.state, "
        "w.undone_by, w.note, w.modified, w.removed_tags, w.removed "
        "FROM writes w JOIN photographs p ON p.id = w.photograph ORDER BY w.id"
    ):
        write = dict(zip((*names, "undone_by", "note", "modified", *_REMOVED), row, strict=True))
        write |= {name: read_json(write[name], list) for name in ("tags", "added", *_REMOVED)}
        if write["before"] is not None:
            write["before"] = base64.b64encode(write["before"]).decode("ascii")
        yield {"kind": "write"} | write | {"after": write["after"].hex()}


# --- import ------------------------------------------------------------------------------


@dataclass
class Imported:
    """Numbers of imported records, without records that the catalogue had already."""

    runs: int = 0
    tags: int = 0
    decisions: int = 0
    writes: int = 0
    absent: int = 0
    """Skipped writes to photographs that are not in this catalogue."""


def import_lines(database: Database, lines: Iterable[str], *, dry_run: bool) -> Imported:
    """Import all lines or none; see `Catalogue.import_lines`."""
    imported = Imported()
    try:
        with database.transaction() as connection:
            _Import(connection, imported).store(_parse(lines))
            if dry_run:
                raise _DryRun
    except _DryRun:
        pass
    return imported


class _DryRun(Exception):
    """Roll everything back."""


def _parse(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    first = True
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            kind, version = line["kind"], line.get("version", 0)
            is_newer = first and version > _VERSION
            if not isinstance(kind, str):
                raise TypeError(kind)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise InvalidInput(f"Line {number} is not what `tagkin export` writes.") from error
        if first and (kind, line.get("format")) != ("tagkin", _FORMAT):
            raise InvalidInput("The file does not begin as `tagkin export` writes it.")
        if is_newer:
            raise InvalidInput("The file was written by a newer tagkin. Install that version.")
        first = False
        yield number, line
    if first:
        raise InvalidInput("The file is empty.")


class _Import:
    def __init__(self, connection: sqlite3.Connection, imported: Imported):
        self.connection, self.imported = connection, imported
        self.runs: dict[int, int] = {}
        self.numbers = TagNumbers(connection)
        # a known write may have been undone since, or its file moved
        self.written = set(
            connection.execute(
                "SELECT run, photograph FROM writes WHERE state IN ('done', 'undone')"
            )
        )

    def store(self, lines: Iterator[tuple[int, dict[str, Any]]]) -> None:
        store = {
            "run": self._store_run,
            "tag": self._store_tag,
            "decision": self._store_decision,
            "write": self._store_write,
        }
        for number, line in lines:
            if line["kind"] not in LINES:
                continue
            try:
                store[line["kind"]](read_fields(line))
            except (InvalidInput, sqlite3.IntegrityError) as error:
                reason = str(error).rstrip(".")
                raise InvalidInput(
                    f"Line {number} cannot be imported: {reason}. Nothing was imported."
                ) from error
        self._let_latest_hold()

    def _number_of_run(self, fields: dict[str, Any], name: str) -> int | None:
        """Return the number that a run has in this catalogue."""
        run = fields[name]
        if run is not None and run not in self.runs:
            raise InvalidInput(f"`{name}` names run {run}, which no line before it has")
        return None if run is None else self.runs[run]

    def _store_run(self, fields: dict[str, Any]) -> None:
        """Store a run under a new number, unless the same command started at the same moment."""
        same = self.connection.execute(
            "SELECT id FROM runs WHERE what = ? AND started_at = ?",
            (fields["what"], fields["started_at"]),
        ).fetchone()
        if same:
            self.runs[fields["id"]] = same[0]
            return
        cursor = self.connection.execute(
            "INSERT INTO runs (what, started_at, ended_at, model, parameters, outcome, undoes) "
            "VALUES (:what, :started_at, :ended_at, :model, :parameters, :outcome, :undoes)",
            fields
            | {name: json.dumps(fields[name]) for name in ("parameters", "outcome")}
            | {"undoes": self._number_of_run(fields, "undoes")},
        )
        self.runs[fields["id"]] = int(cursor.lastrowid or 0)
        self.imported.runs += 1

    def _store_tag(self, fields: dict[str, Any]) -> None:
        number = self.numbers[fields["tag"]]
        if fields["same_as"] is not None:
            into = self.numbers[fields["same_as"]]
            if number == into:
                return
            merge_tag(self.connection, number, into)
            self.numbers = TagNumbers(self.connection)
            self.imported.tags += 1
            return
        states = {"forgotten": forget_tag, "hidden": hide_tag}
        is_new = [
            fields[state] and set_state(self.connection, number)
            for state, set_state in states.items()
        ]
        self.imported.tags += any(is_new)

    def _content(self, digest: bytes) -> int:
        self.connection.execute("INSERT OR IGNORE INTO contents (digest) VALUES (?)", (digest,))
        row = self.connection.execute("SELECT id FROM contents WHERE digest = ?", (digest,))
        return int(row.fetchone()[0])

    def _store_decision(self, fields: dict[str, Any]) -> None:
        runs = ("run", "suggested_by", "taken_back_by")
        row = fields | {name: self._number_of_run(fields, name) for name in runs}
        row["content"] = self._content(fields["content"])
        if fields["tag"] is not None:
            row["tag"] = self.numbers[fields["tag"]]
        # it may have the name from before the tag was renamed
        if self.connection.execute(
            "SELECT 1 FROM decisions WHERE run = :run AND content = :content "
            "AND verdict = :verdict AND made_at = :made_at "
            "AND (tag IS :tag OR tag = (SELECT id FROM tags WHERE name = :name))",
            row | {"name": fields["tag"]},
        ).fetchone():
            return
        kin = [(self._content(digest), share) for digest, share in row.pop("kin")]
        row["evidence"] = pack_evidence(kin, fields["name_share"], fields["readout_share"])
        # `_let_latest_hold` decides which decision applies
        self.connection.execute(
            "INSERT INTO decisions (run, content, tag, verdict, made_at, suggested_by, confidence, "
            "evidence, note, taken_back_by, holds) VALUES (:run, :content, :tag, :verdict, "
            ":made_at, :suggested_by, :confidence, :evidence, :note, :taken_back_by, 0)",
            row,
        )
        self.imported.decisions += 1

    def _let_latest_hold(self) -> None:
        """Let the latest decision on each content and tag apply, and remove its suggestion."""
        if not self.imported.decisions:
            return
        latest = (
            "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY content, tag "
            "ORDER BY made_at DESC, id DESC) AS rank FROM decisions WHERE taken_back_by IS NULL) "
            "WHERE rank = 1"
        )
        for change in (
            f"UPDATE decisions SET holds = 0 WHERE holds AND id NOT IN ({latest})",
            f"UPDATE decisions SET holds = 1 WHERE NOT holds AND id IN ({latest})",
            "DELETE FROM suggestions WHERE EXISTS (SELECT 1 FROM decisions d WHERE "
            "d.content = suggestions.content AND (d.tag = suggestions.tag OR d.tag IS NULL) "
            "AND d.holds)",
        ):
            self.connection.execute(change)

    def _store_write(self, fields: dict[str, Any]) -> None:
        row = fields | {n: self._number_of_run(fields, n) for n in ("run", "undone_by")}
        row |= {name: sql_text(fields[name]) for name in ("path", "file")}
        row["backup"] = None if fields["backup"] is None else sql_text(fields["backup"])
        for name in ("tags", "added", *_REMOVED):
            row[name] = json.dumps(fields[name], ensure_ascii=False)
        photograph = self.connection.execute(
            "SELECT id FROM photographs WHERE path = CAST(? AS TEXT)", (row["path"],)
        ).fetchone()
        if photograph is None:
            self.imported.absent += 1
            return
        row["photograph"] = photograph[0]
        if (row["run"], photograph[0]) in self.written or self.connection.execute(
            "SELECT 1 FROM writes WHERE run = ? AND file = CAST(? AS TEXT) AND after = ?",
            (row["run"], row["file"], row["after"]),
        ).fetchone():
            return
        self.connection.execute(
            "INSERT INTO writes (run, photograph, file, tags, added, before, after, backup, state, "
            "undone_by, note, modified, removed_tags, removed) VALUES (:run, :photograph, "
            "CAST(:file AS TEXT), :tags, :added, :before, :after, CAST(:backup AS TEXT), :state, "
            ":undone_by, :note, :modified, :removed_tags, :removed)",
            row,
        )
        self.imported.writes += 1
