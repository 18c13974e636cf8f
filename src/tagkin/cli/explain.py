"""tagkin explain: why tags are suggested for a photograph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagkin.cli import options
from tagkin.cli.files import check_target
from tagkin.cli.output import (
    data,
    json_line,
    relative,
    say,
    send,
    shown,
    shown_tag,
    suggestion_rows,
)
from tagkin.cli.progress import progress_bar
from tagkin.cli.sources import open_model, report_missing
from tagkin.cli.tables import bar, file_table, percent, show

if TYPE_CHECKING:
    from tagkin.annotator import PhotoSuggestions

__all__ = ["EXAMPLES", "run"]

TagsOf = Mapping[str, Sequence[str]]  # of tagged photographs, by file

EXAMPLES = """\b
Examples:
  tagkin explain photo.jpg --model my-tags
  tagkin explain photo.jpg --model my-tags --sheet why.png --top 8
  tagkin explain photo.jpg --model my-tags --kin 3 --json
"""


def run(
    photo: options.Photo,
    model: options.Model,
    top: Annotated[
        int, typer.Option("--top", metavar="N", min=1, help="Tags to explain, the surest first.")
    ] = 5,
    kin: options.NKin = 6,
    sheet: Annotated[
        Path | None,
        typer.Option("--sheet", metavar="FILE.png", help="Draw a contact sheet of the kin."),
    ] = None,
    overwrite: options.Overwrite = False,
    as_json: options.AsJson = False,
    leaf_only: options.LeafOnly = False,
    collection: options.Collection = None,
    cache: options.Cache = None,
    no_cache: options.NoCache = False,
) -> None:
    """Show who speaks for each tag suggested for a photograph.

    PHOTO is the photograph. Its kin are tagged photographs that carry the tag. The share of a kin
    is its part of all that speaks for the tag. The contact sheet shows the same as a picture.
    """
    check_target(sheet, overwrite, (".png",))
    with progress_bar() as step:
        annotator = open_model(model, cache, no_cache, collection, step, leaf_only)
        found = annotator.suggest([photo], top=top, n_kin=kin, progress=step)[0]
        if sheet is not None:
            from tagkin.pages import contact_sheet

            step("Drawing", 0, 1)
            contact_sheet(found, sheet)
    report_missing(kin.file for one in found.suggestions for kin in one.kin)
    tags_of = dict(zip(annotator.paths_, annotator.tags_, strict=True))
    if as_json:
        send(json_line(_plain(found, tags_of)))
    else:
        _show(found, tags_of)
    if sheet is not None:
        say(f"Contact sheet: {shown(sheet)}")


def _plain(found: PhotoSuggestions, tags_of: TagsOf) -> dict[str, Any]:
    """As suggest has it, with the tags that the photograph and its kin carry."""
    rows = suggestion_rows(found.suggestions)
    for row, one in zip(rows, found.suggestions, strict=True):
        for kin, there in zip(row["kin"], one.kin, strict=True):
            kin["tags"] = list(tags_of.get(there.file, ()))
    return {"file": relative(found.file), "tags": list(found.tags), "suggestions": rows}


def _show(found: PhotoSuggestions, tags_of: TagsOf) -> None:
    console = data()
    console.print(f"[bold]{shown(found.file)}[/bold]")
    if found.tags:
        console.print(f"Carries {', '.join(shown_tag(tag) for tag in found.tags)}.")
    if not found.suggestions:
        console.print("No tag is suggested.")
    for one in found.suggestions:
        console.print()
        console.print(
            f"[cyan]{shown_tag(one.tag)}[/cyan]  {bar(one.confidence)} "
            f"{percent(one.confidence)} sure"
        )
        if not one.kin:
            continue
        table = file_table("Photograph", "Share", "Its tags")
        for kin in one.kin:
            tags = ", ".join(shown_tag(tag) for tag in tags_of.get(kin.file, ()))
            table.add_row(shown(kin.file), percent(kin.share), tags)
        show(table)
