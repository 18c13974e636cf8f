"""tagkin explain: why tags are suggested for a photograph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.files import check_target
from tagkin.cli.output import data, say, shown, shown_tag
from tagkin.cli.progress import progress_bar
from tagkin.cli.sources import open_model
from tagkin.cli.tables import bar, file_table, percent, show

if TYPE_CHECKING:
    from tagkin.annotator import Annotator, PhotoSuggestions

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin explain photo.jpg --model my-tags
  tagkin explain photo.jpg --model my-tags --sheet why.png --top 8
"""


def run(
    photo: options.Photo,
    model: options.Model,
    top: Annotated[
        int, typer.Option("--top", metavar="N", min=1, help="Tags to explain, the surest first.")
    ] = 5,
    kin: Annotated[
        int, typer.Option("--kin", metavar="N", min=1, help="Kin named for each tag.")
    ] = 6,
    sheet: Annotated[
        Path | None,
        typer.Option("--sheet", metavar="FILE.png", help="Draw a contact sheet of the kin."),
    ] = None,
    overwrite: options.Overwrite = False,
    cache: options.Cache = None,
    no_cache: options.NoCache = False,
) -> None:
    """Show who speaks for each tag suggested for a photograph.

    PHOTO is the photograph. Its kin are tagged photographs that carry the tag. The share of a kin
    is its part of all that speaks for the tag. The contact sheet shows the same as a picture.
    """
    check_target(sheet, overwrite, (".png",))
    with progress_bar() as step:
        annotator = open_model(model, cache, no_cache)
        found = annotator.suggest([photo], top=top, n_kin=kin, progress=step)[0]
        if sheet is not None:
            from tagkin.pages import contact_sheet

            step("Drawing", 0, 1)
            contact_sheet(found, sheet)
    _show(found, annotator)
    if sheet is not None:
        say(f"Contact sheet: {shown(sheet)}")


def _show(found: PhotoSuggestions, annotator: Annotator) -> None:
    tags_of = dict(zip(annotator.files_, annotator.tags_, strict=True))
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
        table = file_table("Photograph", "Share", "Its tags")
        for kin in one.kin:
            tags = ", ".join(shown_tag(tag) for tag in tags_of.get(kin.file, ()))
            table.add_row(shown(kin.file), percent(kin.share), tags)
        show(table)
