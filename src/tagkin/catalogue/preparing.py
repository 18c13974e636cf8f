"""What a review starts from: a model that knows the tags, and suggestions that are up to date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.learning import SuggestRun, carried_tags, load_model, suggest, train
from tagkin.catalogue.suggestions import Suggested, put_suggestions
from tagkin.collection import Collection, Progress

if TYPE_CHECKING:
    from tagkin.annotator import Annotator

__all__ = ["SUGGESTED", "Needs", "model_of", "needs_of", "refit", "suggest_by_name"]

SUGGESTED: dict[str, Any] = {"threshold": 0.05, "precision": None, "n": 20, "n_kin": 5}
"""What is suggested for a review: a person looks at all of it, so doubtful ones as well.

On COCO these are nine or ten for a photograph, and four of five missing tags are among them."""

_MANY, _SHARE = 200, 0.1  # decisions, and their share of all tags, that make a new fit pay
_BLOCK = 1000


@dataclass(frozen=True)
class Needs:
    """What a review of a collection lacks."""

    tags: bool
    """Nobody has tagged anything: there is nothing to learn from."""
    model: bool
    suggestions: bool
    n_new: int
    """Photographs that nothing was suggested for, since they were not there."""
    n_decided: int
    """Decisions that the model does not know."""
    is_due: bool
    """Whether a new fit pays."""


def needs_of(catalogue: Catalogue) -> Needs:
    """What is missing before a review, or has become old."""
    last = "SELECT coalesce(max(id), 0) FROM runs WHERE what = ? AND ended_at IS NOT NULL"
    trained, suggested = (catalogue.value(last, (what,)) for what in ("train", "suggest"))
    n_decided = catalogue.value(
        "SELECT count(*) FROM decisions WHERE run > ? AND holds", (trained,)
    )
    n_tags = int(catalogue.value("SELECT total(n_found + n_accepted) FROM tags"))
    n_new = catalogue.value(
        "SELECT count(*) FROM photographs WHERE added > ? AND gone IS NULL AND content IS NOT NULL",
        (suggested,),
    )
    has_model = bool(trained) and catalogue.model_folder.is_dir()
    return Needs(
        tags=not n_tags,
        model=not has_model,
        suggestions=suggested <= trained,
        n_new=n_new if suggested else 0,
        n_decided=n_decided,
        is_due=n_decided >= max(_MANY, _SHARE * n_tags),
    )


def model_of(catalogue: Catalogue) -> str | None:
    """Fingerprint of the model that was learned last; None where there is none."""
    found: str | None = catalogue.value(
        "SELECT model FROM runs WHERE what = 'train' AND ended_at IS NOT NULL "
        "ORDER BY id DESC LIMIT 1"
    )
    return found if catalogue.model_folder.is_dir() else None


def refit(
    catalogue: Catalogue,
    annotator: Annotator | None = None,
    parameters: dict[str, Any] | None = None,
    *,
    progress: Progress | None = None,
) -> SuggestRun:
    """Learn anew during a review, and suggest for every photograph.

    Photographs that were reviewed in part wait for the rest of their decisions, where there are
    enough others; the live order knows those that were made.

    Parameters
    ----------
    catalogue : Catalogue
        Open for writing.
    annotator : Annotator, optional
        What to fit; by default one with the settings of the model that is there, if there is one.
    parameters : dict, optional
        Its settings for the history.
    """
    if annotator is None:
        from sklearn.base import clone

        from tagkin.annotator import Annotator

        is_learned = catalogue.model_folder.is_dir()
        annotator = clone(load_model(catalogue)[0]) if is_learned else Annotator()
    train(catalogue, annotator, parameters or {}, partial=False, progress=progress)
    return suggest(catalogue, *load_model(catalogue), SUGGESTED, partial=False, progress=progress)


def suggest_by_name(
    catalogue: Catalogue,
    annotator: Annotator,
    words: Sequence[str],
    wanted: dict[str, Any] | None = None,
    *,
    folder: str | None = None,
    only_untagged: bool = False,
    progress: Progress | None = None,
) -> SuggestRun:
    """Suggest tags by what their names mean, if there is nothing to learn from.

    Parameters
    ----------
    catalogue : Catalogue
    annotator : Annotator
        It need not be fitted.
    words : sequence of str
        The tags.
    wanted : dict, optional
        ``n`` and ``threshold`` as in `Annotator.suggest`; by default those of a review.
    folder, only_untagged
        As in `carried_tags`.
    """
    step = progress or (lambda what, done, total: None)
    given = wanted or {name: SUGGESTED[name] for name in ("n", "threshold")}
    with catalogue.run("suggest", {"vocabulary": len(words)} | given) as run:
        result = SuggestRun(run.id)
        every = carried_tags(catalogue, folder=folder, only_untagged=only_untagged)
        for start in range(0, len(every), _BLOCK):
            step("Suggesting", start, len(every))
            block = every[start : start + _BLOCK]
            collection = Collection([one.file for one in block], [one.tags for one in block])
            seen = annotator.look(collection)
            result.failures += seen.failures
            result.n_photographs += len(block)
            if not seen.files:
                continue
            content_of = {one.file: one.content for one in block}
            found = annotator.suggest(collection, vocabulary=list(words), **given)
            each = [
                (
                    content_of[one.file],
                    [
                        Suggested(s.tag, s.confidence, (), s.name_share, s.readout_share)
                        for s in one.suggestions
                    ],
                )
                for one in found
            ]
            result.n_with += sum(bool(some) for _, some in each)
            result.n_suggestions += put_suggestions(catalogue, run.id, each)
        step("Suggesting", len(every), len(every))
        run.outcome |= {
            "photographs": result.n_photographs,
            "with_suggestions": result.n_with,
            "suggestions": result.n_suggestions,
        }
    return result
