"""tagkin info: what a model is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagkin.cli import options
from tagkin.cli.output import data, json_line, relative, send, shown, shown_tag, shown_text
from tagkin.cli.sources import open_model
from tagkin.cli.tables import facts, size
from tagkin.wording import denoising_text

if TYPE_CHECKING:
    from tagkin.annotator import Annotator

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin info my-tags
  tagkin info my-tags --json
"""
_TAGS = 12  # named


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", show_default=False, hidden=True)],
    as_json: options.AsJson = False,
) -> None:
    """Show what a model learned from, and how.

    MODEL is the model's folder.
    """
    annotator = open_model(model)
    found = _facts(annotator, model)
    if as_json:
        send(json_line(found))
        return
    often = sorted(found["tags"].items(), key=lambda item: -item[1])
    named = ", ".join(f"{shown_tag(tag)} ({n:,})" for tag, n in often[:_TAGS])
    in_series = f", {found['in_series']:,} of them in {found['series']:,} series"
    if not found["series"]:
        in_series = ""
    rows = [
        ("Model", f"{shown(model)} ({size(found['bytes'])})"),
        ("Photographs", f"{found['photographs']:,}{in_series}"),
        ("Tags", f"{len(often):,}: {named}{', …' if len(often) > _TAGS else ''}"),
        ("Backbone", f"{shown(annotator.backbone)} ({found['fingerprint'][:12]})"),
        ("Denoised", denoising_text(found["denoised"])),
    ]
    console = data()
    console.print(facts(rows))
    console.print()
    for line in found["description"]:
        console.print(shown_text(line), style="dim")


def _facts(annotator: Annotator, folder: Path) -> dict[str, Any]:
    vocabulary = annotator.vocabulary_
    # what kin carry now: tags may have been taken off photographs since they were counted
    n_in_series, n_series = annotator.n_in_series()
    counts = (int(n) for n in annotator.method_.labels_.sum(axis=0))
    return {
        "model": relative(folder),
        "bytes": sum(file.stat().st_size for file in folder.iterdir()),
        "photographs": len(annotator.files_),
        "in_series": n_in_series,
        "series": n_series,
        "tags": dict(zip(vocabulary.names_, counts, strict=True)),
        "dropped": dict(vocabulary.dropped_),
        "backbone": annotator.backbone,
        "fingerprint": annotator.fingerprint_,
        "denoised": float(annotator.blend_),
        "description": annotator.describe(),
    }
