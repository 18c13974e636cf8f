"""What a person decides in one step on the review page: one run, and one undo takes it back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tagkin.catalogue.catalogue import Catalogue, now
from tagkin.catalogue.decisions import ACCEPTED, REJECTED, Decided, take_back
from tagkin.catalogue.found import TagNumbers, spelled
from tagkin.errors import InvalidInput

__all__ = [
    "Batch",
    "Pair",
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
    """Left as they were: decided before, as in another window."""

    def __len__(self) -> int:
        return len(self.accepted) + len(self.rejected)


class _AsItIs(NamedTuple):
    """A tag of a photograph that is to be decided on, and what is known of it."""

    content: int
    tag: int
    verdict: int
    """That is wanted."""
    is_suggested: int
    held: int | None
    """The verdict that holds."""
    is_found: int
    """Whether it stands in files."""
    is_doubted: int
    """Whether it seems wrong there."""
    was_together: int
    """Whether it was accepted with the rest of a page."""

    def is_news(self, only_open: bool, together: bool) -> bool:
        """Whether there is something to decide."""
        if only_open and not self.is_suggested:
            return False
        if self.held == self.verdict:
            return bool(self.was_together and not together)  # it was looked at by itself now
        says_more = self.is_suggested or self.held or self.is_doubted or not self.is_found
        return bool(says_more or self.verdict == REJECTED)


def decide_batch(
    catalogue: Catalogue,
    accepted: Sequence[Pair] = (),
    rejected: Sequence[Pair] = (),
    *,
    only_open: bool = False,
    together: bool = False,
) -> Batch:
    """Accept and reject tags of photographs, all in one run.

    Parameters
    ----------
    catalogue : Catalogue
        Open for writing. What was decided is on the disk when this returns.
    accepted, rejected : sequences of (content, tag)
        A tag that stands in the files of a photograph and is accepted counts as confirmed where
        there was a doubt about it, or where it was rejected before; otherwise it is no news.
    only_open : bool, default False
        Leave alone what is not suggested any more: a page of suggestions may be old.
    together : bool, default False
        What is accepted is the rest of a page, which nobody has looked at one by one: a wrong one
        may be among them. See `accepted_together`.

    Raises
    ------
    InvalidInput
        If a content or the number of a tag is unknown, or if a pair is both accepted and rejected.
    """
    with catalogue.transaction() as connection:
        wanted: dict[tuple[int, int], int] = {}
        numbers: dict[int | str, int] = {}
        for verdict, pairs in ((ACCEPTED, accepted), (REJECTED, rejected)):
            for content, tag in pairs:
                if tag not in numbers:
                    numbers[tag] = _number(connection, tag)
                pair = content, numbers[tag]
                if wanted.setdefault(pair, verdict) != verdict:
                    raise InvalidInput("A tag of a photograph is both accepted and rejected.")
        rows = _as_they_are(connection, wanted)
        news = [one for one in rows if one.is_news(only_open, together)]
        if not news:
            return Batch(None, [], [], len(rows))
        with catalogue.run("review", {"together": True} if together else None) as run:
            for one in news:
                _put(connection, run.id, one)
            run.outcome["decisions"] = len(news)
    yes, no = ([one[:2] for one in news if one.verdict == v] for v in (ACCEPTED, REJECTED))
    return Batch(run.id, yes, no, len(rows) - len(news))


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


def _as_they_are(
    connection: sqlite3.Connection, wanted: dict[tuple[int, int], int]
) -> list[_AsItIs]:
    """Pairs with what is known of each."""
    data = json.dumps([[content, tag, v] for (content, tag), v in wanted.items()])
    rows = connection.execute(
        "SELECT w.content, t.id, w.verdict, s.run IS NOT NULL, d.verdict, "
        "EXISTS (SELECT 1 FROM photographs p JOIN found f ON f.photograph = p.id "
        "WHERE p.content = w.content AND f.tag = t.id), "
        "EXISTS (SELECT 1 FROM doubts o WHERE o.content = w.content AND o.tag = t.id "
        "AND o.kind = 'wrong'), "
        f"{TOGETHER.format('d')} "
        "FROM (SELECT json_extract(value, '$[0]') AS content, json_extract(value, '$[1]') AS tag, "
        "json_extract(value, '$[2]') AS verdict FROM json_each(?)) w "
        "JOIN contents c ON c.id = w.content JOIN tags n ON n.id = w.tag "
        "JOIN tags t ON t.id = coalesce(n.same_as, n.id) "
        "LEFT JOIN suggestions s ON s.content = w.content AND s.tag = t.id "
        "LEFT JOIN decisions d ON d.content = w.content AND d.tag = t.id AND d.holds",
        (data,),
    ).fetchall()
    if len(rows) < len(wanted):
        raise InvalidInput(
            f"{len(wanted) - len(rows):,} of {len(wanted):,} photographs or tags are not in the "
            "catalogue."
        )
    return [_AsItIs(*row) for row in rows]


def _put(connection: sqlite3.Connection, run: int, one: _AsItIs) -> None:
    pair: dict[str, Any] = {
        "run": run,
        "content": one.content,
        "tag": one.tag,
        "verdict": one.verdict,
    }
    pair |= {"now": now()}
    connection.execute(
        "UPDATE decisions SET holds = 0 WHERE content = :content AND tag = :tag AND holds", pair
    )
    connection.execute(
        "INSERT INTO decisions "
        "(run, content, tag, verdict, made_at, suggested_by, confidence, evidence) "
        "SELECT :run, :content, :tag, :verdict, :now, coalesce(s.run, b.suggested_by), "
        "coalesce(s.confidence, b.confidence), coalesce(s.evidence, b.evidence) FROM (SELECT 1) "
        "LEFT JOIN suggestions s ON s.content = :content AND s.tag = :tag "
        "LEFT JOIN decisions b ON b.id = (SELECT max(id) FROM decisions "
        "WHERE content = :content AND tag = :tag AND taken_back_by IS NULL)",
        pair,
    )
    connection.execute("DELETE FROM suggestions WHERE content = :content AND tag = :tag", pair)


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
