"""Export and import of a person's decisions, which only the catalogue has, as JSON lines.

Each line is an object with a "kind". The first names the format; then come edits of tags,
incomplete folders, and decisions, including finished photographs. Photographs are identified by
the digest of their content, so the lines apply on another machine and after a move. Nothing in
them names a file to write or to undo.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tagkin.catalogue.columns import pack_evidence, unpack_evidence
from tagkin.catalogue.completeness import Completeness
from tagkin.catalogue.database import Database
from tagkin.catalogue.decision_records import REJECTED, Origin, decide_suggestions, store_decision
from tagkin.catalogue.exchange_fields import (
    DecisionLine,
    IncompleteLine,
    TagLine,
    read_line,
)
from tagkin.catalogue.photographs import add_content, incomplete_folders
from tagkin.catalogue.tag_records import tag_number
from tagkin.catalogue.tags import Tags
from tagkin.errors import InvalidInput, StorageError

__all__ = ["Imported", "export_lines", "import_lines"]

_FORMAT, _VERSION = "tagkin-decisions", 1


# --- export ------------------------------------------------------------------------------


def export_lines(database: Database) -> Iterator[dict[str, object]]:
    """Yield the decisions that apply and the edits of tags, as objects for JSON lines."""
    yield {"kind": "tagkin", "format": _FORMAT, "version": _VERSION}
    finished = set(Completeness(database).finished_tags())
    for name, same_as, forgotten, hidden in database.rows(
        "SELECT t.name, o.name, t.forgotten, t.hidden FROM tags t "
        "LEFT JOIN tags o ON o.id = t.same_as ORDER BY t.id"
    ):
        states = {"forgotten": bool(forgotten), "hidden": bool(hidden)}
        states |= {"finished": name in finished}
        if same_as is not None or any(states.values()):
            yield {"kind": "tag", "tag": name, "same_as": same_as} | states
    for folder in incomplete_folders(database):
        yield {"kind": "incomplete", "folder": folder}
    digests = {c: d.hex() for c, d in database.rows("SELECT id, digest FROM contents")}
    names = ("content", "path", "tag", "verdict", "made_at", "confidence", "note")
    for *values, packed in database.rows(
        "SELECT d.content, (SELECT min(path) FROM photographs WHERE content = d.content), t.name, "
        "d.verdict, d.made_at, d.confidence, d.note, d.evidence "
        "FROM decisions d LEFT JOIN tags t ON t.id = d.tag WHERE d.holds ORDER BY d.id"
    ):
        decision = dict(zip(names, values, strict=True))
        decision["content"] = digests[decision["content"]]
        evidence = unpack_evidence(packed)
        decision["kin"] = [[digests[c], share] for c, share in evidence.kin if c in digests]
        decision |= {"name_share": evidence.name_share, "readout_share": evidence.readout_share}
        yield {"kind": "decision"} | decision


# --- import ------------------------------------------------------------------------------


@dataclass
class Imported:
    """Numbers of imported records, without records that the catalogue had already."""

    tags: int = 0
    """Edits of tags; each is a run that can be undone."""
    folders: int = 0
    """Folders that are incomplete now."""
    decisions: int = 0
    """Decisions, including finished photographs, in one run that can be undone."""


def import_lines(database: Database, lines: Iterable[str], *, dry_run: bool) -> Imported:
    """Import all lines or none; see `Catalogue.import_lines`."""
    imported = Imported()
    try:
        with database.transaction():
            _Import(database, imported).store(_parse(lines))
            if dry_run:
                raise _DryRun
    except _DryRun:
        pass
    return imported


class _DryRun(Exception):
    """Roll everything back."""


def _parse(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, object]]]:
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


class _NewDecision(NamedTuple):
    """A decision to store, with the numbers of its content and its tag."""

    content: int
    tag: int | None
    line: DecisionLine


class _Import:
    def __init__(self, database: Database, imported: Imported):
        self.database, self.imported = database, imported
        self.decisions: list[_NewDecision] = []
        self.finished: list[str] = []

    def store(self, lines: Iterator[tuple[int, dict[str, object]]]) -> None:
        for number, plain in lines:
            try:
                match read_line(plain):
                    case TagLine() as line:
                        self._edit_tag(line)
                    case IncompleteLine(folder):
                        self._declare_incomplete(folder)
                    case DecisionLine() as line:
                        self._prepare_decision(line)
            except (InvalidInput, StorageError) as error:
                reason = str(error).rstrip(".")
                raise InvalidInput(
                    f"Line {number} cannot be imported: {reason}. Nothing was imported."
                ) from error
        self._finish_tags()
        self._decide()

    def _edit_tag(self, line: TagLine) -> None:
        """Edit a tag as a person would, in a run that can be undone."""
        tags, name, into = Tags(self.database), line.tag, None
        number = tag_number(self.database, name)
        now = tags.count(number)
        changes = {
            "forget": line.forgotten and not now.is_forgotten,
            "hide": line.hidden and not now.is_hidden,
        }
        if line.same_as is not None:
            new = tag_number(self.database, line.same_as)
            into, changes = tags.count(new).name, {"merge": number != new}
        for what in (what for what, is_new in changes.items() if is_new):
            tags.change(what, [name], into)
            self.imported.tags += 1
        if line.finished:
            self.finished.append(name)

    def _declare_incomplete(self, folder: str) -> None:
        if Completeness(self.database).declare_incomplete(folder).run is not None:
            self.imported.folders += 1

    def _finish_tags(self) -> None:
        """Record finished tags; their rejections are among the decisions."""
        known = Completeness(self.database).finished_tags()
        if new := [name for name in self.finished if name not in known]:
            with self.database.run("finish", {"tags": new}):
                pass

    def _prepare_decision(self, line: DecisionLine) -> None:
        """Keep a decision to store, unless the catalogue knows it or a later one applies."""
        tag = None if line.tag is None else tag_number(self.database, line.tag)
        content = add_content(self.database, line.content)
        if not self.database.row(
            "SELECT 1 FROM decisions WHERE content = ?1 AND tag IS ?2 "
            "AND (made_at = ?3 AND verdict = ?4 OR holds AND made_at >= ?3)",
            (content, tag, line.made_at, line.verdict),
        ):
            self.decisions.append(_NewDecision(content, tag, line))

    def _decide(self) -> None:
        """Store the decisions in one run; finished photographs come last and reject the rest."""
        if not self.decisions:
            return
        with self.database.run("import") as run:
            for new in sorted(self.decisions, key=lambda new: (new.tag is None, new.line.made_at)):
                content, tag, line = new
                if tag is None:
                    decide_suggestions(
                        self.database, "s.content = ?", (content,), run.id, REJECTED, line.note
                    )
                shown = self._read_origin(line)
                store_decision(
                    self.database, run.id, (content, tag), line.verdict, line.note, shown
                )
                self.database.execute(
                    # nobody knows whether files had the tag then, so nothing is removed from them
                    "UPDATE decisions SET made_at = ?, was_in_files = 0 "
                    "WHERE content = ? AND tag IS ? AND holds",
                    (line.made_at, content, tag),
                )
            run.outcome["decisions"] = self.imported.decisions = len(self.decisions)

    def _read_origin(self, line: DecisionLine) -> Origin:
        """Return the suggestion that a decision answered where it was exported."""
        kin = [(add_content(self.database, digest), share) for digest, share in line.kin]
        evidence = pack_evidence(kin, line.name_share, line.readout_share)
        return Origin(None, line.confidence, evidence)
