"""Runs: what was done, when, with which model, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.texts import from_text
from tagkin.errors import NotFound

__all__ = ["Decisions", "PastRun", "count_decisions", "history", "last_undoable", "past_run"]

_COLUMNS = (
    "r.id, r.what, r.started_at, r.ended_at, r.model, r.parameters, r.outcome, r.undoes, "
    "(SELECT max(id) FROM runs u WHERE u.undoes = r.id "
    "AND NOT EXISTS (SELECT 1 FROM runs a WHERE a.undoes = u.id))"
)
# Runs that can be undone: they have decisions or writes of their own.
_UNDOABLE = (
    "(EXISTS (SELECT 1 FROM writes w WHERE w.run = r.id AND w.state IN ('done', 'planned')) "
    "OR r.what IN ('accept', 'reject', 'review') AND EXISTS "
    "(SELECT 1 FROM decisions d WHERE d.run = r.id AND d.holds))"
)


@dataclass(frozen=True)
class PastRun:
    """A run in the history."""

    id: int
    what: str
    """The command."""
    started_at: str
    ended_at: str | None
    """None where it goes on, failed or was killed."""
    model: str | None
    """Fingerprint of the model that it made or used."""
    parameters: dict[str, Any]
    outcome: dict[str, Any]
    undoes: int | None
    undone_by: int | None
    """The undo of this run; None if that undo was undone."""

    def to_dict(self) -> dict[str, Any]:
        """The same as a plain dict, ready for JSON."""
        return asdict(self)


def history(catalogue: Catalogue, n: int | None = None) -> list[PastRun]:
    """The last n runs, or all, the latest first."""
    rows = catalogue.rows(
        f"SELECT {_COLUMNS} FROM runs r ORDER BY r.id DESC LIMIT ?",
        (-1 if n is None else n,),
    )
    return [_past(row) for row in rows]


def past_run(catalogue: Catalogue, number: int) -> PastRun:
    """One run, by its number."""
    row = catalogue.row(f"SELECT {_COLUMNS} FROM runs r WHERE r.id = ?", (number,))
    if row is None:
        raise NotFound(f"There is no run {number}. `tagkin history` lists them.")
    return _past(row)


class Decisions(NamedTuple):
    """How much a run decided, whether it still holds or not."""

    n_accepted: int
    n_rejected: int
    n_photographs: int


def count_decisions(catalogue: Catalogue, runs: Sequence[int]) -> dict[int, Decisions]:
    """Count the decisions of each run that made some."""
    rows = catalogue.rows(
        "SELECT run, sum(verdict > 0), sum(verdict < 0), count(DISTINCT content) FROM decisions "
        "WHERE run IN (SELECT value FROM json_each(?)) GROUP BY run",
        (json.dumps(list(runs)),),
    )
    return {run: Decisions(*counts) for run, *counts in rows}


def last_undoable(catalogue: Catalogue) -> PastRun | None:
    """The last run that decided or wrote something which still stands; None where none did."""
    row = catalogue.row(
        f"SELECT {_COLUMNS} FROM runs r WHERE {_UNDOABLE} ORDER BY r.id DESC LIMIT 1"
    )
    return None if row is None else _past(row)


def _past(row: tuple[Any, ...]) -> PastRun:
    id, what, started_at, ended_at, model, parameters, outcome, undoes, undone_by = row
    return PastRun(
        id,
        what,
        started_at,
        ended_at,
        model,
        from_text(parameters, dict),
        from_text(outcome, dict),
        undoes,
        undone_by,
    )
