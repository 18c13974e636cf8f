"""tagkin accept: accept suggested tags."""

from __future__ import annotations

from typing import Annotated

import typer

from tagkin.cli import options
from tagkin.cli.deciding import decide_on

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin accept --tag beach --at-least 0.9
  tagkin accept --run 3 --folder 2024 --at-least 0.8 --dry-run
  tagkin accept ~/Pictures/photo.jpg --tag sunset
"""


def run(
    photos: options.PhotosOrAll = None,
    tags: options.TagFilter = None,
    at_least: options.AtLeast = None,
    below: options.Below = None,
    of_run: options.RunOfSuggestions = None,
    folder: options.Folder = None,
    types: options.FileType = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All open suggestions, if no filter is given.")
    ] = False,
    note: Annotated[
        str | None, typer.Option("--note", metavar="TEXT", help="Keep a word on why.")
    ] = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Accept suggested tags.

    PHOTOS are photographs of the collection; without them, all are meant. Filters compose: a
    suggestion must pass each that is given. An accepted tag counts at once as a tag of the
    photograph, and for the suggestions to come. Files are not changed by this.

    Where photographs and tags are named and nothing else, the tags need not have been suggested:
    this is a way to tag.
    """
    from tagkin.catalogue import ACCEPTED

    filters = (photos, tags, at_least, below, of_run, folder, types, everything)
    decide_on(ACCEPTED, *filters, note, dry_run, as_json, catalogue)
