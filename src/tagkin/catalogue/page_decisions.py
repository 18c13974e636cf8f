"""Decisions that a person makes in one step on the review page, as one run."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tagkin.catalogue.database import Database
from tagkin.catalogue.decision_records import (
    ACCEPTED,
    ACCEPTED_TOGETHER,
    REJECTED,
    WITH_PAGE,
    Origin,
    accept_parents,
    store_decision,
)
from tagkin.catalogue.tag_records import IN_FILES, resolve_spelling, tag_number
from tagkin.errors import InvalidInput

__all__ = ["Batch", "Pair", "Shown", "decide_pairs", "pair_states"]

Pair = tuple[int, int | str]
"""A content and a tag: its number, or a name, which may be new."""


class Shown(NamedTuple):
    """A content and a tag that a page asked about, and the suggestion that it showed."""

    content: int
    tag: int | str
    confidence: float | None = None
    """The confidence of the suggestion."""
    run: int | None = None
    """The run that suggested the tag."""

    @property
    def origin(self) -> Origin | None:
        """The suggestion; None if there was none."""
        return None if self.confidence is None else Origin(self.run, self.confidence, b"")


@dataclass(frozen=True)
class Batch:
    """The decisions of one step."""

    run: int | None
    """The run, which can be undone; None if nothing changed."""
    accepted: Sequence[tuple[int, int]]
    """Contents and tags, by number."""
    rejected: Sequence[tuple[int, int]]
    n_already: int = 0
    """Pairs that stay unchanged, because they were decided before."""
    n_kept: int = 0
    """Unchanged pairs whose verdict differs from the requested verdict."""

    def __len__(self) -> int:
        return len(self.accepted) + len(self.rejected)


class _PairState(NamedTuple):
    """A content and a tag to decide on, and their state in the catalogue."""

    content: int
    tag: int
    verdict: int
    """The verdict to store."""
    is_suggested: int
    earlier: int | None
    """The verdict that applies so far."""
    earlier_run: int | None
    """The run of that verdict."""
    is_found: int
    """Whether files have the tag."""
    is_doubted: int
    """Whether it seems wrong there."""
    was_together: int
    """Whether it was accepted with the rest of a page."""
    shown: Shown | None = None
    """The suggestion that the page showed, if it asked about this pair."""

    @property
    def pair(self) -> tuple[int, int]:
        return self.content, self.tag

    def changes_anything(self, together: bool = False) -> bool:
        """Whether storing the verdict changes the catalogue."""
        if self.earlier == self.verdict:
            if self.verdict == REJECTED:
                return bool(self.is_found)  # somebody may have added it since
            return bool(self.was_together and not together)  # a person now looked at it alone
        is_answer = self.is_suggested or self.earlier or self.is_doubted or self.shown
        return bool(is_answer or not self.is_found or self.verdict == REJECTED)


def decide_pairs(
    database: Database,
    accepted: Sequence[Pair | Shown],
    rejected: Sequence[Pair | Shown],
    only_open: bool,
    together: bool,
    repeats: Collection[int | None],
) -> Batch:
    """Accept and reject tags of photographs; see `Decisions.decide_pairs`."""
    with database.transaction():
        wanted: dict[tuple[int, int], tuple[int, Shown | None]] = {}
        numbers: dict[int | str, int] = {}
        for verdict, pairs in ((ACCEPTED, accepted), (REJECTED, rejected)):
            for pair in pairs:
                content, tag = pair[0], pair[1]
                if tag not in numbers:
                    numbers[tag] = _number_of_tag(database, tag)
                shown = pair if isinstance(pair, Shown) else None
                if wanted.setdefault((content, numbers[tag]), (verdict, shown))[0] != verdict:
                    raise InvalidInput("A tag of a photograph is both accepted and rejected.")
        states = pair_states(database, wanted)
        unchanged = {
            state.pair
            for state in states
            if only_open and state.earlier and state.earlier_run not in repeats
        }
        changes = [
            state
            for state in states
            if state.pair not in unchanged and state.changes_anything(together)
        ]
        n_already = len(accepted) + len(rejected) - len(changes)
        n_kept = sum(s.pair in unchanged and s.earlier != s.verdict for s in states)
        if not changes:
            return Batch(None, [], [], n_already, n_kept)
        with database.run("review") as run:
            for state in changes:
                note = WITH_PAGE if together and state.verdict == ACCEPTED else None
                origin = None if state.shown is None else state.shown.origin
                store_decision(database, run.id, state.pair, state.verdict, note, origin)
            accept_parents(database, run.id)
            run.outcome["decisions"] = len(changes)
    yes, no = ([s.pair for s in changes if s.verdict == v] for v in (ACCEPTED, REJECTED))
    return Batch(run.id, yes, no, n_already, n_kept)


def _number_of_tag(database: Database, tag: int | str) -> int:
    """Return the current number of a tag, by number or by name; a new name is added."""
    if isinstance(tag, int):
        return database.value("SELECT coalesce(same_as, id) FROM tags WHERE id = ?", (tag,)) or tag
    return tag_number(database, resolve_spelling(database, tag))


def pair_states(
    database: Database, wanted: Mapping[tuple[int, int], tuple[int, Shown | None]]
) -> list[_PairState]:
    """Look up the state of each pair."""
    data = json.dumps([[*pair, verdict] for pair, (verdict, _) in wanted.items()])
    rows = database.rows(
        "SELECT w.content, w.tag, w.verdict, s.run IS NOT NULL, d.verdict, d.run, "
        f"{IN_FILES.format('w.content', 'w.tag')}, "
        "EXISTS (SELECT 1 FROM doubts o WHERE o.content = w.content AND o.tag = w.tag "
        "AND o.kind = 'wrong'), "
        f"{ACCEPTED_TOGETHER.format('d')} "
        "FROM (SELECT json_extract(value, '$[0]') AS content, json_extract(value, '$[1]') AS tag, "
        "json_extract(value, '$[2]') AS verdict FROM json_each(?)) w "
        "JOIN contents c ON c.id = w.content JOIN tags t ON t.id = w.tag "
        "LEFT JOIN suggestions s ON s.content = w.content AND s.tag = w.tag "
        "LEFT JOIN decisions d ON d.content = w.content AND d.tag = w.tag AND d.holds",
        (data,),
    )
    if len(rows) < len(wanted):
        raise InvalidInput(
            f"{len(wanted) - len(rows):,} of {len(wanted):,} photographs or tags are not in the "
            "catalogue."
        )
    return [_PairState(*row)._replace(shown=wanted[row[0], row[1]][1]) for row in rows]
