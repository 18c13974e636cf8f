"""What a person decided: accepted, rejected, and taken back.

A decision is about a content and a tag. It is never deleted: a later one on the same two takes
its place. So the history is whole, and every step can be taken back.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tagkin.catalogue.catalogue import Catalogue, now
from tagkin.catalogue.filters import Filters, content_of
from tagkin.catalogue.found import TagNumbers, spelled
from tagkin.errors import InvalidInput
from tagkin.labels import normalize_tag

__all__ = [
    "ACCEPTED",
    "REJECTED",
    "Decided",
    "OnTag",
    "decide",
    "decided_tags",
    "open_again",
    "take_back",
]

ACCEPTED, REJECTED = 1, -1
_COMMANDS = {ACCEPTED: "accept", REJECTED: "reject"}


class OnTag(NamedTuple):
    """A tag of a photograph that is decided on."""

    path: str
    tag: str
    confidence: float | None
    """None where nobody suggested it."""
    run: int | None
    """The run that suggested it."""
    copies: Sequence[str] = ()
    """Other files of the same content: the decision is on these, too."""


@dataclass(frozen=True)
class Decided:
    """What a decision was about."""

    run: int | None
    """Its own run, by which it can be taken back; None where nothing was decided."""
    each: Sequence[OnTag]
    n_kept: int = 0
    """How many decisions of an undone run later decisions had replaced; the later ones stay."""

    def __len__(self) -> int:
        return len(self.each)


def decide(
    catalogue: Catalogue,
    verdict: int,
    filters: Filters,
    *,
    note: str | None = None,
    dry_run: bool = False,
) -> Decided:
    """Accept or reject all suggestions that pass the filters.

    Where photographs and tags are named and nothing else, the decision holds also for tags that
    nobody suggested.

    Parameters
    ----------
    catalogue : Catalogue
    verdict : `ACCEPTED` or `REJECTED`
    filters : Filters
    note : str, optional
        A word on why, kept with the decisions.
    dry_run : bool, default False
        Decide nothing; return what would be decided.
    """
    if verdict not in _COMMANDS:
        raise InvalidInput(f"A verdict is 1 (accepted) or -1 (rejected); found {verdict!r}.")
    new_tags = filters.names_pairs and verdict == ACCEPTED
    condition, values = filters.conditions(catalogue, "s", new_tags=new_tags)
    pairs = _named_pairs(catalogue, verdict, filters)
    if dry_run:
        return Decided(None, [*_chosen(catalogue, filters, condition, values), *pairs])
    with catalogue.transaction() as connection:
        each = [*_chosen(catalogue, filters, condition, values), *pairs]
        if not each:
            return Decided(None, [])
        with catalogue.run(_COMMANDS[verdict], filters.to_dict()) as run:
            _take_suggestions(connection, condition, values, run.id, verdict, note)
            for pair in pairs:
                _put_pair(connection, catalogue, pair, run.id, verdict, note)
            run.outcome["decisions"] = len(each)
    return Decided(run.id, each)


def _chosen(
    catalogue: Catalogue, filters: Filters, condition: str, values: list[Any]
) -> list[OnTag]:
    rows = catalogue.rows(
        "SELECT s.content, t.name, s.confidence, s.run "
        "FROM suggestions s JOIN tags t ON t.id = s.tag "
        f"WHERE {condition} ORDER BY s.confidence DESC",
        values,
    )
    files = _files_of(catalogue, filters, {content for content, *_ in rows})
    return [
        OnTag(files[content][0], tag, confidence, run, files[content][1:])
        for content, tag, confidence, run in rows
        if content in files
    ]


def _files_of(
    catalogue: Catalogue, filters: Filters, contents: Iterable[int]
) -> dict[int, list[str]]:
    """Return the files of each content by path, first those that the filters name."""
    place, values = filters.places("p")
    found: dict[int, list[str]] = {}
    for content, path in catalogue.rows(
        "SELECT p.content, p.path FROM photographs p WHERE p.gone IS NULL "
        f"AND p.content IN (SELECT value FROM json_each(?)) ORDER BY NOT ({place}), p.path",
        (json.dumps(list(contents)), *values),
    ):
        found.setdefault(content, []).append(path)
    return found


def _take_suggestions(
    connection: sqlite3.Connection,
    condition: str,
    values: list[Any],
    run: int,
    verdict: int,
    note: str | None,
) -> None:
    """Make decisions of suggestions."""
    connection.execute("DROP TABLE IF EXISTS temp.chosen")
    connection.execute(
        f"CREATE TEMP TABLE chosen AS SELECT * FROM suggestions s WHERE {condition}",
        values,
    )
    connection.execute(
        "INSERT INTO decisions "
        "(run, content, tag, verdict, made_at, suggested_by, confidence, evidence, note) "
        "SELECT ?, content, tag, ?, ?, run, confidence, evidence, ? FROM temp.chosen",
        (run, verdict, now(), note),
    )
    connection.execute(
        "DELETE FROM suggestions WHERE (content, tag) IN (SELECT content, tag FROM temp.chosen)"
    )
    connection.execute("DROP TABLE temp.chosen")


# --- tags that nobody suggested ----------------------------------------------------------


def _named_pairs(catalogue: Catalogue, verdict: int, filters: Filters) -> list[OnTag]:
    """Photographs and tags that were named and not suggested, where the decision is new."""
    if not filters.names_pairs:
        return []
    pairs = []
    names: dict[str, str] = {}
    for name in (spelled(catalogue.row, typed) for typed in filters.tags):
        names.setdefault(normalize_tag(name), name)
    contents = {content_of(catalogue, path) for path in filters.photographs}
    files = _files_of(catalogue, filters, contents)
    for content, (path, *copies) in sorted(files.items(), key=lambda one: one[1]):
        for name in names.values():
            found = catalogue.row(
                "SELECT EXISTS (SELECT 1 FROM suggestions WHERE content = ?1 AND tag = t.id), "
                "(SELECT verdict FROM decisions WHERE content = ?1 AND tag = t.id AND holds), "
                "EXISTS (SELECT 1 FROM found f JOIN photographs p ON p.id = f.photograph "
                "WHERE p.content = ?1 AND f.tag = t.id) "
                "FROM tags s JOIN tags t ON t.id = coalesce(s.same_as, s.id) WHERE s.name = ?2",
                (content, name),
            )
            is_suggested, held, is_found = found or (0, None, 0)
            is_news = held != verdict and not (is_found and verdict == ACCEPTED and not held)
            if not is_suggested and is_news:
                pairs.append(OnTag(path, name, None, None, copies))
    return pairs


def _put_pair(
    connection: sqlite3.Connection,
    catalogue: Catalogue,
    pair: OnTag,
    run: int,
    verdict: int,
    note: str | None,
) -> None:
    content, tag = content_of(catalogue, pair.path), TagNumbers(connection)[pair.tag]
    # a decision that replaces another one answers the same suggestion
    answered = connection.execute(
        "SELECT suggested_by, confidence, evidence FROM decisions "
        "WHERE content = ? AND tag = ? AND holds",
        (content, tag),
    ).fetchone()
    _end(connection, content, tag)
    connection.execute(
        "INSERT INTO decisions "
        "(run, content, tag, verdict, made_at, note, suggested_by, confidence, evidence) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (run, content, tag, verdict, now(), note, *(answered or (None, None, None))),
    )
    if verdict == REJECTED:
        connection.execute(
            "DELETE FROM doubts WHERE content = ? AND tag = ? AND kind = 'wrong'", (content, tag)
        )


def _end(connection: sqlite3.Connection, content: int, tag: int) -> None:
    connection.execute(
        "UPDATE decisions SET holds = 0 WHERE content = ? AND tag = ? AND holds", (content, tag)
    )


# --- taking back -------------------------------------------------------------------------


def take_back(catalogue: Catalogue, run: int, *, dry_run: bool = False) -> Decided:
    """Undo the decisions of a run: earlier decisions hold again, or suggestions are open again.

    If the run is an undo, the decisions that it took back hold again. Later decisions on the same
    photographs and tags stay. Undoing several runs gives the same result in any order.
    """
    is_undo = catalogue.value("SELECT undoes FROM runs WHERE id = ?", (run,)) is not None
    if is_undo:
        mine = "d.taken_back_by = ?"
        is_last = (
            "NOT EXISTS (SELECT 1 FROM decisions h WHERE h.content = d.content "
            "AND h.tag = d.tag AND h.holds AND h.id > d.id)"
        )
    else:
        mine, is_last = "d.run = ? AND d.taken_back_by IS NULL", "d.holds"
    rows = catalogue.rows(
        f"SELECT d.id, d.content, d.tag, {is_last}, (SELECT path FROM photographs "
        "WHERE content = d.content ORDER BY gone IS NOT NULL, path LIMIT 1), t.name, "
        "d.confidence, d.suggested_by FROM decisions d JOIN tags t ON t.id = d.tag "
        f"WHERE {mine} ORDER BY d.id",
        (run,),
    )
    if not rows:
        raise InvalidInput(
            f"Run {run} has no decisions left to take back. `tagkin history` lists runs."
        )
    # of a photograph that was edited, decisions are on what it was as well
    each = [OnTag(*row[4:]) for row in rows if row[3] and row[4] is not None]
    n_kept = sum(not row[3] for row in rows)
    if dry_run:
        return Decided(None, each, n_kept)
    with (
        catalogue.transaction() as connection,
        catalogue.run("undo", {"run": run}, undoes=run) as this,
    ):
        for number, content, tag, is_last_decision, *_ in rows:
            connection.execute(
                "UPDATE decisions SET taken_back_by = ? WHERE id = ?",
                (None if is_undo else this.id, number),
            )
            if is_last_decision and is_undo:
                _hold_again(connection, number, content, tag)
            elif is_last_decision:
                _let_go(connection, number, content, tag)
        this.outcome["decisions"] = len(each)
    return Decided(this.id, each, n_kept)


def _let_go(connection: sqlite3.Connection, number: int, content: int, tag: int) -> None:
    """Let the decision that this one replaced hold again, or open the suggestion again."""
    _end(connection, content, tag)
    before = connection.execute(
        "SELECT max(id) FROM decisions WHERE content = ? AND tag = ? AND taken_back_by IS NULL",
        (content, tag),
    ).fetchone()[0]
    if before is not None:
        connection.execute("UPDATE decisions SET holds = 1 WHERE id = ?", (before,))
    else:
        _open_again(connection, number)


def open_again(connection: sqlite3.Connection, photograph: int, tags: Iterable[int]) -> None:
    """Let tags that no file carries any more be suggested, where taking a decision back could not.

    It was taken back while the tag still stood in a file.
    """
    for tag in tags:
        rows = connection.execute(
            "SELECT d.id, d.holds, d.taken_back_by FROM decisions d JOIN photographs p "
            "ON p.content = d.content WHERE p.id = ? AND d.tag = ? ORDER BY d.id",
            (photograph, tag),
        ).fetchall()
        if rows and rows[-1][2] is not None and not any(holds for _, holds, _ in rows):
            _open_again(connection, rows[-1][0])


def _open_again(connection: sqlite3.Connection, number: int) -> None:
    """Let what a decision was about be a suggestion again.

    Not where a file carries the tag, and not where it is forgotten.
    """
    connection.execute(
        "INSERT OR IGNORE INTO suggestions (content, tag, run, confidence, evidence) "
        "SELECT content, tag, suggested_by, confidence, evidence FROM decisions d WHERE id = ? "
        "AND suggested_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM found f JOIN photographs p "
        "ON p.id = f.photograph WHERE p.content = d.content AND f.tag = d.tag) "
        "AND NOT EXISTS (SELECT 1 FROM tags t WHERE t.id = d.tag AND t.forgotten) "
        "AND EXISTS (SELECT 1 FROM photographs WHERE content = d.content AND gone IS NULL)",
        (number,),
    )


def _hold_again(connection: sqlite3.Connection, number: int, content: int, tag: int) -> None:
    """Let a decision that was taken back hold again."""
    _end(connection, content, tag)
    connection.execute("DELETE FROM suggestions WHERE content = ? AND tag = ?", (content, tag))
    connection.execute("UPDATE decisions SET holds = 1 WHERE id = ?", (number,))


def decided_tags(
    catalogue: Catalogue, verdict: int, *, suggested: bool = False
) -> dict[int, list[str]]:
    """Tags that a person accepted or rejected, by content: examples for the next fit.

    Only those that had been suggested, where `suggested`.
    """
    found: dict[int, list[str]] = {}
    for content, name in catalogue.rows(
        "SELECT d.content, t.name FROM decisions d JOIN tags t ON t.id = d.tag "
        "WHERE d.holds AND d.verdict = ? AND (d.suggested_by IS NOT NULL OR NOT ?) "
        "ORDER BY d.content, t.name",
        (verdict, suggested),
    ):
        found.setdefault(content, []).append(name)
    return found
