"""tagkin train: learn from the tags in a collection."""

from __future__ import annotations

import time
from typing import Any

from tagkin.cli import options
from tagkin.cli.catalogues import check_whole, open_collection
from tagkin.cli.inputs import report_problems
from tagkin.cli.output import json_line, progress_bar, relative, send, shown
from tagkin.cli.registry import command
from tagkin.cli.training import (
    count_learnable,
    note_change,
    note_few_complete,
    note_plurals,
    report_plan,
    show_learned,
    tag_facts,
)
from tagkin.features.backbone_names import BACKBONES
from tagkin.wording import count


@command("train", writes=True)
def train(
    folder: options.Folder = None,
    backbone: options.Backbone = BACKBONES[0],
    min_count: options.MinCount = 1,
    tune: options.Tune = False,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Learn from the tags in a collection.

    FOLDER is the collection; it is scanned first if it has no catalogue. The default is the
    current folder's collection. Training uses the tags that the last scan found, and your answers:
    accepted tags are right, rejected tags are wrong, and what you did not answer is unknown unless
    you finished the photograph. The model is stored beside the catalogue; your photographs are
    only read.

    If you can wait, two backbones see more than one: on the photographs of our tests,
    efficientnet-lite0+lite2-whole has a MAP 3 points above the default, and takes four times as
    long. Join any names with +, even names of other models.

    Examples
    --------
    tagkin train ~/Pictures
    tagkin train --dry-run
    tagkin train --backbone efficientnet-lite0+lite2-whole
    """
    from tagkin.annotator import Annotator

    start = time.perf_counter()
    annotator = Annotator(backbone=options.backbone_name(backbone), min_count=min_count, tune=tune)
    with (
        progress_bar() as step,
        open_collection(
            folder, catalogue, "train", step, write=not dry_run, dry_run=dry_run
        ) as opened,
    ):
        check_whole(opened, folder)
        contents, n_all = opened.model.to_learn_from()
        note_change(opened, annotator.backbone)
        summary: dict[str, Any] = {
            "run": None,
            "dry_run": dry_run,
            "folder": relative(opened.root),
            "catalogue": relative(opened.path),
            "model": relative(opened.model.folder),
        }
        if dry_run:
            rows = [content.known_tags for content in contents if content.known_tags]
            summary["photographs"] = {"found": n_all, "tagged": len(rows)}
            summary["tags"] = count_learnable(annotator, rows)
        else:
            parameters = {"backbone": backbone, "min_count": min_count}
            parameters |= {"tune": True} if tune else {}
            summary["run"] = opened.model.train(annotator, parameters, progress=step)
            n_all = opened.photographs.count()["n_photographs"]
            summary["photographs"] = {"found": n_all, "used": len(annotator.files_)}
    summary["rejected"] = sum(len(content.rejected) for content in contents)
    summary["photographs"]["complete"] = note_few_complete(contents)
    if dry_run:
        report_plan(summary, min_count, as_json)
        return
    vocabulary = annotator.vocabulary_
    summary["tags"] = {"learned": len(vocabulary.names_), "dropped": dict(vocabulary.dropped_)}
    summary["photographs"]["unreadable"] = report_problems(annotator.failures_)
    summary["seconds"] = time.perf_counter() - start
    note_plurals(annotator)
    if as_json:
        send(json_line(summary))
        return
    photos = summary["photographs"]
    lines = [
        ("Folder", shown(summary["folder"])),
        ("Photographs", f"{photos['found']:,}, {photos['used']:,} of them with tags to learn from"),
        *tag_facts(annotator, summary),
        ("Rejected", f"{count(summary['rejected'], 'tag')} as negative examples"),
    ]
    show_learned(summary, lines, "tagkin suggest")
