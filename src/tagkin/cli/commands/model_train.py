"""tagkin model train: learn from photographs and their tags, into a folder."""

from __future__ import annotations

import os
import shlex
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagkin.cli import options
from tagkin.cli.model_folders import read_photographs, report_problems, select_tagged
from tagkin.cli.output import (
    check_folder,
    json_line,
    note,
    progress_bar,
    relative,
    send,
    shown,
)
from tagkin.cli.registry import command
from tagkin.cli.tables import size
from tagkin.cli.training import (
    count_learnable,
    note_plurals,
    report_plan,
    show_learned,
    tag_facts,
)
from tagkin.features.backbone_names import BACKBONES
from tagkin.progress import Progress
from tagkin.wording import count

if TYPE_CHECKING:
    from tagkin.annotator import Annotator
    from tagkin.collection import Collection

_PRECISIONS = (0.5, 0.8)


@command("model train", writes=True)
def train(
    photos: options.Photos,
    model: options.Model,
    tags: options.Tags = None,
    column: options.Column = None,
    backbone: options.Backbone = BACKBONES[0],
    device: options.Device = None,
    min_count: options.MinCount = 2,
    synonyms: Annotated[
        Path | None,
        typer.Option(
            "--synonyms",
            metavar="FILE",
            help="A group of equal tags per line, best first.",
        ),
    ] = None,
    merge_plurals: Annotated[
        bool, typer.Option("--merge-plurals", help="Merge plurals, such as dogs with dog.")
    ] = False,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="TAG", help="Ignore this tag. Can be repeated."),
    ] = None,
    tune: options.Tune = False,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            show_default=False,
            help="Dask cluster that analyses the photographs, such as tcp://10.0.0.1:8786.",
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    dry_run: options.DryRun = False,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Train a model on photographs with tags, and save it in a folder.

    PHOTOS are photographs, and folders that are searched with their subfolders. Photographs
    without tags are skipped, and all are only read. MODEL is the folder to write.

    Examples
    --------
    tagkin model train ~/Pictures my-tags
    tagkin model train photos my-tags --merge-plurals --exclude "4k wallpaper"
    tagkin model train photos my-tags --tags data.jsonl --column labels --tune
    """
    from tagkin.annotator import Annotator
    from tagkin.collection import read_synonyms
    from tagkin.storage import check_folder as check_model_folder

    check_folder(model)  # before training, not after it
    check_model_folder(relative(model), overwrite=overwrite)
    start = time.perf_counter()
    annotator = Annotator(
        backbone=options.backbone_name(backbone),
        min_count=min_count,
        tune=tune,
        aliases=read_synonyms(synonyms) if synonyms else None,
        merge_plurals=merge_plurals,
        exclude=exclude or None,
    )
    with progress_bar() as step:
        photographs = read_photographs(photos, tags, column, step)
        tagged = select_tagged(photographs)
        if not dry_run:
            _fit(annotator, tagged, scheduler, step)
            annotator.save(model, overwrite=overwrite)
    problems = photographs.failures if dry_run else [*photographs.failures, *annotator.failures_]
    unreadable = report_problems(problems, verbose)
    if dry_run:
        plan = {
            "dry_run": True,
            "model": relative(model),
            "photographs": {"found": len(photographs), "tagged": len(tagged)},
            "tags": count_learnable(annotator, tagged.tags),
        }
        report_plan(plan, min_count, as_json)
        return
    note_plurals(annotator, "--merge-plurals merges them.")
    if absent := [tag for tag, n in annotator.vocabulary_.excluded_.items() if not n]:
        note(f"no photograph has these excluded tags: {', '.join(absent)}")
    summary = _summarise(annotator, photographs, unreadable, model)
    summary["seconds"] = time.perf_counter() - start
    if as_json:
        send(json_line(summary))
    else:
        _show(summary, annotator, model)


def _fit(annotator: Annotator, tagged: Collection, scheduler: str | None, step: Progress) -> None:
    if scheduler is None:
        annotator.fit(tagged, progress=step)
        return
    from tagkin.distributed import connect, extract

    with connect(scheduler) as client:
        seen = annotator.read_features(
            tagged, progress=step, extract=partial(extract, client=client)
        )
    tags_of = {
        os.path.abspath(file): row for file, row in zip(tagged.files, tagged.tags, strict=True)
    }
    annotator.fit(seen, [tags_of[os.path.abspath(file)] for file in seen.files], progress=step)
    annotator.tags_from_ = tagged.tags_from


def _summarise(
    annotator: Annotator, photographs: Collection, unreadable: list[dict[str, str]], model: Path
) -> dict[str, Any]:
    vocabulary, calibrator = annotator.vocabulary_, annotator.calibrator_
    summary = annotator.summary()
    return {
        "model": relative(model),
        "photographs": {
            "found": len(photographs),
            "tagged": photographs.n_tagged,
            "used": len(annotator.files_),
            "in_series": summary["in_series"],
            "series": summary["series"],
            "unreadable": unreadable,
            "absent": list(photographs.absent),
            "raw_beside_photographs": len(photographs.raw_of),
            "raw_left_out": len(photographs.unread_raw),
        },
        "tags": {"learned": len(vocabulary.names_), "dropped": dict(vocabulary.dropped_)},
        "tags_reaching_precision": {
            str(precision): int((calibrator.min_scores(precision) < float("inf")).sum())
            for precision in _PRECISIONS
        },
    }


def _show(summary: dict[str, Any], annotator: Annotator, model: Path) -> None:
    photos, reached = summary["photographs"], summary["tags_reaching_precision"]
    n_bytes = sum(file.stat().st_size for file in model.iterdir())
    n_unreadable = len(annotator.failures_)
    parts = [f"{photos[name]:,} {name}" for name in ("found", "tagged", "used")]
    if n_unreadable:
        parts.append(f"{n_unreadable:,} unreadable")
    if copies := photos["tagged"] - photos["used"] - n_unreadable:
        parts.append(count(copies, "copy", "copies"))
    rows = [("Photographs", ", ".join(parts))]
    if photos["series"]:
        in_series = f"{count(photos['in_series'], 'photograph')} in {photos['series']:,} series"
        rows.append(("Series", f"{in_series}, each held out as a whole to learn confidences"))
    rows += tag_facts(annotator, summary)
    rows += [
        (
            "Suggestions",
            f"{count(reached['0.5'], 'tag')} can be suggested with half of them right, "
            f"{reached['0.8']:,} with 4 of 5 right",
        ),
        ("Model", f"{shown(model)} ({size(n_bytes)})"),
    ]
    following = f"tagkin model suggest PHOTOS {shown(shlex.quote(str(model)))}"
    show_learned(summary, rows, following)
