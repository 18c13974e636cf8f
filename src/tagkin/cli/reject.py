"""tagkin reject: reject suggested tags."""

from __future__ import annotations

from typing import Annotated

import typer

from tagkin.cli import options
from tagkin.cli.deciding import decide_on

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin reject --tag dog --below 0.3
  tagkin reject --run 3 --folder 2024 --dry-run
  tagkin reject ~/Pictures/photo.jpg --tag dog
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
    """Reject suggested tags.

    PHOTOS are photographs of the collection; without them, all are meant. Filters compose: a
    suggestion must pass each that is given. A rejected tag is never suggested again for that
    photograph, and is a negative example when the next model is learned. Files are not changed.

    Where photographs and tags are named and nothing else, the tags need not have been suggested:
    so a tag that stands in a file can be called wrong.
    """
    from tagkin.catalogue import REJECTED

    filters = (photos, tags, at_least, below, of_run, folder, types, everything)
    decide_on(REJECTED, *filters, note, dry_run, as_json, catalogue)
