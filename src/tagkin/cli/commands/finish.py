"""tagkin finish and tagkin incomplete: say what is complete, and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import (
    add_photographs,
    decision_rows,
    find_folder,
    first_photograph,
    open_for_command,
)
from tagkin.cli.output import relative, say, send_json
from tagkin.cli.registry import command
from tagkin.cli.tables import file_table, show_first
from tagkin.wording import count, quote_tags

if TYPE_CHECKING:
    from tagkin.catalogue import Catalogue, Decided

_NAMED = 3

FinishedTags = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="TAG",
        autocompletion=options.complete_tag,
        help="Finish this tag instead of whole photographs. Can be repeated.",
    ),
]


@command("finish")
def finish(
    photos: options.PhotosOrAll = None,
    tags: FinishedTags = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Mark photographs or tags as finished.

    PHOTOS are photographs of the collection that have all their tags, or a folder of them. Every
    other tag is wrong for a finished photograph: training learns that, open suggestions for it are
    rejected, and it gets no new ones.

    With --tag, the tag is finished instead: it is on all its photographs, and wrong for all others
    of the collection, or of PHOTOS. Photographs that you add later may have it.

    Files do not change. tagkin undo opens the same questions again.

    Examples
    --------
    tagkin finish ~/Pictures/photo.jpg
    tagkin finish ~/Pictures/2024 --dry-run
    tagkin finish --tag dog
    """
    from tagkin.catalogue import Filters

    with open_for_command(
        catalogue, "finish", write=True, near=first_photograph(photos), dry_run=dry_run
    ) as opened:
        filters = add_photographs(Filters(tuple(tags or ())), opened, photos)
        if filters.is_empty:
            raise typer.BadParameter(
                "say what is finished: photographs, a folder or --tag. The folder of the "
                "collection means all of it."
            )
        finished = opened.completeness.finish(filters)
        if as_json:
            send_json(_document(opened, finished, dry_run))
            return
        if dry_run and finished.run is not None:
            _show(opened, finished)
        say(_summarise(finished, tags or [], dry_run))


def _document(catalogue: Catalogue, finished: Decided, dry_run: bool) -> dict[str, object]:
    return {
        "run": None if dry_run else finished.run,
        "dry_run": dry_run,
        "finished": [relative(catalogue.absolute(path)) for path in finished.finished],
        "rejected": decision_rows(catalogue, finished),
    }


def _show(catalogue: Catalogue, finished: Decided) -> None:
    """Show the rejected tags of each photograph."""
    rejected: dict[str, list[str]] = {path: [] for path in finished.finished}
    for decision in finished.each:
        rejected.setdefault(decision.path, []).append(decision.tag)
    rows = [
        (relative(catalogue.absolute(path)), ", ".join(tags) or "–")
        for path, tags in rejected.items()
    ]
    show_first(file_table("Photograph", "Rejected suggestions"), rows)


def _summarise(finished: Decided, tags: list[str], dry_run: bool) -> str:
    start = "" if dry_run else f"Run {finished.run}: "
    if finished.run is None:
        return "There is nothing to finish: no photograph matches that has an open question."
    if tags:
        photographs = count(len({decision.path for decision in finished.each}), "photograph")
        verb = "would be rejected" if dry_run else "rejected"
        return f"{start}{quote_tags(tags, _NAMED)} {verb} on {photographs} without an answer."
    photographs = count(len(finished.finished), "photograph")
    rejected = count(len(finished.each), "suggestion")
    if dry_run:
        return f"{photographs} would be finished, and {rejected} rejected."
    return f"{start}finished {photographs}, and rejected {rejected}."


@command("incomplete")
def incomplete(
    folder: options.Folder = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Mark the tags in your files as incomplete.

    FOLDER is the collection, or a folder in it; the default is the current folder's collection.
    Tags that photographs there have are right, and training takes every other tag as unknown
    instead of wrong. This also applies to photographs that you add later, and not to finished
    photographs. tagkin undo reverts it.

    Examples
    --------
    tagkin incomplete ~/Pictures/2024
    tagkin incomplete --dry-run
    """
    with open_for_command(
        catalogue, "incomplete", write=True, near=folder, dry_run=dry_run
    ) as opened:
        if folder is not None and not opened.server:
            find_folder(opened, folder)  # a mistyped folder is an error
        part = "" if folder is None else opened.relative(folder)
        declared = opened.completeness.declare_incomplete(part)
        where = relative(opened.absolute(declared.folder))
        named = where if declared.folder else "the whole collection"
    if as_json:
        plain = {"run": None if dry_run else declared.run, "dry_run": dry_run, "folder": where}
        send_json(plain | {"photographs": declared.n_photographs})
        return
    if declared.run is None:
        say(f"The tags in {named} are declared incomplete already.")
        return
    start = "Dry run" if dry_run else f"Run {declared.run}"
    effect = count(
        declared.n_photographs, "photograph no longer counts", "photographs no longer count"
    )
    say(f"{start}: the tags in {named} are incomplete. In training, {effect} as complete.")
