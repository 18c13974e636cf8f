"""Deciding on suggestions, with filters or on a page, and undoing decisions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tagkin.catalogue.database import LISTED, Part, SqlValue, as_list, set_fields
from tagkin.catalogue.decision_records import (
    ACCEPTED,
    BY_FILTER,
    IS_ANSWER,
    REJECTED,
    accept_parents,
    decide_suggestions,
    hold_again,
    revert,
    store_decision,
)
from tagkin.catalogue.filters import Filters
from tagkin.catalogue.page_decisions import Batch, Pair, Shown, decide_pairs, pair_states
from tagkin.catalogue.photographs import Photographs
from tagkin.catalogue.runs import DECIDING, STANDING_EDIT, Runs
from tagkin.catalogue.tag_edits import is_edit, undo_edit
from tagkin.catalogue.tag_records import resolve_spelling, tag_number
from tagkin.catalogue.tags import Tags
from tagkin.errors import InvalidInput
from tagkin.labels import normalize_tag

__all__ = ["Decided", "DecidedTag", "Decisions"]

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


class Decisions(Part):
    """The decisions of a catalogue: ``catalogue.decisions``."""

    def decide(self, verdict: int, filters: Filters) -> Decided:
        """Accept or reject all suggestions that match the filters.

        If the filters name photographs and tags and nothing else, this also decides on tags that
        were not suggested.
        """
        if verdict not in _COMMANDS:
            raise InvalidInput(f"verdict must be 1 (accepted) or -1 (rejected); found {verdict!r}.")
        new_tags = filters.names_pairs and verdict == ACCEPTED
        with self._db.transaction():
            condition, values = filters.sql_condition(self._db, "s", new_tags=new_tags)
            pairs = self._named_pairs(verdict, filters)
            each = [*self._matching(filters, condition, values), *pairs]
            if not each:
                return Decided(None, [])
            with self._db.run(_COMMANDS[verdict], set_fields(vars(filters))) as run:
                note = BY_FILTER if verdict == ACCEPTED and not filters.photographs else None
                decide_suggestions(self._db, condition, values, run.id, verdict, note)
                photographs = Photographs(self._db)
                for named in pairs:
                    content = photographs.content_of(named.path)
                    pair = content, tag_number(self._db, named.tag)
                    store_decision(self._db, run.id, pair, verdict)
                if verdict == ACCEPTED:
                    accept_parents(self._db, run.id)
                run.outcome["decisions"] = len(each)
        return Decided(run.id, each)

    def _matching(
        self, filters: Filters, condition: str, values: Sequence[SqlValue]
    ) -> list[DecidedTag]:
        """Return the suggestions that match, with the files that get the tag."""
        rows = self._db.rows(
            "SELECT s.content, t.name, s.confidence, s.run "
            "FROM suggestions s JOIN tags t ON t.id = s.tag "
            f"WHERE {condition} ORDER BY s.confidence DESC",
            values,
        )
        files = self._files_of(filters, {content for content, *_ in rows})
        return [
            DecidedTag(files[content][0], tag, confidence, run, files[content][1:])
            for content, tag, confidence, run in rows
            if content in files
        ]

    def _files_of(self, filters: Filters, contents: Iterable[int]) -> dict[int, list[str]]:
        """Return the files of each content; files that the filters name come first."""
        place, values = filters.sql_place()
        return self._db.groups(
            "SELECT p.content, p.path FROM photographs p WHERE p.gone IS NULL "
            f"AND p.content {LISTED} ORDER BY NOT ({place}), p.path",
            (as_list(contents), *values),
        )

    # --- tags that were not suggested ----------------------------------------------------

    def _named_pairs(self, verdict: int, filters: Filters) -> list[DecidedTag]:
        """Return named photographs and tags without a suggestion, if the verdict is new."""
        if not filters.names_pairs:
            return []
        pairs = []
        names: dict[str, str] = {}
        for name in (resolve_spelling(self._db, typed) for typed in filters.tags):
            names.setdefault(normalize_tag(name), name)
        photographs = Photographs(self._db)
        contents = {photographs.content_of(path) for path in filters.photographs}
        files = self._files_of(filters, contents)
        numbers = Tags(self._db).numbers_of(list(names.values()))
        wanted = {(c, n): (verdict, None) for c in files for n in numbers.values()}
        states = pair_states(self._db, wanted)
        unchanged = {s.pair for s in states if s.is_suggested or not s.changes_anything()}
        for content, (path, *copies) in sorted(files.items(), key=lambda item: item[1]):
            for name in names.values():
                if (content, numbers.get(name)) not in unchanged:
                    pairs.append(DecidedTag(path, name, None, None, copies))
        return pairs

    # --- pages of the review -------------------------------------------------------------

    def decide_pairs(
        self,
        accepted: Sequence[Pair | Shown] = (),
        rejected: Sequence[Pair | Shown] = (),
        *,
        only_open: bool = False,
        together: bool = False,
        repeats: Collection[int | None] = (),
    ) -> Batch:
        """Accept and reject tags of photographs, all in one run.

        A decision about what a page showed is stored, even if the suggestion was replaced or
        removed since. Pass `Shown` to keep the confidence that the page showed.

        Parameters
        ----------
        accepted, rejected : sequences of (content, tag) or Shown
            Accepting a tag that files have changes nothing, unless a page asked about it, it seemed
            wrong there, or it was rejected before.
        only_open : bool, default False
            Keep earlier decisions, such as those of another window.
        together : bool, default False
            The accepted pairs are the rest of a page, which nobody looked at one by one, so a wrong
            tag may be among them.
        repeats : collection of int, default ()
            Runs of earlier attempts at the same step, whose answers got lost. `only_open` does not
            keep their decisions.

        Raises
        ------
        InvalidInput
            If a content or tag number is unknown, or if a pair is both accepted and rejected.
        """
        return decide_pairs(self._db, accepted, rejected, only_open, together, repeats)

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
                "AND h.tag IS d.tag AND h.holds AND h.id > d.id)"
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
