"""tagkin write: put accepted tags into files."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import filters_of, opened
from tagkin.cli.guard import FAILED
from tagkin.cli.output import data, json_line, note, relative, say, send, shown, shown_tag
from tagkin.cli.progress import progress_bar
from tagkin.cli.tables import count, file_table, photographs, show

if TYPE_CHECKING:
    from tagkin.catalogue import Catalogue, WriteRun

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin write --dry-run
  tagkin write
  tagkin write --tag beach --folder 2024 --sidecars img.xmp
  tagkin write --type jpg --embed
"""
_SHOWN = 20  # of a dry run


class Name(StrEnum):
    """How a sidecar is named."""

    stem = "img.xmp"
    full = "img.jpg.xmp"


SidecarName = Annotated[
    Name | None,
    typer.Option(
        "--sidecars",
        metavar="img.xmp|img.jpg.xmp",
        help="How to name new sidecars. By default as most in the folder, else as most in the "
        "collection, else img.jpg.xmp; photographs with and without RAW are counted apart. "
        "Existing sidecars are used, whatever their name.",
    ),
]


def run(
    photos: options.PhotosOrAll = None,
    tags: options.TagFilter = None,
    at_least: options.AtLeast = None,
    below: options.Below = None,
    of_run: options.RunOfSuggestions = None,
    folder: options.Folder = None,
    types: options.FileType = None,
    sidecars: SidecarName = None,
    embed: Annotated[
        bool,
        typer.Option(
            "--embed",
            help="Write into the photographs themselves, and into sidecars that exist, with "
            "exiftool, which has to be installed. The original is kept as img.jpg_original. RAW "
            "files other than DNG get a sidecar.",
        ),
    ] = False,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Write the tags that were accepted into XMP files beside the photographs.

    PHOTOS are photographs of the collection; without them, all are meant. Filters are those of
    tagkin accept. Tags are added to those that are there; everything else in a sidecar stays as it
    is, and photographs are not touched. If a photograph has several sidecars, each of them gets
    the tags. tagkin undo puts every byte back.

    If a file cannot be written, the command names it, leaves all files of that photograph as they
    were, writes the others, and ends with 1. The next run finishes an interrupted run.
    """
    from tagkin.collection.sidecars import Convention

    convention = None if sidecars is None else Convention(sidecars)
    near = photos[0] if photos and catalogue is None and photos[0].exists() else None
    with opened(catalogue, "write", write=not dry_run, near=near) as one:
        filters = filters_of(one, photos, tags, at_least, below, of_run, folder, types)
        with progress_bar() as step:
            result = one.write(
                filters, convention=convention, embed=embed, dry_run=dry_run, progress=step
            )
        if as_json:
            send(json_line(_document(one, result, dry_run)))
        else:
            if dry_run:
                _show(one, result)
            say(_sentence(one, result, dry_run))
    for failure in result.failures:
        note(f"tags of {relative(failure.file)} were not written. {failure.reason}")
    if result.failures:
        raise typer.Exit(FAILED)


def _document(catalogue: Catalogue, result: WriteRun, dry_run: bool) -> dict[str, object]:
    return {
        "run": result.run,
        "dry_run": dry_run,
        "files": [
            one.to_dict()
            | {
                "photograph": relative(catalogue.absolute(one.photograph)),
                "file": relative(catalogue.absolute(one.file)),
            }
            for one in result.files
        ],
        "failures": [{"file": relative(one.file), "reason": one.reason} for one in result.failures],
    }


def _show(catalogue: Catalogue, result: WriteRun) -> None:
    if not result.files:
        return
    table = file_table("File", "", "Tags")
    for one in result.files[:_SHOWN]:
        kind = f"new, {one.why}" if one.is_new else ""
        names = ", ".join(map(shown_tag, one.tags))
        table.add_row(shown(catalogue.absolute(one.file)), kind, names)
    show(table)
    if len(result.files) > _SHOWN:
        data().print(f"and {len(result.files) - _SHOWN:,} more (--json lists them all)")
    data().print()


def _sentence(catalogue: Catalogue, result: WriteRun, dry_run: bool) -> str:
    files = [one for one in result.files if one.state != "there"]
    if not files and not result.failures:
        return "There is nothing to write: no accepted tag is missing in a file."
    if not files:
        return "Nothing was written."
    n_photographs = sum(one.is_embedded for one in files)
    counts = {"photograph": n_photographs, "sidecar": len(files) - n_photographs}
    places = " and ".join(count(n, kind) for kind, n in counts.items() if n)
    what = f"{count(result.n_tags, 'tag')} into {places}"
    n_new = sum(one.is_new for one in files)
    what += f", {n_new:,} of them new" if n_new else ""
    paths = {one.photograph for one in files}
    contents = {catalogue.photographs.content_of(path) for path in paths}
    if len(contents) < len(paths):
        what += f", for {photographs(len(contents), len(paths))}"
    if dry_run:
        return f"Would write {what}."
    return f"Run {result.run}: wrote {what}. `tagkin undo` takes it back."
