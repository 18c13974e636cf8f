"""The history: every run with its parameters and outcome, and in words; the pace of a review."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tagkin.catalogue.columns import read_json
from tagkin.catalogue.database import LISTED, CataloguePart, Row, SqlValue, as_list
from tagkin.errors import NotFound
from tagkin.wording import changes_text, count, quote_tags

__all__ = ["DECIDING", "STANDING_EDIT", "DecisionCounts", "PastRun", "Runs"]

_SELECT = (
    "SELECT r.id, r.what, r.started_at, r.ended_at, r.model, r.parameters, r.outcome, r.undoes, "
    "(SELECT max(id) FROM runs u WHERE u.undoes = r.id "
    "AND NOT EXISTS (SELECT 1 FROM runs a WHERE a.undoes = u.id)) FROM runs r"
)

_NAMED = 3  # tags of a run in words
_N_RUNS = 200  # last runs that are considered
_LONGEST = 180.0  # seconds between two steps; after a longer time, the person was away
_SHORTEST = 0.25  # seconds; nobody sees and answers faster, so a script or a held key did
_FEWEST, _BRIEFEST = 20, 30.0  # answers, and seconds of answering, from which a pace is known

DECIDING = "r.what IN ('accept', 'reject', 'review', 'finish', 'import')"
"""SQL: a run `r` is of a command that decides."""
_STANDS = (
    "NOT EXISTS (SELECT 1 FROM runs u WHERE u.undoes = r.id "
    "AND NOT EXISTS (SELECT 1 FROM runs a WHERE a.undoes = u.id))"
)
STANDING_EDIT = (
    f"(r.undoes IS NULL AND EXISTS (SELECT 1 FROM tag_changes c WHERE c.run = r.id) AND {_STANDS})"
)
"""SQL: a run `r` edited tags, and was not undone."""
_WRITES = "SELECT 1 FROM writes w WHERE w.run = r.id AND w.state IN ('done', 'planned')"


@dataclass(frozen=True)
class PastRun:
    """A run in the history."""

    id: int
    what: str
    """The command."""
    started_at: str
    ended_at: str | None
    """None if it is running, failed or was killed."""
    model: str | None
    """Fingerprint of the model that it made or used."""
    parameters: dict[str, object]
    outcome: dict[str, int]
    undoes: int | None
    undone_by: int | None
    """The undo of this run; None if that undo was undone."""

    def describe(self, decided: DecisionCounts | None) -> str:
        """Describe what the run did, for example ``accepted 3 tags on 2 photographs``.

        `decided` are its decisions. It has ended.
        """

        def n(name: str) -> int:
            value = self.outcome.get(name)
            return value if isinstance(value, int) else 0

        value = self.parameters.get("tags")
        tags = quote_tags(value if isinstance(value, list) else [], _NAMED)
        match self.what:
            case "scan":
                changes = changes_text({name: n(name) for name in self.outcome}) or "no change"
                return f"scanned {count(n('photographs'), 'photograph')}: {changes}"
            case "train":
                photographs = count(n("photographs"), "photograph")
                return f"learned {count(n('tags'), 'tag')} from {photographs}"
            case "suggest":
                photographs = count(n("with_suggestions"), "photograph")
                return f"suggested {count(n('suggestions'), 'tag')} for {photographs}"
            case "accept" | "reject" | "review" if decided is not None:
                verdicts = {"accepted": decided.n_accepted, "rejected": decided.n_rejected}
                done = [f"{verb} {count(n, 'tag')}" for verb, n in verdicts.items() if n]
                return f"{' and '.join(done)} on {count(decided.n_photographs, 'photograph')}"
            case "finish" if "photographs" in self.outcome:
                rejected = count(n("decisions"), "suggestion")
                return f"finished {count(n('photographs'), 'photograph')}, and rejected {rejected}"
            case "finish":
                return f"finished {tags}: rejected on {count(n('decisions'), 'photograph')}"
            case "import":
                return f"imported {count(n('decisions'), 'decision')}"
            case "incomplete":
                folder = self.parameters.get("folder") or "the whole collection"
                return f"declared incomplete: the tags in {folder}"
            case "write":
                failed = f"; {count(n('failures'), 'file')} failed" if n("failures") else ""
                removed = f", removed {count(n('removed'), 'tag')}" if n("removed") else ""
                wrote = f"wrote {count(n('tags'), 'tag')} into {count(n('files'), 'file')}"
                return f"{wrote}{removed}{failed}"
            case "undo":
                return f"undid run {self.undoes}"
            case "tags rename":
                return f"renamed {tags} to {quote_tags([str(self.parameters['into'])])}"
            case "tags merge":
                return f"merged {tags} into {quote_tags([str(self.parameters['into'])])}"
            case "tags forget":
                return f"forgot {tags}"
            case "tags restore":
                return f"restored {tags}"
        return self.what


class DecisionCounts(NamedTuple):
    """How many decisions a run made, including undone and replaced decisions."""

    n_accepted: int
    n_rejected: int
    n_photographs: int


class Runs(CataloguePart):
    """The runs of a catalogue: ``catalogue.runs``."""

    def history(self, n: int | None = None, *, what: str | None = None) -> list[PastRun]:
        """Return the last n runs, or all, latest first; with `what`, only runs of that command."""
        limit = -1 if n is None else n
        return self._select("r.what = coalesce(?, r.what) ORDER BY r.id DESC LIMIT ?", what, limit)

    def get(self, number: int) -> PastRun:
        """Return a run by its number."""
        runs = self._select("r.id = ?", number)
        if not runs:
            raise NotFound(f"There is no run {number}. `tagkin history` lists runs.")
        return runs[0]

    def numbers_after(self, number: int) -> list[int]:
        """Return the numbers of later runs."""
        return self._db.column("SELECT id FROM runs WHERE id > ? ORDER BY id", (number,))

    def last_undoable(self) -> PastRun | None:
        """Return the last run that can be undone, or None.

        It has decisions or writes that still apply, edited tags, or declared tags incomplete.
        Writes that an undo did not find are left to an undo of their run by its number.
        """
        runs = self._select(
            f"EXISTS ({_WRITES} AND NOT w.was_missed) "
            f"OR {DECIDING} AND EXISTS (SELECT 1 FROM decisions d WHERE d.run = r.id AND d.holds) "
            f"OR {STANDING_EDIT} ORDER BY r.id DESC LIMIT 1"
        )
        runs += self.list_standing("incomplete")[-1:]
        return max(runs, key=lambda run: run.id, default=None)

    def _select(self, condition: str, *values: SqlValue) -> list[PastRun]:
        return list(map(_past_run, self._db.rows(f"{_SELECT} WHERE {condition}", values)))

    def list_undoable(self, runs: Sequence[int]) -> set[int]:
        """Return the runs among some that can be undone by their numbers."""
        rows = self._db.column(
            f"SELECT r.id FROM runs r WHERE r.id {LISTED} AND (EXISTS ({_WRITES}) "
            f"OR {STANDING_EDIT} OR ({DECIDING} OR r.what = 'incomplete') AND {_STANDS})",
            (as_list(runs),),
        )
        return set(rows)

    def list_standing(self, what: str) -> list[PastRun]:
        """Return the runs of a command that ended and were not undone, latest last."""
        condition = f"r.what = ? AND r.ended_at IS NOT NULL AND {_STANDS} ORDER BY r.id"
        return self._select(condition, what)

    def last_ended(self, what: str) -> PastRun | None:
        """Return the last run of a command that ended, or None."""
        condition = "r.what = ? AND r.ended_at IS NOT NULL ORDER BY r.id DESC LIMIT 1"
        return next(iter(self._select(condition, what)), None)

    def last_training(self) -> int:
        """Return the number of the last training that ended; 0 if there is none."""
        query = "SELECT max(id) FROM runs WHERE what = 'train' AND ended_at IS NOT NULL"
        return self._db.value(query) or 0

    def count_decisions(self, runs: Sequence[int]) -> dict[int, DecisionCounts]:
        """Count the decisions of each run that made some."""
        rows = self._db.rows(
            "SELECT run, sum(verdict > 0), sum(verdict < 0), count(DISTINCT content) "
            f"FROM decisions WHERE tag IS NOT NULL AND run {LISTED} "
            "GROUP BY run",
            (as_list(runs),),
        )
        return {run: DecisionCounts(*counts) for run, *counts in rows}

    def tags_decided_by(self, run: int) -> list[tuple[str, int, int]]:
        """Return the tags that a run decided on, with accepted and rejected counts."""
        rows = self._db.rows(
            "SELECT t.name, sum(d.verdict > 0), sum(d.verdict < 0) FROM decisions d "
            "JOIN tags t ON t.id = d.tag WHERE d.run = ? GROUP BY t.id "
            "ORDER BY count(*) DESC, t.name",
            (run,),
        )
        return [(name, n_accepted, n_rejected) for name, n_accepted, n_rejected in rows]

    def seconds_per_answer(self) -> float | None:
        """Return the median seconds per answer in a person's last steps; None after too few.

        A step takes the time since the step before it. Each of its answers takes an equal part.
        Steps that are faster than a person do not count.
        """
        rows = self._db.rows(
            "SELECT started_at, what, json_extract(outcome, '$.decisions') FROM runs "
            "WHERE what IN ('review', 'finish', 'undo') OR what LIKE 'tags %' "
            "ORDER BY id DESC LIMIT ?",
            (_N_RUNS,),
        )
        steps: list[tuple[float, int]] = []  # seconds per answer, answers
        moments = [datetime.datetime.fromisoformat(row[0]).timestamp() for row in rows]
        for (_, what, n), moment, before in zip(rows, moments, moments[1:], strict=False):
            if what == "review" and n and _SHORTEST <= moment - before <= _LONGEST:
                steps.append(((moment - before) / n, n))
        return _weighted_median(steps)


def _past_run(row: Row) -> PastRun:
    values = (*row[:5], read_json(row[5], dict), read_json(row[6], dict), *row[7:])
    return PastRun(*values)


def _weighted_median(steps: Sequence[tuple[float, int]]) -> float | None:
    import numpy as np

    n = sum(weight for _, weight in steps)
    if n < _FEWEST or sum(seconds * weight for seconds, weight in steps) < _BRIEFEST:
        return None
    seconds, weights = zip(*steps, strict=True)
    return float(np.quantile(seconds, 0.5, weights=weights, method="inverted_cdf"))
