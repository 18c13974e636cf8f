"""Doubts: tags that seem wrong on a photograph, or missing from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tagkin.catalogue.columns import pack_evidence, unpack_evidence
from tagkin.catalogue.database import ALL, LISTED, CataloguePart, Row, SqlValue, as_list
from tagkin.catalogue.decision_records import ACCEPTED_TOGETHER, FINISHED
from tagkin.catalogue.selection import Selected
from tagkin.catalogue.suggestions import PATH_OF_CONTENT, StoredKin, locate_kin, number_kin
from tagkin.catalogue.tag_records import tag_number

if TYPE_CHECKING:
    from tagkin.annotator import Finding

__all__ = ["Doubt", "Doubts"]


class Doubt(NamedTuple):
    """A tag that seems wrong on a photograph, or missing from it."""

    content: int
    path: str
    tag: str
    kind: str
    confidence: float
    kin: Sequence[StoredKin]
    was_accepted: bool = False
    """Whether it was accepted with the rest of a page."""


class Doubts(CataloguePart):
    """The doubts of a catalogue: ``catalogue.doubts``."""

    def replace(self, run: int, findings: Iterable[Finding], contents: Mapping[str, int]) -> int:
        """Replace all doubts by the findings of an audit in a run; return how many were stored.

        `contents` are the numbers of photographs by their files; others are omitted.
        """
        with self._db.transaction():
            rows = [
                (
                    contents[f.file],
                    tag_number(self._db, f.tag),
                    run,
                    f.kind,
                    f.confidence,
                    pack_evidence(number_kin(f.kin, contents)),
                )
                for f in findings
                if f.file in contents
            ]
            self._db.execute("DELETE FROM doubts")
            statement = "INSERT OR IGNORE INTO doubts VALUES (?, ?, ?, ?, ?, ?)"
            self._db.execute_many(statement, rows)
        return len(rows)

    def list_open(
        self,
        kind: str | None = None,
        n: int = ALL,
        start: int = 0,
        selected: Selected | None = None,
    ) -> list[Doubt]:
        """Return tags that seem wrong or missing and are undecided, most confident first.

        Tags that were accepted with the rest of a page, before the doubt, count as undecided. No
        tag is missing from a finished photograph.
        """
        condition, values = ("d.kind = ? AND", list[SqlValue]([kind])) if kind else ("", [])
        if selected is not None:
            doubted = self._db.column("SELECT DISTINCT content FROM doubts")
            wanted = [c for c, has in zip(doubted, selected.has(doubted), strict=True) if has]
            # the + keeps SQLite at the index by confidence, so it stops after n rows
            condition += f" +d.content {LISTED} AND"
            values.append(as_list(wanted))
        rows = self._db.rows(
            f"SELECT d.content, {PATH_OF_CONTENT.format('d')}, t.name, d.kind, d.confidence, "
            "d.evidence, EXISTS (SELECT 1 FROM decisions a WHERE a.content = d.content "
            "AND a.tag = d.tag AND a.holds) "
            f"FROM doubts d JOIN tags t ON t.id = d.tag WHERE {condition} NOT EXISTS "
            "(SELECT 1 FROM decisions o WHERE o.content = d.content AND o.tag = d.tag AND o.holds "
            f"AND NOT (o.run < d.run AND {ACCEPTED_TOGETHER.format('o')})) "
            f"AND NOT (d.kind = 'missing' AND {FINISHED.format('d.content')}) "
            "ORDER BY d.confidence DESC, d.content LIMIT ? OFFSET ?",
            [*values, n, start],
        )
        return self._with_kin(rows)

    def among_accepted(
        self, n: int | None = None, start: int = 0, selected: Selected | None = None
    ) -> list[Doubt]:
        """Return tags that were accepted with the rest of a page, least confident first.

        Nobody looked at each of them, so some may be wrong. `selected` are the photographs that
        filters leave.
        """
        rows = self._db.rows(
            f"SELECT d.content, {PATH_OF_CONTENT.format('d')}, t.name, 'accepted', d.confidence, "
            "d.evidence, 1 FROM decisions d JOIN tags t ON t.id = d.tag "
            f"WHERE d.holds AND d.confidence IS NOT NULL AND {ACCEPTED_TOGETHER.format('d')} "
            "ORDER BY d.confidence, d.content, d.tag"
        )
        rows = [row for row in rows if row[1]]
        if selected is not None:
            has = selected.has([row[0] for row in rows])
            rows = [rows[i] for i in has.nonzero()[0].tolist()]
        return self._with_kin(rows[start:][:n])

    def select_undecided(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return the findings of an audit that are undecided, with current tag names."""
        rows = self._db.rows(
            "SELECT s.name, CASE WHEN t.forgotten THEN NULL ELSE t.name END "
            "FROM tags s JOIN tags t ON t.id = coalesce(s.same_as, s.id)"
        )
        names: dict[str, str | None] = dict(rows)
        decided = self._pairs("decisions o JOIN photographs p ON p.content = o.content AND o.holds")
        in_files = self._pairs("found o JOIN photographs p ON p.id = o.photograph")
        paths = self._db.column(
            f"SELECT p.path FROM photographs p WHERE {FINISHED.format('p.content')}"
        )
        finished = set(map(self._db.absolute, paths))
        undecided: dict[tuple[str, str, str], Finding] = {}
        for finding in findings:
            tag = names.get(finding.tag, finding.tag)
            if tag is None:
                continue
            pair = finding.file, tag
            is_no_gap = finding.kind == "missing" and (pair in in_files or pair[0] in finished)
            if pair not in decided and not is_no_gap:
                undecided.setdefault((*pair, finding.kind), dataclasses.replace(finding, tag=tag))
        return list(undecided.values())

    def _pairs(self, tables: str) -> set[tuple[str, str]]:
        """Return existing files and tags in a join of tables `o` and `p`."""
        rows = self._db.rows(
            f"SELECT p.path, t.name FROM {tables} JOIN tags t ON t.id = o.tag WHERE p.gone IS NULL"
        )
        return {(self._db.absolute(path), tag) for path, tag in rows}

    def _with_kin(self, rows: Sequence[Row]) -> list[Doubt]:
        kin_lists = locate_kin(self._db, [unpack_evidence(row[5]).kin for row in rows])
        return [
            Doubt(content, path, tag, kind, confidence, kin, bool(was_accepted))
            for (content, path, tag, kind, confidence, _, was_accepted), kin in zip(
                rows, kin_lists, strict=True
            )
        ]
