"""tagkin evaluate: how good suggestions are, on tags that were held out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagkin.cli import options
from tagkin.cli.files import check_target, write_file
from tagkin.cli.output import json_line, say, send, shown
from tagkin.cli.progress import progress_bar
from tagkin.cli.quality_page import write_quality
from tagkin.cli.quality_tables import show_quality
from tagkin.cli.sources import (
    open_model,
    photographs,
    report_missing,
    report_problems,
    seen_of,
    tag_settings,
    use_cache,
)
from tagkin.features.registry import BACKBONES

if TYPE_CHECKING:
    from tagkin.annotator import Annotator, OperatingPoint, Quality

__all__ = ["EXAMPLES", "run"]

_NAMES = {
    "image_precision": "photograph_precision",
    "image_recall": "photograph_recall",
    "hit_rate": "at_least_one_right",
}

EXAMPLES = """\b
Examples:
  tagkin evaluate ~/Pictures --report quality.html
  tagkin evaluate photos --tags tags.csv --csv tags-quality.csv
  tagkin evaluate other-photos --model my-tags
"""


def run(
    photos: options.Photos,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            "-m",
            metavar="DIR",
            help="Evaluate this model on photographs that it has not seen. Without it, evaluate "
            "by cross-validation.",
        ),
    ] = None,
    tags: options.Tags = None,
    column: options.Column = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE.html", help="Write an HTML report.")
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE.csv", help="Write the figures of each tag."),
    ] = None,
    overwrite: options.Overwrite = False,
    collection: options.Collection = None,
    as_json: options.AsJson = False,
    backbone: options.Backbone = BACKBONES[0],
    views: options.Views = 1,
    min_count: options.MinCount = 2,
    synonyms: options.Synonyms = None,
    merge: options.MergePlurals = None,
    exclude: options.Exclude = None,
    exclude_file: options.ExcludeFile = None,
    no_denoise: options.NoDenoise = False,
    seed: options.Seed = 0,
    cache: options.Cache = None,
    no_cache: options.NoCache = False,
    verbose: options.Verbose = False,
) -> None:
    """Measure how good suggestions are, on tags that were held out.

    PHOTOS are photographs, and folders that are searched with all their subfolders.

    Means over photographs say what to expect when you look at suggestions. Means over tags are the
    paper's; tags that are never suggested count as 0. The baseline is visual neighbours: the
    photographs nearest in visual feature space. Without a model, each part of the photographs is
    held out in turn, and the options are those of train; with a model, its own settings apply.
    """
    check_target(report, overwrite, (".html", ".htm"))
    check_target(csv, overwrite, (".csv",))
    with progress_bar() as step:
        if model is None:
            annotator = _like_train(backbone, views, min_count, no_denoise, seed, cache, no_cache)
            annotator.set_params(**tag_settings(synonyms, merge, exclude, exclude_file))
        else:
            annotator = open_model(model, cache, no_cache, collection, step, photos=photos)
        found = photographs(photos, tags, column, step)
        seen, rows = seen_of(annotator, found, step)
        judge = annotator.cross_validate if model is None else annotator.evaluate
        quality = judge(seen, rows, progress=step)
        if report is not None:
            step("Writing the report", 0, 1)
            failures = [*found.failures, *seen.failures]
            shown_by = None if model is None else annotator
            write_quality(quality, report, failures, shown_by, seen, rows)
    report_problems([*found.failures, *seen.failures], verbose)
    if model is not None:
        report_missing(annotator.paths_)
    if csv is not None:
        write_file(csv, quality.labels.to_csv())
    if as_json:
        send(json_line(_plain(quality)))
    else:
        show_quality(quality)
    if csv is not None:
        say(f"Tag by tag: {shown(csv)}")
    if report is not None:
        say(f"Report: {shown(report)}")


def _like_train(
    backbone: str,
    views: int,
    min_count: int,
    no_denoise: bool,
    seed: int,
    cache: Path | None,
    no_cache: bool,
) -> Annotator:
    kept = use_cache(cache, no_cache)
    from tagkin.annotator import Annotator

    return Annotator(
        backbone=options.backbone_name(backbone, views),
        denoise=not no_denoise,
        min_count=min_count,
        cache=kept,
        random_state=seed,
    )


def _plain(quality: Quality) -> dict[str, Any]:
    labels, curve = quality.labels, quality.reliability
    columns = (
        "support",
        "average_precision",
        "damped_precision",
        "n_assigned",
        "precision",
        "recall",
    )
    return {
        "how": quality.how,
        "photographs": quality.truth.shape[0],
        "tags_per_photograph": quality.tags_per_photograph,
        "semantic": _figures(quality.semantic),
        "visual": _figures(quality.visual) or None,
        "by_default": _reached(quality.by_default),
        "reached": [{"wanted": one.wanted} | _reached(one) for one in quality.operating_points],
        "reliability": [
            {"confidence": float(said), "right": float(right), "pairs": int(n)}
            for said, right, n in zip(*curve, strict=True)
        ],
        "tags": [
            {"tag": str(name)} | dict(zip(columns, map(_number, values), strict=True))
            for name, *values in zip(
                labels.names[labels.order],
                *(getattr(labels, column)[labels.order] for column in columns),
                strict=True,
            )
        ],
    }


def _reached(one: OperatingPoint) -> dict[str, float]:
    return {
        "precision": one.precision,
        "recall": one.recall,
        "suggestions": one.n_suggestions,
        "suggestions_per_photograph": one.per_photograph,
        "photographs_without": one.without,
    }


def _figures(measures: dict[str, float]) -> dict[str, float]:
    """Figures by names that say what they are a mean over: photographs, or tags (macro)."""
    return {_NAMES.get(key, key): value for key, value in measures.items()}


def _number(value: Any) -> Any:
    number = float(value)
    return int(number) if math.isfinite(number) and value.dtype.kind in "iu" else number
