"""The quality of suggestions as a page to look at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagkin.cli.tables import count, percent

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
    from tagkin.pages import Report, comparisons_of, write_report

    n, n_tags = quality.truth.shape
    facts = [
        ("photographs", f"{n:,}"),
        ("tags", f"{n_tags:,}"),
        ("tags per photograph", f"{quality.tags_per_photograph:.1f}"),
    ]
    facts += [
        (
            f"right of {count(r.n_suggestions, 'suggestion', 'suggestions')}, "
            f"{percent(r.wanted)} asked for",
            percent(r.precision),
        )
        for r in quality.operating_points
        if r.n_suggestions
    ]
    photographs: list[Any] = []
    truth = None
    if model is not None:
        photographs, truth = _examples(model, seen, rows)
    report = Report(
        "How good are the suggestions?",
        facts,
        comparisons_of(quality),
        reliability=quality.reliability,
        photographs=photographs,
        truth=truth,
        labels=quality.labels,
        failures=failures,
        notes=[f"Measured: {quality.how}."],
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
    carried = vocabulary.inverse_transform(vocabulary.transform([rows[i] for i in chosen]))
    files = [seen.files[i] for i in chosen]
    truth = {file: set(tags) for file, tags in zip(files, carried, strict=True)}
    return model.suggest(files, n_kin=6), truth
