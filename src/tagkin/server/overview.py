"""The answer for the overview: how much is tagged, the quality of tags, and the last runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tagkin.catalogue import Catalogue, PastRun
from tagkin.server.answers import tag_row
from tagkin.server.order import Order
from tagkin.templating import shown

_N_TAGS, _N_RUNS = 300, 30
_N_NAMED = 3  # tags named per run
_MAX_DECISIONS = 1000  # a run with more is described without its tags
_DECIDING = ("accept", "reject", "review", "finish")
_UNDOABLE = (*_DECIDING, "incomplete")
_SINGULAR = {"decisions": "decision", "photographs": "photograph", "tags": "tag", "files": "file"}


def overview_answer(catalogue: Catalogue, order: Order) -> dict[str, Any]:
    """Return how much is tagged, the quality of the most frequent tags, and the last runs."""
    counts, progress = catalogue.photographs.count(), catalogue.suggestions.progress()
    tags = order.expect(catalogue, catalogue.tags.list_all()[:_N_TAGS])
    return {
        "folder": shown(catalogue.source.title),
        "photographs": counts.n_photographs,
        "untagged": counts.n_untagged,
        "unreadable": counts.n_problems,
        "suggestions": progress.n_suggestions,
        "expected": round(order.expected(catalogue, progress.expected), 1),
        "accepted": progress.n_accepted,
        "rejected": progress.n_rejected,
        "to_write": catalogue.writes.count_pending(),
        "tags": [tag_row(tag) for tag in tags],
        "runs": runs_answer(catalogue, catalogue.runs.history(_N_RUNS)),
    }


def runs_answer(catalogue: Catalogue, runs: Sequence[PastRun]) -> list[dict[str, Any]]:
    """Return runs with their results, and whether a page can undo them."""
    numbers = [run.id for run in runs]
    undoable = catalogue.writes.runs_to_undo(numbers) | catalogue.runs.list_standing_edits(numbers)
    return [
        {
            "id": run.id,
            "what": run.what,
            "started_at": run.started_at,
            "ended_at": run.ended_at,
            "outcome": run.outcome,
            "said": _decisions_text(catalogue, run) or _outcome_text(run),
            "undoes": run.undoes,
            "undone_by": run.undone_by,
            "can_undo": run.id in undoable or (run.what in _UNDOABLE and run.undone_by is None),
        }
        for run in runs
    ]


def _decisions_text(catalogue: Catalogue, run: PastRun) -> str | None:
    """Describe what a person decided; None for other runs and for very many decisions."""
    n = run.outcome.get("decisions")
    if run.what == "undo" and not run.outcome:
        return f"run {run.undoes}"
    if run.what.startswith("tags ") and isinstance(names := run.parameters.get("tags"), list):
        into = run.parameters.get("into")
        return ", ".join(map(shown, names)) + (f" → {shown(str(into))}" if into else "")
    if run.what == "incomplete":
        return f"tags in {shown(str(run.parameters.get('folder') or 'the whole collection'))}"
    if run.what not in _DECIDING or not isinstance(n, int) or n > _MAX_DECISIONS:
        return None
    rows = catalogue.runs.tags_decided_by(run.id)
    counts = {"accepted": sum(row[1] for row in rows), "rejected": sum(row[2] for row in rows)}
    done = ", ".join(f"{n:,} {word}" for word, n in counts.items() if n)
    if isinstance(n_finished := run.outcome.get("photographs"), int):
        done = ", ".join(filter(None, (_count_text(n_finished, "photographs"), done)))
    names = [shown(name) for name, _, _ in rows[:_N_NAMED]]
    more = f" and {len(rows) - _N_NAMED:,} more" if len(rows) > _N_NAMED else ""
    return f"{done}: {', '.join(names)}{more}" if done and names else done or None


def _outcome_text(run: PastRun) -> str:
    """Return the counts that are not zero: ``600 photographs, 12 added``."""
    counts = [_count_text(n, name.replace("_", " ")) for name, n in run.outcome.items() if n]
    return ", ".join(counts) or ("no change" if run.ended_at else "not finished")


def _count_text(n: object, word: str) -> str:
    number = f"{n:,}" if isinstance(n, int) else shown(str(n))
    return f"{number} {_SINGULAR.get(word, word) if n == 1 else word}"
