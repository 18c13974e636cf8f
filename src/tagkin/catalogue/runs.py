"""The history: runs with their times, parameters and outcomes, also in words; a review's pace."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tagkin.catalogue.columns import read_json
from tagkin.catalogue.database import LISTED, Part, Row, SqlValue, as_list
from tagkin.errors import NotFound
from tagkin.wording import changes_text, count, quote_tags

if TYPE_CHECKING:
    from tagkin.catalogue.source import FileWrite
    from tagkin.catalogue.undo import UndoResult
    from tagkin.catalogue.write_run import WriteRun

__all__ = [
    "DECIDING",
    "STANDING_EDIT",
    "DecisionCounts",
    "PastRun",
    "Runs",
    "describe_run",
    "describe_undo",
    "describe_write",
    "places_text",
]

_SELECT = (
    "SELECT r.id, r.what, r.started_at, r.ended_at, r.model, r.parameters, r.outcome, r.undoes, "
    "(SELECT max(id) FROM runs u WHERE u.undoes = r.id "
    "AND NOT EXISTS (SELECT 1 FROM runs a WHERE a.undoes = u.id)) FROM runs r"
)

_N_RUNS = 200  # last runs that are considered
_LONGEST = 180.0  # seconds between two steps; after a longer time, the person was away
_SHORTEST = 0.25  # seconds; nobody sees and answers faster, so a script or a held key did
_FEWEST, _BRIEFEST = 20, 30.0  # answers, and seconds of answering, from which a pace is known

DECIDING = "r.what IN ('accept', 'reject', 'review', 'finish', 'import')"
"""SQL: a run `r` is of a command that decides."""
STANDING_EDIT = (
    "(r.undoes IS NULL AND EXISTS (SELECT 1 FROM tag_changes c WHERE c.run = r.id) "
    "AND NOT EXISTS (SELECT 1 FROM runs u WHERE u.undoes = r.id "
    "AND NOT EXISTS (SELECT 1 FROM runs a WHERE a.undoes = u.id)))"
)
"""SQL: a run `r` edited tags, and was not undone."""


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


class DecisionCounts(NamedTuple):
    """How many decisions a run made, including undone and replaced decisions."""

    n_accepted: int
    n_rejected: int
    n_photographs: int


class Runs(Part):
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

    def last_undoable(self) -> PastRun | None:
        """Return the last run that can be undone, or None.

        It has decisions or writes that still apply, edited tags, or declared tags incomplete.
        Writes that an undo did not find are left to an undo of their run by its number.
        """
        runs = self._select(
            "EXISTS (SELECT 1 FROM writes w WHERE w.run = r.id "
            "AND w.state IN ('done', 'planned') AND NOT w.was_missed) "
            f"OR {DECIDING} AND EXISTS (SELECT 1 FROM decisions d WHERE d.run = r.id AND d.holds) "
            f"OR {STANDING_EDIT} ORDER BY r.id DESC LIMIT 1"
        )
        runs += self.list_standing("incomplete")[-1:]
        return max(runs, key=lambda run: run.id, default=None)

    def _select(self, condition: str, *values: SqlValue) -> list[PastRun]:
        return list(map(_past_run, self._db.rows(f"{_SELECT} WHERE {condition}", values)))

    def list_standing_edits(self, runs: Sequence[int]) -> set[int]:
        """Return the runs that edited tags and were not undone."""
        query = f"SELECT r.id FROM runs r WHERE {STANDING_EDIT} AND r.id {LISTED}"
        return set(self._db.column(query, (as_list(runs),)))

    def list_standing(self, what: str) -> list[PastRun]:
        """Return the runs of a command that ended and were not undone, latest last."""
        runs = self._select("r.what = ? AND r.ended_at IS NOT NULL ORDER BY r.id", what)
        return [run for run in runs if run.undone_by is None]

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
    n = sum(weight for _, weight in steps)
    if n < _FEWEST or sum(seconds * weight for seconds, weight in steps) < _BRIEFEST:
        return None
    steps = sorted(steps)
    seen = itertools.accumulate(weight for _, weight in steps)
    return next(value for (value, _), so_far in zip(steps, seen, strict=True) if 2 * so_far >= n)


# --- in words ----------------------------------------------------------------------------

_NAMED = 3  # tags
_UNDONE = (
    ("to restore", "file", "restore {}"),
    ("to remove", "file", "remove {} that it made"),
    ("restored", "file", "restored {} byte for byte"),
    ("removed", "file", "removed {} that it had made"),
    ("untagged", "file", "undid its changes in {} that somebody changed since"),
    ("tags removed", "photograph", "removed its tags from {}"),
    ("already", "file", "found {} as before"),
)


def describe_run(run: PastRun, decided: DecisionCounts | None) -> str:
    """Describe what a run did, for example ``accepted 3 tags on 2 photographs``.

    Parameters
    ----------
    run : PastRun
        A run that ended.
    decided : DecisionCounts or None
        Its decisions.
    """

    def n(name: str) -> int:
        value = run.outcome.get(name)
        return value if isinstance(value, int) else 0

    value = run.parameters.get("tags")
    tags = quote_tags(value if isinstance(value, list) else [], _NAMED)
    match run.what:
        case "scan":
            changes = changes_text({name: n(name) for name in run.outcome}) or "no change"
            return f"scanned {count(n('photographs'), 'photograph')}: {changes}"
        case "train":
            return f"learned {count(n('tags'), 'tag')} from {count(n('photographs'), 'photograph')}"
        case "suggest":
            photographs = count(n("with_suggestions"), "photograph")
            return f"suggested {count(n('suggestions'), 'tag')} for {photographs}"
        case "accept" | "reject" | "review" if decided is not None:
            verdicts = {"accepted": decided.n_accepted, "rejected": decided.n_rejected}
            done = [f"{verb} {count(n, 'tag')}" for verb, n in verdicts.items() if n]
            return f"{' and '.join(done)} on {count(decided.n_photographs, 'photograph')}"
        case "finish" if "photographs" in run.outcome:
            rejected = count(n("decisions"), "suggestion")
            return f"finished {count(n('photographs'), 'photograph')}, and rejected {rejected}"
        case "finish":
            return f"finished {tags}: rejected on {count(n('decisions'), 'photograph')}"
        case "incomplete":
            folder = run.parameters.get("folder") or "the whole collection"
            return f"declared incomplete: the tags in {folder}"
        case "write":
            failed = f"; {count(n('failures'), 'file')} failed" if n("failures") else ""
            removed = f", removed {count(n('removed'), 'tag')}" if n("removed") else ""
            wrote = f"wrote {count(n('tags'), 'tag')} into {count(n('files'), 'file')}"
            return f"{wrote}{removed}{failed}"
        case "undo":
            return f"undid run {run.undoes}"
        case "tags rename":
            return f"renamed {tags} to {quote_tags([str(run.parameters['into'])])}"
        case "tags merge":
            return f"merged {tags} into {quote_tags([str(run.parameters['into'])])}"
        case "tags forget":
            return f"forgot {tags}"
        case "tags hide":
            return f"hid {tags}"
        case "tags restore":
            return f"restored {tags}"
    return run.what


def describe_write(result: WriteRun) -> str:
    """Count written tags and files, for example ``12 tags into 3 sidecars, 1 of them new``."""
    files = [file for file in result.files if file.tags and file.state != "there"]
    if not files:
        return ""
    n_new = sum(file.is_new for file in files)
    new = f", {'all' if n_new == len(files) else f'{n_new:,}'} of them new" if n_new else ""
    return f"{count(result.n_tags, 'tag')} into {places_text(files)}{new}"


def describe_undo(result: UndoResult) -> str:
    """Count what happened to files, for example ``restored 2 files byte for byte``."""
    n = Counter(file.how for file in result.files)
    parts = [text.format(count(n[how], what)) for how, what, text in _UNDONE if n[how]]
    return " and ".join(parts) or "nothing was left of its changes"


def places_text(files: Sequence[FileWrite]) -> str:
    """Count files, for example ``2 photographs and 1 sidecar``."""
    n_embedded = sum(file.is_embedded for file in files)
    counts = {"photograph": n_embedded, "sidecar": len(files) - n_embedded}
    return " and ".join(count(n, kind) for kind, n in counts.items() if n)
