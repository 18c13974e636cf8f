"""The answer for the overview: how much is tagged, the quality of tags, and the last runs."""

from __future__ import annotations

from collections.abc import Sequence

from tagkin.catalogue import Catalogue, DecisionCounts, PastRun
from tagkin.catalogue.run_texts import describe_run
from tagkin.server.answers import tag_row
from tagkin.server.order import Order
from tagkin.templating import shown
from tagkin.wording import quote_tags

_N_TAGS, _N_RUNS = 300, 30
_N_NAMED = 3  # tags named per run
_MAX_DECISIONS = 1000  # a run with more is described without its tags
_UNDOABLE = ("accept", "reject", "review", "finish", "incomplete")


def overview_answer(catalogue: Catalogue, order: Order) -> dict[str, object]:
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


def runs_answer(catalogue: Catalogue, runs: Sequence[PastRun]) -> list[dict[str, object]]:
    """Return runs with their results, and whether a page can undo them."""
    numbers = [run.id for run in runs]
    undoable = catalogue.writes.runs_to_undo(numbers) | catalogue.runs.list_standing_edits(numbers)
    decided = catalogue.runs.count_decisions(numbers)
    return [
        {
            "id": run.id,
            "what": run.what,
            "started_at": run.started_at,
            "said": _describe(catalogue, run, decided.get(run.id)),
            "undone_by": run.undone_by,
            "can_undo": run.id in undoable or (run.what in _UNDOABLE and run.undone_by is None),
        }
        for run in runs
    ]


def _describe(catalogue: Catalogue, run: PastRun, decided: DecisionCounts | None) -> str:
    """Describe a run with the first tags that a person decided on, unless these are very many."""
    if run.ended_at is None:
        return f"{run.what}: not finished"
    text = describe_run(run, decided)
    text = text[0].upper() + text[1:]
    n_decided = 0 if decided is None else decided.n_accepted + decided.n_rejected
    if not 0 < n_decided <= _MAX_DECISIONS or run.parameters.get("tags"):
        return shown(text)
    names = [name for name, _, _ in catalogue.runs.tags_decided_by(run.id)]
    return shown(f"{text}: {quote_tags(names, _N_NAMED)}")
