"""Deciding on tags, with filters or in a step on the review page, and undoing decisions."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tagkin.catalogue.database import LISTED, CataloguePart, Database, as_list, set_fields
from tagkin.catalogue.decision_records import (
    ACCEPTED,
    ACCEPTED_TOGETHER,
    BY_FILTER,
    IS_ANSWER,
    REJECTED,
    WITH_PAGE,
    Origin,
    accept_parents,
    decide_suggestions,
    hold_again,
    revert,
    store_decision,
)
from tagkin.catalogue.filters import Filters
from tagkin.catalogue.photographs import Photographs
from tagkin.catalogue.runs import DECIDING, STANDING_EDIT, Runs
from tagkin.catalogue.tag_edits import is_edit, undo_edit
from tagkin.catalogue.tag_records import IN_FILES, SAME_TAG, resolve_spelling, tag_number
from tagkin.catalogue.tags import Tags
from tagkin.errors import InvalidInput

__all__ = ["Batch", "Decided", "DecidedTag", "Decisions", "Pair", "Shown", "decided_by"]

_COMMANDS = {ACCEPTED: "accept", REJECTED: "reject"}
_EDITING = "EXISTS (SELECT 1 FROM tag_changes c WHERE c.run = r.id)"


class DecidedTag(NamedTuple):
    """A decision on a tag of a photograph."""

    path: str
    tag: str
    confidence: float | None
    """None if it was not suggested."""
    run: int | None
    """The run that suggested it."""
    copies: Sequence[str] = ()
    """Other files of the same content; the decision applies to them as well."""


@dataclass(frozen=True)
class Decided:
    """Decisions that were made or undone."""

    run: int | None
    """Their run, which can be undone; None if nothing changed."""
    each: Sequence[DecidedTag]
    n_kept: int = 0
    """Decisions of an undone run that later decisions had replaced; the later ones stay."""
    finished: Sequence[str] = ()
    """Photographs that are finished now, or no longer after an undo, by path."""
    edited: Sequence[str] = ()
    """Tags whose edit was undone or redone."""

    def __len__(self) -> int:
        return len(self.each)


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


class Decisions(CataloguePart):
    """The decisions of a catalogue: ``catalogue.decisions``."""

    def decide(self, verdict: int, filters: Filters) -> Decided:
        """Accept or reject all suggestions that match the filters.

        If the filters name photographs and tags and nothing else, the tags need not be suggested.
        """
        if verdict not in _COMMANDS:
            raise InvalidInput(f"verdict must be 1 (accepted) or -1 (rejected); found {verdict!r}.")
        with self._db.transaction():
            if filters.names_pairs:
                pairs = self._named_pairs(verdict, filters)
            else:
                condition, values = filters.sql_condition(self._db, "s")
                query = f"SELECT content, tag FROM suggestions s WHERE {condition} LIMIT 1"
                pairs = self._db.rows(query, values)
            if not pairs:
                return Decided(None, [])
            with self._db.run(_COMMANDS[verdict], set_fields(vars(filters))) as run:
                if filters.names_pairs:
                    for pair in pairs:
                        store_decision(self._db, run.id, pair, verdict)
                else:
                    note = BY_FILTER if verdict == ACCEPTED and not filters.photographs else None
                    decide_suggestions(self._db, condition, values, run.id, verdict, note)
                if verdict == ACCEPTED:
                    accept_parents(self._db, run.id)
                each = decided_by(self._db, run.id, filters)
                run.outcome["decisions"] = len(each)
        return Decided(run.id, each)

    def _named_pairs(self, verdict: int, filters: Filters) -> list[tuple[int, int]]:
        """Return the named contents and tags for which the verdict changes anything."""
        if verdict == REJECTED:
            Tags(self._db).find(filters.tags)  # an unknown tag is an error
        tags = {self._number_of_tag(typed) for typed in filters.tags}
        contents = {Photographs(self._db).content_of(path) for path in filters.photographs}
        wanted = {(content, tag): (verdict, None) for content in contents for tag in tags}
        return [s.pair for s in _pair_states(self._db, wanted) if s.changes_anything()]

    def decide_pairs(
        self,
        accepted: Sequence[Pair | Shown] = (),
        rejected: Sequence[Pair | Shown] = (),
        *,
        only_open: bool = False,
        together: bool = False,
        repeats: Collection[int | None] = (),
    ) -> Batch:
        """Accept and reject tags of photographs in a step on the review page, as one run.

        A decision about what a page showed is stored, even if the suggestion was replaced or
        removed since. Pass `Shown` to keep the confidence that the page showed. Accepting a tag
        that files have changes nothing, unless a page asked about it, it seemed wrong there, or it
        was rejected before.

        With `only_open`, earlier decisions stay, such as those of another window, but not those of
        `repeats`, runs of earlier attempts at the same step whose answers got lost. Pairs that are
        accepted `together` are the rest of a page, which nobody looked at one by one, so a wrong
        tag may be among them.
        """
        with self._db.transaction():
            states = _pair_states(self._db, self._resolve(accepted, rejected))
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
            with self._db.run("review") as run:
                for state in changes:
                    note = WITH_PAGE if together and state.verdict == ACCEPTED else None
                    origin = None if state.shown is None else state.shown.origin
                    store_decision(self._db, run.id, state.pair, state.verdict, note, origin)
                accept_parents(self._db, run.id)
                run.outcome["decisions"] = len(changes)
        yes, no = ([s.pair for s in changes if s.verdict == v] for v in (ACCEPTED, REJECTED))
        return Batch(run.id, yes, no, n_already, n_kept)

    def _resolve(
        self, accepted: Sequence[Pair | Shown], rejected: Sequence[Pair | Shown]
    ) -> dict[tuple[int, int], tuple[int, Shown | None]]:
        """Return the verdict on each pair, by numbers, and what a page showed."""
        wanted: dict[tuple[int, int], tuple[int, Shown | None]] = {}
        numbers: dict[int | str, int] = {}
        for verdict, pairs in ((ACCEPTED, accepted), (REJECTED, rejected)):
            for pair in pairs:
                content, tag = pair[0], pair[1]
                if tag not in numbers:
                    numbers[tag] = self._number_of_tag(tag)
                shown = pair if isinstance(pair, Shown) else None
                if wanted.setdefault((content, numbers[tag]), (verdict, shown))[0] != verdict:
                    raise InvalidInput("A tag of a photograph is both accepted and rejected.")
        return wanted

    def _number_of_tag(self, tag: int | str) -> int:
        """Return the current number of a tag, by number or by name; a new name is added."""
        if isinstance(tag, str):
            return tag_number(self._db, resolve_spelling(self._db, tag))
        return self._db.value("SELECT coalesce(same_as, id) FROM tags WHERE id = ?", (tag,)) or tag

    # --- undoing -------------------------------------------------------------------------

    def undo(self, run: int) -> Decided:
        """Undo the decisions of a run: earlier decisions apply again, or suggestions reopen.

        If the run is an undo, the decisions that it undid apply again. Later decisions on the same
        photographs and tags stay. Undoing several runs gives the same result in any order.
        Photographs that the run finished are no longer finished, and a folder that it declared
        incomplete is complete again. A run that edited tags is undone as
        `tagkin.catalogue.tag_edits.undo_edit` says.
        """
        if is_edit(self._db, run):
            number, names = undo_edit(self._db, run)
            return Decided(number, [], edited=names)
        if Runs(self._db).get(self._first_of(run)).what == "incomplete":
            return self._undo_declaration(run)
        is_undo = self._db.value("SELECT undoes FROM runs WHERE id = ?", (run,)) is not None
        if is_undo:
            of_run = "d.taken_back_by = ?"
            is_last = (
                "NOT EXISTS (SELECT 1 FROM decisions h WHERE h.content = d.content "
                f"AND {SAME_TAG.format('h.tag', 'd.tag')} AND h.holds AND h.id > d.id)"
            )
        else:
            of_run, is_last = "d.run = ? AND d.taken_back_by IS NULL", "d.holds"
        rows = self._db.rows(
            f"SELECT d.id, d.content, d.tag, {is_last}, (SELECT path FROM photographs "
            "WHERE content = d.content ORDER BY gone IS NOT NULL, path LIMIT 1), t.name, "
            "d.confidence, d.suggested_by FROM decisions d LEFT JOIN tags t ON t.id = d.tag "
            f"WHERE {of_run} ORDER BY d.id",
            (run,),
        )
        if not rows:
            past = Runs(self._db).get(run)
            decided = self._db.value("SELECT 1 FROM decisions WHERE run = ?", (run,)) or is_undo
            reason = "has no decisions left" if decided else "decided, wrote and edited nothing"
            raise InvalidInput(
                f"Nothing to undo: run {run} ({past.what}) {reason}. `tagkin history` lists runs."
            )
        # decisions on the former content of an edited photograph have no path
        changed = [row for row in rows if row[3] and row[4] is not None]
        each = [DecidedTag(*row[4:]) for row in changed if row[2] is not None]
        finished = [row[4] for row in changed if row[2] is None]
        n_kept = sum(not row[3] for row in rows)
        with (
            self._db.transaction(),
            self._db.run("undo", {"run": run}, undoes=run) as undo,
        ):
            self._db.execute(
                f"UPDATE decisions SET taken_back_by = ? WHERE id {LISTED}",
                (None if is_undo else undo.id, as_list(row[0] for row in rows)),
            )
            last = {row[1:3]: row[0] for row in rows if row[3]}  # by content and tag
            change = hold_again if is_undo else revert
            change(self._db, list(last.values()))
            undo.outcome["decisions"] = len(each)
        return Decided(undo.id, each, n_kept, finished)

    def _first_of(self, run: int) -> int:
        """Return the run at the start of a chain of undos; other runs are their own start."""
        query = "SELECT undoes FROM runs WHERE id = ?"
        while (undone := self._db.value(query, (run,))) is not None:
            run = undone
        return run

    def _undo_declaration(self, run: int) -> Decided:
        if Runs(self._db).get(run).undone_by is not None:
            raise InvalidInput(f"Run {run} was undone already.")
        with self._db.run("undo", {"run": run}, undoes=run) as undo:
            return Decided(undo.id, [])

    def undo_last(self) -> Decided:
        """Undo the last run that decided or edited tags; repeated calls undo earlier runs."""
        run = self.last_run()
        return Decided(None, []) if run is None else self.undo(run)

    def redo_last(self) -> Decided:
        """Redo the last undo, unless there are newer decisions."""
        run = self.last_undo()
        return Decided(None, []) if run is None else self.undo(run)

    def last_run(self) -> int | None:
        """Return the last run with decisions that apply or an edit of tags, or None."""
        run: int | None = self._db.value(
            f"SELECT r.id FROM runs r WHERE {DECIDING} AND EXISTS "
            "(SELECT 1 FROM decisions d WHERE d.run = r.id AND d.holds) "
            f"OR {STANDING_EDIT} ORDER BY r.id DESC LIMIT 1"
        )
        return run

    def last_undo(self) -> int | None:
        """Return the last undo that can be redone, or None if there are newer decisions."""
        run: int | None = self._db.value(
            "SELECT u.id FROM runs u JOIN runs r ON r.id = u.undoes WHERE u.what = 'undo' "
            f"AND ({DECIDING} OR r.undoes IS NULL AND {_EDITING}) "
            "AND NOT EXISTS (SELECT 1 FROM runs a WHERE a.undoes = u.id) "
            "AND u.id > coalesce((SELECT max(r.id) FROM runs r WHERE "
            f"{DECIDING} OR r.undoes IS NULL AND {_EDITING}), 0) ORDER BY u.id DESC LIMIT 1"
        )
        return run

    def verdicts_after(self, run: int) -> list[tuple[int, int, int | None]]:
        """Return content, tag and current verdict of the pairs that a run decided or undid.

        The verdict is None if no decision applies. A finished tag decides on photographs for which
        it was not suggested; these are omitted.
        """
        rows = self._db.rows(
            "SELECT d.content, d.tag, (SELECT verdict FROM decisions h "
            "WHERE h.content = d.content AND h.tag = d.tag AND h.holds) "
            f"FROM decisions d WHERE d.run = ? AND d.tag IS NOT NULL AND {IS_ANSWER}",
            (self._first_of(run),),
        )
        return [(content, tag, verdict) for content, tag, verdict in rows]


def decided_by(database: Database, run: int, filters: Filters | None = None) -> list[DecidedTag]:
    """Return the tags that a run decided on; files that the filters name come first."""
    rows = database.rows(
        "SELECT d.content, t.name, d.confidence, d.suggested_by "
        "FROM decisions d JOIN tags t ON t.id = d.tag WHERE d.run = ? "
        "ORDER BY d.confidence DESC, d.id",
        (run,),
    )
    place, values = (filters or Filters()).sql_place()
    files = database.groups(
        "SELECT p.content, p.path FROM photographs p WHERE p.gone IS NULL "
        f"AND p.content {LISTED} ORDER BY NOT ({place}), p.path",
        (as_list({content for content, *_ in rows}), *values),
    )
    return [
        DecidedTag(files[content][0], tag, confidence, suggested_by, files[content][1:])
        for content, tag, confidence, suggested_by in rows
        if content in files
    ]


def _pair_states(
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
        "LEFT JOIN decisions d ON d.id = (SELECT max(e.id) FROM tags o JOIN decisions e "
        "ON e.content = c.id AND e.tag = o.id AND e.holds WHERE o.key = t.key)",
        (data,),
    )
    if len(rows) < len(wanted):
        raise InvalidInput(
            f"{len(wanted) - len(rows):,} of {len(wanted):,} photographs or tags are not in the "
            "catalogue."
        )
    return [_PairState(*row)._replace(shown=wanted[row[0], row[1]][1]) for row in rows]
