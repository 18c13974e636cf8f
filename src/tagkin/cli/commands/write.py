"""tagkin write: put accepted tags into files."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import (
    add_photographs,
    first_photograph,
    note_to_confirm,
    open_for_command,
)
from tagkin.cli.guard import FAILED
from tagkin.cli.output import failure_rows, note, progress_bar, relative, say, send_json
from tagkin.cli.registry import command
from tagkin.cli.tables import file_table, photographs_text, show_first
from tagkin.wording import count, name_first

if TYPE_CHECKING:
    from tagkin.catalogue import Catalogue, WriteRun


class Name(StrEnum):
    """How a sidecar is named."""

    stem = "img.xmp"
    full = "img.jpg.xmp"


SidecarName = Annotated[
    Name | None,
    typer.Option(
        "--sidecars",
        metavar="img.xmp|img.jpg.xmp",
        parser=options.parse_choice(Name),
        autocompletion=lambda: list(Name),
        help="Names of new sidecars. Default: like most others, else img.jpg.xmp.",
    ),
]
Embed = Annotated[
    bool,
    typer.Option(
        "--embed",
        help="Write into photographs and existing sidecars, with exiftool, which keeps the "
        "original as img.jpg_original. RAW files other than DNG get a sidecar.",
    ),
]
Remove = Annotated[
    bool,
    typer.Option(
        "--remove",
        help="Also remove rejected tags, from photographs only with --embed.",
    ),
]
Align = Annotated[
    bool,
    typer.Option(
        "--align",
        help="Also copy a photograph's tags into all lists of tags in its files, because some "
        "programs read only one.",
    ),
]


@command("write")
def write(
    photos: options.PhotosOrAll = None,
    tags: options.TagFilter = None,
    sidecars: SidecarName = None,
    embed: Embed = False,
    remove: Remove = False,
    align: Align = False,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Write accepted tags into XMP files beside the photographs.

    PHOTOS are photographs of the collection, or a folder in it; the default is all. Tags are added
    to existing tags; everything else in a sidecar stays, and photographs are not touched unless you
    say --embed. tagkin undo restores every byte. If a file cannot be written, the command names it,
    leaves all files of that photograph unchanged, writes the others, and ends with exit code 1.

    Examples
    --------
    tagkin write
    tagkin write ~/Pictures/2024 --tag beach --dry-run
    tagkin write --embed --remove
    tagkin write --align --dry-run
    """
    from tagkin.catalogue import Filters
    from tagkin.collection.sidecars import Convention

    convention = None if sidecars is None else Convention(sidecars)
    with open_for_command(
        catalogue, "write", write=not dry_run, near=first_photograph(photos)
    ) as opened:
        selected = add_photographs(Filters(tuple(tags or ())), opened, photos)
        with progress_bar() as step:
            result = opened.write(
                selected,
                convention=convention,
                embed=embed,
                remove=remove,
                align=align,
                dry_run=dry_run,
                progress=step,
            )
        if as_json:
            send_json(_document(opened, result, dry_run))
        else:
            if dry_run and result.files:
                _show(opened, result)
            say(_summarise(opened, result, dry_run))
            if embed and not align and all(file.state == "there" for file in result.files):
                say("To copy tags from sidecars into photographs: `tagkin scan`, then add --align.")
            if remove and not embed and opened.status().n_to_remove_embedded:
                say("Rejected tags inside photographs stay; --embed removes them, too.")
            if result.unchanged:
                files = name_first(result.unchanged)
                say(f"Rejected tags stay in {files}, because tagkin never changes such a file.")
    for failure in result.failures:
        note(f"tags of {relative(failure.file)} were not written. {failure.reason}")
    note_to_confirm(result.to_confirm)
    if result.failures:
        raise typer.Exit(FAILED)


def _document(catalogue: Catalogue, result: WriteRun, dry_run: bool) -> dict[str, object]:
    return {
        "run": result.run,
        "dry_run": dry_run,
        "files": [
            asdict(file)
            | {
                "photograph": relative(catalogue.absolute(file.photograph)),
                "file": relative(catalogue.absolute(file.file)),
            }
            for file in result.files
        ],
        "to_confirm": result.to_confirm,
        "unchanged": result.unchanged,
        "failures": failure_rows(result.failures),
    }


def _show(catalogue: Catalogue, result: WriteRun) -> None:
    rows = [
        (
            relative(catalogue.absolute(file.file)),
            f"new, {file.why}" if file.is_new else "",
            ", ".join([*file.tags, *(f"− {tag}" for tag in file.removed)]),
        )
        for file in result.files
    ]
    show_first(file_table("File", "", "Tags"), rows)


def _summarise(catalogue: Catalogue, result: WriteRun, dry_run: bool) -> str:
    files = [file for file in result.files if file.state != "there"]
    if not files and not result.failures:
        return "There is nothing to write: no accepted tag is missing in a file."
    if not files:
        return "Nothing was written."
    files = [file for file in files if file.tags] or files  # others only lose tags
    places = result.describe_places(files)
    if not result.n_tags and not result.n_removed:
        if dry_run:
            return f"Would bring the lists of tags in {places} in step."
        return f"Run {result.run}: brought the lists of tags in {places} in step. " + (
            "`tagkin undo` undoes it."
        )
    if not result.n_tags:
        what = f"{count(result.n_removed, 'rejected tag')} from {places}"
        if dry_run:
            return f"Would remove {what}."
        return f"Run {result.run}: removed {what}. `tagkin undo` undoes it."
    what = result.describe()
    paths = {file.photograph for file in files}
    contents = {catalogue.photographs.content_of(path) for path in paths}
    if len(contents) < len(paths):
        what += f", for {photographs_text(len(contents), len(paths))}"
    also = f" Removed {count(result.n_removed, 'rejected tag')}." if result.n_removed else ""
    if dry_run:
        return f"Would write {what}.{also.replace('Removed', 'Would remove')}"
    return f"Run {result.run}: wrote {what}.{also} `tagkin undo` undoes it."
