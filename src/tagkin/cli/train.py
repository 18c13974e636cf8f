"""tagkin train: learn from photographs and their tags."""

from __future__ import annotations

import os
import shlex
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagkin.cli import options
from tagkin.cli.files import check_folder
from tagkin.cli.output import (
    data,
    json_line,
    note,
    relative,
    send,
    shown,
    shown_tag,
    shown_text,
)
from tagkin.cli.planning import plan_from_catalogue, plan_from_files
from tagkin.cli.progress import progress_bar
from tagkin.cli.sources import photographs, report_problems, tag_settings, tagged, use_cache
from tagkin.cli.tables import count, facts, seconds, size
from tagkin.cli.with_catalogue import learn_from_catalogue, refuse_options, report_learned
from tagkin.features.registry import BACKBONES
from tagkin.progress import Progress
from tagkin.wording import denoising_text

if TYPE_CHECKING:
    from tagkin.annotator import Annotator
    from tagkin.collection import Collection

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin train ~/Pictures --model my-tags
  tagkin train photos --tags tags.csv --model my-tags --overwrite
  tagkin train photos --model my-tags --merge plurals --exclude "4k wallpaper"
  tagkin train photos --tags data.jsonl --column labels --model my-tags --tune
  tagkin train
  tagkin train --dry-run
"""
_DROPPED, _PAIRS = 5, 3  # tags and pairs of tags named


def run(
    photos: options.PhotosOrAll = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            "-m",
            metavar="DIR",
            show_default=False,
            help="Where the model goes. Without PHOTOS, it goes beside the catalogue.",
        ),
    ] = None,
    tags: options.Tags = None,
    column: options.Column = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing model.")
    ] = False,
    backbone: options.Backbone = BACKBONES[0],
    views: options.Views = 1,
    min_count: options.MinCount = 2,
    synonyms: options.Synonyms = None,
    merge: options.MergePlurals = None,
    exclude: options.Exclude = None,
    exclude_file: options.ExcludeFile = None,
    tune: Annotated[
        bool,
        typer.Option("--tune", help="Choose settings by cross-validation. Takes some minutes."),
    ] = False,
    no_denoise: options.NoDenoise = False,
    cache: options.Cache = None,
    no_cache: options.NoCache = False,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            show_default=False,
            help="Analyse the photographs on a Dask cluster, such as tcp://10.0.0.1:8786. Its "
            "workers must find them under the same paths.",
        ),
    ] = None,
    seed: options.Seed = 0,
    dry_run: options.DryRun = False,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Learn from photographs and their tags.

    PHOTOS are photographs, and folders that are searched with all their subfolders. Photographs
    without tags are skipped. Your photographs are only read: what is learned goes into a separate
    folder, the model.

    Without PHOTOS and --model, the photographs of a catalogue are learned from, with the tags that
    the last scan found and those that you accepted. Tags that you rejected count against.
    """
    if bool(photos) != (model is not None):
        missing = "--model" if photos else "PHOTOS"
        raise typer.BadParameter(
            f"{missing} is missing; a catalogue needs neither it nor the other."
        )
    if model is not None:
        _check_model_folder(model, overwrite)
    kept = use_cache(cache, no_cache)
    settings = tag_settings(synonyms, merge, exclude, exclude_file)
    start = time.perf_counter()
    with progress_bar() as step:
        from tagkin.annotator import Annotator

        annotator = Annotator(
            backbone=options.backbone_name(backbone, views),
            denoise=not no_denoise,
            min_count=min_count,
            tune=tune,
            cache=kept,
            random_state=seed,
            **settings,
        )
        if not photos or model is None:
            refuse_options("with PHOTOS and --model", tags=tags, column=column, scheduler=scheduler)
            given = {"backbone": backbone, "min_count": min_count, "seed": seed, **settings}
            given |= {"tune": tune, "denoise": not no_denoise}
            if dry_run:
                plan_from_catalogue(annotator, catalogue, as_json)
                return
            learned = learn_from_catalogue(annotator, catalogue, given, step)
            _remark(annotator)
            report_learned(annotator, learned, start, verbose, as_json)
            return
        found = photographs(photos, tags, column, step)
        some = tagged(found)
        if dry_run:
            report_problems(found.failures, verbose)
            plan_from_files(annotator, found, some, model, as_json)
            return
        _fit(annotator, some, scheduler, step)
        annotator.cache = True  # whether to keep features is for each command to say
        annotator.save(model, overwrite=overwrite)
    problems = report_problems([*found.failures, *annotator.failures_], verbose)
    _remark(annotator)
    summary = _summary(annotator, found, problems, model, time.perf_counter() - start)
    if as_json:
        send(json_line(summary))
    else:
        _show(summary, annotator, model)


def _remark(annotator: Annotator) -> None:
    """Say which tags may be one, and which were to be left out and are on no photograph."""
    vocabulary = annotator.vocabulary_
    if pairs := vocabulary.plurals_:
        named = ", ".join(f"{one} and {several}" for one, several in pairs[:_PAIRS])
        more = f" and {len(pairs) - _PAIRS:,} more pairs" if len(pairs) > _PAIRS else ""
        note(f"{named}{more} were learned as separate tags. --merge plurals merges them.")
    if nowhere := [tag for tag, n in vocabulary.excluded_.items() if not n]:
        note(f"no photograph carries these excluded tags: {', '.join(nowhere)}")


def _fit(annotator: Annotator, found: Collection, scheduler: str | None, step: Progress) -> None:
    if scheduler is None:
        annotator.fit(found, progress=step)
        return
    from tagkin.distributed import connect, extract

    with connect(scheduler) as client:
        seen = annotator.read_features(
            found, progress=step, extract=partial(extract, client=client)
        )
    tags_of = {
        os.path.abspath(file): row for file, row in zip(found.files, found.tags, strict=True)
    }
    annotator.fit(seen, [tags_of[os.path.abspath(file)] for file in seen.files], progress=step)
    annotator.tags_from_ = found.tags_from


def _check_model_folder(folder: Path, overwrite: bool) -> None:
    """Refuse before hours of work what would be refused after them."""
    from tagkin.storage import check_folder as check_model_folder

    check_folder(folder)
    check_model_folder(relative(folder), overwrite=overwrite)


def _summary(
    annotator: Annotator,
    found: Collection,
    problems: list[dict[str, str]],
    model: Path,
    elapsed: float,
) -> dict[str, Any]:
    names = annotator.vocabulary_.names_
    summary = annotator.summary()
    n_reached = {
        str(wanted): int((annotator.calibrator_.min_scores(wanted) < float("inf")).sum())
        for wanted in (0.5, 0.8)
    }
    return {
        "model": relative(model),
        "photographs": {
            "found": len(found),
            "tagged": found.n_tagged,
            "used": len(annotator.files_),
            "in_series": summary["in_series"],
            "series": summary["series"],
            "unreadable": problems,
            "absent": list(found.absent),
            "raw_beside_photographs": len(found.raw_of),
            "raw_left_out": len(found.unread_raw),
        },
        "tags": {"learned": len(names), "dropped": dict(annotator.vocabulary_.dropped_)},
        "denoised": float(annotator.blend_),
        "tags_reaching_precision": n_reached,
        "seconds": elapsed,
    }


def _show(summary: dict[str, Any], annotator: Annotator, model: Path) -> None:
    photos, n_tags = summary["photographs"], summary["tags"]["learned"]
    reached = summary["tags_reaching_precision"]
    n_bytes = sum(file.stat().st_size for file in model.iterdir())
    n_unreadable = len(annotator.failures_)
    parts = [
        f"{photos['found']:,} found",
        f"{photos['tagged']:,} tagged",
        f"{photos['used']:,} used",
    ]
    if n_unreadable:
        parts.append(f"{n_unreadable:,} unreadable")
    if copies := photos["tagged"] - photos["used"] - n_unreadable:
        parts.append(count(copies, "copy", "copies"))
    rows = [
        ("Photographs", ", ".join(parts)),
        *_series_row(photos),
        ("Tags", _tags_text(n_tags, summary["tags"]["dropped"], annotator.min_count)),
        ("Denoised", denoising_text(summary["denoised"])),
        ("Names", _names_text(annotator)),
        (
            "Suggestions",
            f"{count(reached['0.5'], 'tag', 'tags')} can be suggested so that half are right, "
            f"{reached['0.8']:,} so that 4 of 5 are",
        ),
        ("Model", f"{shown(model)} ({size(n_bytes)})"),
    ]
    console = data()
    console.print(
        f"[green]Learned {count(n_tags, 'tag', 'tags')} from "
        f"{count(photos['used'], 'photograph', 'photographs')} in "
        f"{seconds(summary['seconds'])}.[/green]"
    )
    console.print()
    console.print(facts(rows))
    console.print()
    console.print(
        f"Next: [bold]tagkin suggest PHOTOS --model {shown(shlex.quote(str(model)))}[/bold]"
    )


def _series_row(photos: dict[str, Any]) -> list[tuple[str, str]]:
    """How many photographs are in series, where there are some."""
    if not photos["series"]:
        return []
    found = f"{count(photos['in_series'], 'photograph')} in {photos['series']:,} series"
    return [("Series", f"{found}, each held out as a whole while confidences are learned")]


def _tags_text(n_tags: int, dropped: dict[str, int], min_count: int) -> str:
    text = f"{n_tags:,} learned"
    if dropped:
        named = ", ".join(shown_tag(tag) for tag in list(dropped)[:_DROPPED])
        more = ", …" if len(dropped) > _DROPPED else ""
        few = count(min_count, "photograph")
        text += f", {len(dropped):,} on fewer than {few} ignored: {named}{more}"
    return text


def _names_text(annotator: Annotator) -> str:
    """How many names count beside the photographs, or why none does."""
    names = annotator.estimator_.names_
    if names is None:
        return f"do not count. {shown_text(annotator.names_note_)}"
    return f"those of {names.n_counted:,} tags count beside the photographs"
