"""tagkin accept and tagkin reject: decide on suggested tags."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import (
    add_photographs,
    decision_rows,
    first_photograph,
    open_for_command,
)
from tagkin.cli.output import relative, say, send_json
from tagkin.cli.registry import command
from tagkin.cli.tables import file_table, photographs_text, show_first
from tagkin.wording import count, percent

if TYPE_CHECKING:
    from tagkin.catalogue import Catalogue, Decided, Filters


@command("accept")
def accept(
    photos: options.PhotosOrAll = None,
    tags: options.TagFilter = None,
    at_least: Annotated[
        float | None,
        typer.Option(
            "--at-least", metavar="X", parser=options.parse_share, help="At least this confidence."
        ),
    ] = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Accept suggested tags.

    PHOTOS are photographs of the collection, or a folder in it; the default is all. Say which
    suggestions you mean; a suggestion must fit all that you say. An accepted tag is used
    as a tag of the photograph at once. Training learns from tags that you accept on named
    photographs or in the review; filters alone select what the model knew already. Files do not
    change until tagkin write.

    If you name photographs and tags and nothing else, the tags need not have been suggested, so
    you can tag by hand.

    Examples
    --------
    tagkin accept --tag beach --at-least 0.9
    tagkin accept ~/Pictures/2024 --at-least 0.8 --dry-run
    tagkin accept ~/Pictures/photo.jpg --tag sunset
    """
    from tagkin.catalogue import Filters

    filters = Filters(tuple(tags or ()), at_least=at_least)
    _decide("accept", photos, filters, dry_run, as_json, catalogue)


@command("reject")
def reject(
    photos: options.PhotosOrAll = None,
    tags: options.TagFilter = None,
    below: Annotated[
        float | None,
        typer.Option(
            "--below", metavar="X", parser=options.parse_share, help="Below this confidence."
        ),
    ] = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Reject suggested tags.

    PHOTOS are photographs of the collection, or a folder in it; the default is all. Say which
    suggestions you mean; a suggestion must fit all that you say. A rejected tag is never
    suggested again for that photograph, and is a negative example for the next training. Files do
    not change until tagkin write --remove.

    If you name photographs and tags and nothing else, the tags need not have been suggested, so
    you can reject a tag that is already in a file.

    Examples
    --------
    tagkin reject --tag dog --below 0.3
    tagkin reject ~/Pictures/2024 --dry-run
    tagkin reject ~/Pictures/photo.jpg --tag dog
    """
    from tagkin.catalogue import Filters

    filters = Filters(tuple(tags or ()), below=below)
    _decide("reject", photos, filters, dry_run, as_json, catalogue)


def _decide(
    verb: str,
    photos: Sequence[Path] | None,
    filters: Filters,
    dry_run: bool,
    as_json: bool,
    path: Path | None,
) -> None:
    """Accept or reject the chosen photographs' suggestions, and report it."""
    from tagkin.catalogue import ACCEPTED, REJECTED

    with open_for_command(
        path, verb, write=True, near=first_photograph(photos), dry_run=dry_run
    ) as catalogue:
        selected = add_photographs(filters, catalogue, photos)
        if selected.is_everything:
            option, everything = {"accept": ("--at-least", 0), "reject": ("--below", 1)}[verb]
            raise typer.BadParameter(
                f"say which suggestions to {verb}: photographs, a folder in the collection, --tag "
                f"or {option}. To {verb} all of them: {option} {everything}"
            )
        verdict = ACCEPTED if verb == "accept" else REJECTED
        decided = catalogue.decisions.decide(verdict, selected)
        if as_json:
            rows = decision_rows(catalogue, decided)
            run = None if dry_run else decided.run
            send_json({"run": run, "dry_run": dry_run, "decisions": rows})
            return
        if dry_run and decided.each:
            _show(catalogue, decided)
        say(_summarise(decided, verb, dry_run))


def _show(catalogue: Catalogue, decided: Decided) -> None:
    rows = []
    for decision in decided.each:
        run = "–" if decision.run is None else str(decision.run)
        name = relative(catalogue.absolute(decision.path))
        if decision.copies:
            name += f" (and {count(len(decision.copies), 'copy', 'copies')})"
        rows.append((name, decision.tag, percent(decision.confidence), run))
    show_first(file_table("Photograph", "Tag", "Confidence", "Run"), rows)


def _summarise(decided: Decided, verb: str, dry_run: bool) -> str:
    if not decided.each:
        return f"There is nothing to {verb}: no open suggestion matches."
    n_files = {decision.path: 1 + len(decision.copies) for decision in decided.each}
    photographs = photographs_text(len(n_files), sum(n_files.values()))
    what = f"{count(len(decided), 'tag')} on {photographs}"
    if dry_run:
        return f"{what} would be {verb}ed."
    return f"Run {decided.run}: {verb}ed {what}."
