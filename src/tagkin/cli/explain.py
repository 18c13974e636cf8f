"""tagkin explain: why tags are suggested for a photograph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.files import check_target
from tagkin.cli.output import data, document, json_line, say, send, shown, shown_tag
from tagkin.cli.progress import progress_bar
from tagkin.cli.sources import open_model, report_missing
from tagkin.cli.tables import bar, file_table, percent, show
from tagkin.cli.with_catalogue import explain_in_catalogue, refuse_options
from tagkin.wording import shares_text

if TYPE_CHECKING:
    from tagkin.annotator import PhotoSuggestions

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin explain photo.jpg --model my-tags
  tagkin explain photo.jpg --model my-tags --sheet why.png -n 8
  tagkin explain photo.jpg --model my-tags --n-kin 3 --json
  tagkin explain ~/Pictures/photo.jpg
"""


def run(
    photo: options.Photo,
    model: options.ModelOrCatalogue = None,
    n: Annotated[
        int,
        typer.Option(
            "-n", "--n-tags", metavar="N", min=1, help="Tags to explain, the most likely first."
        ),
    ] = 5,
    n_kin: options.NKin = 6,
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
    catalogue: options.Catalogue = None,
) -> None:
    """Show why tags are suggested for a photograph.

    PHOTO is any photograph. A tag is suggested because of its kin: the most similar tagged
    photographs that carry it. The share of each is its part of their support for the tag. What the
    photograph itself shows, beside photographs with the tag, and what the tag's name means have
    their shares, too. A contact sheet shows the kin as a picture.

    Without --model, the catalogue tells of every tag of the photograph who says so: the file in
    which it stands, or the run, the model and the confidence with which it was suggested, and what
    you decided.
    """
    check_target(sheet, overwrite, (".png",))
    if model is None:
        refuse_options("with --model", sheet=sheet, collection=collection)
        explain_in_catalogue(catalogue, photo, n_kin, as_json)
        return
    with progress_bar() as step:
        annotator = open_model(model, cache, no_cache, collection, step, leaf_only)
        found = annotator.suggest([photo], n=n, n_kin=n_kin, progress=step)[0]
        if sheet is not None:
            from tagkin.pages import contact_sheet

            step("Drawing", 0, 1)
            contact_sheet(found, sheet)
    report_missing(kin.file for one in found.suggestions for kin in one.kin)
    if as_json:
        send(json_line(document(found)))
    else:
        _show(found)
    if sheet is not None:
        say(f"Contact sheet: {shown(sheet)}")


def _show(found: PhotoSuggestions) -> None:
    console = data()
    console.print(f"[bold]{shown(found.file)}[/bold]")
    if found.tags:
        console.print(f"Carries {', '.join(shown_tag(tag) for tag in found.tags)}.")
    if not found.suggestions:
        console.print("No suggestion.")
    for one in found.suggestions:
        console.print()
        console.print(
            f"[cyan]{shown_tag(one.tag)}[/cyan]  {bar(one.confidence)} "
            f"{percent(one.confidence)} confidence"
        )
        if shares := shares_text(one.name_share, one.readout_share):
            console.print(f"[dim]Suggested {shares}[/dim]")
        if not one.kin:
            continue
        table = file_table("Kin", "Share", "Their tags")
        for kin in one.kin:
            tags = ", ".join(shown_tag(tag) for tag in kin.tags)
            table.add_row(shown(kin.file), percent(kin.share), tags)
        show(table)
