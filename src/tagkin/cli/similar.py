"""tagkin similar: the tagged photographs most similar to another one."""

from __future__ import annotations

from typing import Annotated

import typer

from tagkin.cli import options
from tagkin.cli.output import document, json_line, relative, send, shown, shown_tag
from tagkin.cli.progress import progress_bar
from tagkin.cli.sources import open_model, report_missing
from tagkin.cli.tables import file_table, show
from tagkin.cli.with_catalogue import model_of_catalogue

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin similar photo.jpg --model my-tags
  tagkin similar photo.jpg -n 30 --model my-tags --json
  tagkin similar ~/Pictures/photo.jpg
"""


def run(
    photo: options.Photo,
    model: options.ModelOrCatalogue = None,
    n: Annotated[
        int,
        typer.Option("-n", "--n-photos", metavar="N", min=1, help="How many photographs to find."),
    ] = 10,
    as_json: options.AsJson = False,
    collection: options.Collection = None,
    cache: options.Cache = None,
    no_cache: options.NoCache = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Find the tagged photographs that are most similar to a photograph.

    PHOTO is any photograph. Those found are its neighbours in the semantic space: similar in what
    they show, not only in how they look.
    """
    with progress_bar() as step:
        folder, root = (model, None) if model else model_of_catalogue(catalogue, photo)
        annotator = open_model(folder, cache, no_cache, collection, step, root=root)
        found = annotator.similar([photo], n)[0]
    report_missing(one.file for one in found)
    if as_json:
        similar = [document(one) for one in found]
        send(json_line({"file": relative(photo), "similar": similar}))
        return
    table = file_table("Photograph", "Similarity", "Tags")
    for one in found:
        tags = ", ".join(shown_tag(tag) for tag in one.tags)
        table.add_row(shown(one.file), f"{one.similarity:.2f}", tags)
    show(table)
