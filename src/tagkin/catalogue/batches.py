"""What a person decides in one step on the review page: one run, and one undo takes it back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tagkin.catalogue.catalogue import Catalogue, now
from tagkin.catalogue.decisions import ACCEPTED, REJECTED, Decided, take_back
from tagkin.catalogue.found import TagNumbers, spelled
from tagkin.errors import InvalidInput

__all__ = [
    "Batch",
    "Pair",
    "Shown",
    "accepted_together",
    "decide_batch",
    "last_batch",
    "last_undone",
    "redo_batch",
    "undo_batch",
    "verdicts_of",
]

Pair = tuple[int, int | str]
"""A content and a tag: its number, or a name, which may be new."""


class Shown(NamedTuple):
    """A content and a tag that a page asked about, and what the page showed of them."""

    content: int
    tag: int | str
    confidence: float | None = None
    """The confidence of the suggestion."""
    run: int | None = None
    """The run that suggested the tag."""


TOGETHER = (
    "({0}.verdict = 1 AND EXISTS (SELECT 1 FROM runs u WHERE u.id = {0}.run "
    "AND json_extract(u.parameters, '$.together')))"
)
"""A decision that accepted the rest of a page."""

_DECIDED = "r.what IN ('accept', 'reject', 'review')"


@dataclass(frozen=True)
class Batch:
    """What was decided in one step."""

    run: int | None
    """By which it can be taken back; None where nothing was decided."""
    accepted: Sequence[tuple[int, int]]
    """Contents and tags, by number."""
    rejected: Sequence[tuple[int, int]]
    n_already: int = 0
    """Pairs that stay unchanged, because they were decided before."""
    n_kept: int = 0
    """Those among them that keep another verdict than the one asked for."""

    def __len__(self) -> int:
        return len(self.accepted) + len(self.rejected)


class _PairState(NamedTuple):
    """A content and a tag to decide on, and what the catalogue knows of them."""

    content: int
    tag: int
    verdict: int
    """The verdict to store."""
    is_suggested: int
    held: int | None
    """The verdict that holds."""
    held_run: int | None
    """The run of that verdict."""
    is_found: int
    """Whether files carry the tag."""
    is_doubted: int
    """Whether it seems wrong there."""
    was_together: int
    """Whether it was accepted with the rest of a page."""
    shown: Shown | None = None
    """What the page showed, if it asked about this pair."""

    def changes_anything(self, together: bool) -> bool:
        """Whether storing the verdict would change what the catalogue says."""
        if self.held == self.verdict:
            return bool(self.was_together and not together)  # a person now looked at it by itself
        is_answer = self.is_suggested or self.held or self.is_doubted or self.shown
        return bool(is_answer or not self.is_found or self.verdict == REJECTED)


def decide_batch(
    catalogue: Catalogue,
    accepted: Sequence[Pair | Shown] = (),
    rejected: Sequence[Pair | Shown] = (),
    *,
    only_open: bool = False,
    together: bool = False,
    repeats: Collection[int | None] = (),
) -> Batch:
    """Accept and reject tags of photographs, all in one run.

    What a person decides about what a page showed is stored, even if the suggestion was replaced
    or removed since. Pass `Shown` to keep the confidence that the page showed.

    Parameters
    ----------
    catalogue : Catalogue
        Open for writing. The decisions are on the disk when this returns.
    accepted, rejected : sequences of (content, tag) or Shown
        Accepting a tag that files carry changes nothing, unless a page asked about it, it seemed
        wrong there, or it was rejected before.
    only_open : bool, default False
        Keep decisions that hold already, as those of another window.
    together : bool, default False
        The accepted pairs are the rest of a page, which nobody has looked at one by one: a wrong
        one may be among them. See `accepted_together`.
    repeats : collection of int, default ()
        Runs of earlier attempts at the same step, whose answers got lost. `only_open` does not
        keep their decisions.

    Raises
    ------
    InvalidInput
        If a content or the number of a tag is unknown, or if a pair is both accepted and rejected.
    """
    with catalogue.transaction() as connection:
        wanted: dict[tuple[int, int], tuple[int, Shown | None]] = {}
        numbers: dict[int | str, int] = {}
        for verdict, pairs in ((ACCEPTED, accepted), (REJECTED, rejected)):
            for pair in pairs:
                content, tag = pair[0], pair[1]
                if tag not in numbers:
                    numbers[tag] = _number(connection, tag)
                shown = pair if isinstance(pair, Shown) else None
                if wanted.setdefault((content, numbers[tag]), (verdict, shown))[0] != verdict:
                    raise InvalidInput("A tag of a photograph is both accepted and rejected.")
        states = _pair_states(connection, wanted)
        kept = {one[:2] for one in states if only_open and one.held and one.held_run not in repeats}
        changes = [one for one in states if one[:2] not in kept and one.changes_anything(together)]
        n_already = len(accepted) + len(rejected) - len(changes)
        n_kept = sum(one[:2] in kept and one.held != one.verdict for one in states)
        if not changes:
            return Batch(None, [], [], n_already, n_kept)
        with catalogue.run("review", {"together": True} if together else None) as run:
            for one in changes:
                _put(connection, run.id, one)
            run.outcome["decisions"] = len(changes)
    yes, no = ([one[:2] for one in changes if one.verdict == v] for v in (ACCEPTED, REJECTED))
    return Batch(run.id, yes, no, n_already, n_kept)


def _number(connection: sqlite3.Connection, name: int | str) -> int:
    """Of a tag by name, in whatever spelling; one that is new gets a number.

    A tag that was merged into another has the number of the other.
    """
    if isinstance(name, int):
        row = connection.execute("SELECT same_as FROM tags WHERE id = ?", (name,)).fetchone()
        return name if row is None or row[0] is None else int(row[0])
    name = spelled(lambda query, values: connection.execute(query, values).fetchone(), name)
    row = connection.execute(
        "SELECT coalesce(same_as, id) FROM tags WHERE name = ?", (name,)
    ).fetchone()
    return TagNumbers(connection)[name] if row is None else int(row[0])


def _pair_states(
    connection: sqlite3.Connection, wanted: dict[tuple[int, int], tuple[int, Shown | None]]
) -> list[_PairState]:
    """Look up what is known of each pair."""
    data = json.dumps([[content, tag, v] for (content, tag), (v, _) in wanted.items()])
    rows = connection.execute(
        "SELECT w.content, w.tag, w.verdict, s.run IS NOT NULL, d.verdict, d.run, "
        "EXISTS (SELECT 1 FROM photographs p JOIN found f ON f.photograph = p.id "
        "WHERE p.content = w.content AND f.tag = w.tag), "
        "EXISTS (SELECT 1 FROM doubts o WHERE o.content = w.content AND o.tag = w.tag "
        "AND o.kind = 'wrong'), "
        f"{TOGETHER.format('d')} "
        "FROM (SELECT json_extract(value, '$[0]') AS content, json_extract(value, '$[1]') AS tag, "
        "json_extract(value, '$[2]') AS verdict FROM json_each(?)) w "
        "JOIN contents c ON c.id = w.content JOIN tags t ON t.id = w.tag "
        "LEFT JOIN suggestions s ON s.content = w.content AND s.tag = w.tag "
        "LEFT JOIN decisions d ON d.content = w.content AND d.tag = w.tag AND d.holds",
        (data,),
    ).fetchall()
    if len(rows) < len(wanted):
        raise InvalidInput(
            f"{len(wanted) - len(rows):,} of {len(wanted):,} photographs or tags are not in the "
            "catalogue."
        )
    return [_PairState(*row)._replace(shown=wanted[row[0], row[1]][1]) for row in rows]


def _put(connection: sqlite3.Connection, run: int, one: _PairState) -> None:
    pair = one.content, one.tag
    origin = _origin(connection, one)
    connection.execute(
        "UPDATE decisions SET holds = 0 WHERE content = ? AND tag = ? AND holds", pair
    )
    connection.execute(
        "INSERT INTO decisions "
        "(run, content, tag, verdict, made_at, suggested_by, confidence, evidence) "
        "VALUES (?, ?, ?, ?, ?, (SELECT id FROM runs WHERE id = ?), ?, ?)",
        (run, *pair, one.verdict, now(), *origin),
    )
    connection.execute("DELETE FROM suggestions WHERE content = ? AND tag = ?", pair)


def _origin(connection: sqlite3.Connection, one: _PairState) -> tuple[Any, Any, Any]:
    """Find the suggestion that a decision answers: its run, confidence and evidence.

    That is the open suggestion, else the one that the page showed, else the one that the decision
    before answered.
    """
    pair = one.content, one.tag
    row = connection.execute(
        "SELECT run, confidence, evidence FROM suggestions WHERE content = ? AND tag = ?", pair
    ).fetchone()
    if row is None and one.shown is not None and one.shown.confidence is not None:
        row = one.shown.run, one.shown.confidence, b""
    if row is None:
        row = connection.execute(
            "SELECT suggested_by, confidence, evidence FROM decisions WHERE content = ? "
            "AND tag = ? AND taken_back_by IS NULL ORDER BY id DESC LIMIT 1",
            pair,
        ).fetchone()
    return row or (None, None, None)


def accepted_together(
    catalogue: Catalogue, pairs: Sequence[tuple[int, int]]
) -> set[tuple[int, int]]:
    """Contents and tags, of those given, that were accepted with the rest of a page and hold."""
    rows = catalogue.rows(
        "SELECT d.content, d.tag FROM (SELECT json_extract(value, '$[0]') AS content, "
        "json_extract(value, '$[1]') AS tag FROM json_each(?)) w JOIN decisions d "
        f"ON d.content = w.content AND d.tag = w.tag AND d.holds AND {TOGETHER.format('d')}",
        (json.dumps([list(pair) for pair in pairs]),),
    )
    return {(content, tag) for content, tag in rows}


# --- taking back -------------------------------------------------------------------------


def last_batch(catalogue: Catalogue) -> int | None:
    """The last run that decided something which still holds; None where there is none.

    What was written into files is not looked at: taking that back is `undo_run`.
    """
    found: int | None = catalogue.value(
        f"SELECT r.id FROM runs r WHERE {_DECIDED} AND EXISTS "
        "(SELECT 1 FROM decisions d WHERE d.run = r.id AND d.holds) ORDER BY r.id DESC LIMIT 1"
    )
    return found


def last_undone(catalogue: Catalogue) -> int | None:
    """The last undo that can be taken back: nothing was decided since."""
    found: int | None = catalogue.value(
        "SELECT u.id FROM runs u JOIN runs r ON r.id = u.undoes WHERE u.what = 'undo' "
        f"AND {_DECIDED} AND NOT EXISTS (SELECT 1 FROM runs a WHERE a.undoes = u.id) "
        "AND u.id > coalesce((SELECT max(r.id) FROM runs r WHERE "
        f"{_DECIDED}), 0) ORDER BY u.id DESC LIMIT 1"
    )
    return found


def verdicts_of(catalogue: Catalogue, run: int) -> list[tuple[int, int, int | None]]:
    """What holds now of all that a run decided, or took back: content, tag and verdict.

    The verdict is None where nothing holds.
    """
    while (undone := catalogue.value("SELECT undoes FROM runs WHERE id = ?", (run,))) is not None:
        run = undone
    rows = catalogue.rows(
        "SELECT d.content, d.tag, (SELECT verdict FROM decisions h WHERE h.content = d.content "
        "AND h.tag = d.tag AND h.holds) FROM decisions d WHERE d.run = ?",
        (run,),
    )
    return [(content, tag, verdict) for content, tag, verdict in rows]


def undo_batch(catalogue: Catalogue) -> Decided:
    """Take back the last step; time after time, all of them."""
    run = last_batch(catalogue)
    return Decided(None, []) if run is None else take_back(catalogue, run)


def redo_batch(catalogue: Catalogue) -> Decided:
    """Let what was taken back last hold again, unless something was decided since."""
    run = last_undone(catalogue)
    return Decided(None, []) if run is None else take_back(catalogue, run)
