"""The quality of suggestions as a page to look at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagkin.cli.quality_tables import MEASURES
from tagkin.cli.tables import percent

if TYPE_CHECKING:
    from tagkin.annotator import Annotator, Quality

__all__ = ["write_quality"]

_PHOTOGRAPHS = 60  # shown with their suggestions


def write_quality(
    quality: Quality,
    path: Path,
    failures: Sequence[Any],
    model: Annotator | None,
    seen: Any,
    rows: Sequence[Sequence[str]],
) -> None:
    """Write a page with figures and charts; with a model, suggestions for some photographs too."""
    from tagkin.pages import Comparison, Report, write_report

    methods = ("Semantic space", "By looks") if quality.visual else ("Semantic space",)
    each = [quality.semantic, quality.visual][: len(methods)]
    measures = {name: tuple(one[key] for one in each) for key, name in MEASURES.items()}
    n, n_tags = quality.truth.shape
    facts = [("photographs", f"{n:,}"), ("tags", f"{n_tags:,}")]
    facts += [
        (f"right where {percent(r.wanted)} is asked", percent(r.precision)) for r in quality.reached
    ]
    photographs: list[Any] = []
    truth = None
    if model is not None:
        photographs, truth = _examples(model, seen, rows)
    report = Report(
        "How good are the suggestions?",
        facts,
        Comparison(methods, measures),
        reliability=quality.reliability,
        photographs=photographs,
        truth=truth,
        labels=quality.labels,
        failures=failures,
        notes=[f"Measured by {quality.how}."],
    )
    write_report(report, path)


def _examples(
    model: Annotator, seen: Any, rows: Sequence[Sequence[str]]
) -> tuple[list[Any], dict[str, set[str]]]:
    """Suggestions for photographs that the model has not seen, and the tags that they carry."""
    known = set(model.digests_)
    fresh = [i for i, digest in enumerate(seen.digests) if digest not in known]
    chosen = fresh[:: max(1, len(fresh) // _PHOTOGRAPHS)][:_PHOTOGRAPHS]
    vocabulary = model.vocabulary_
    carried = vocabulary.inverse(vocabulary.transform([rows[i] for i in chosen]))
    files = [seen.files[i] for i in chosen]
    truth = {file: set(tags) for file, tags in zip(files, carried, strict=True)}
    return model.suggest(files, n_kin=6), truth
