"""tagkin find: photographs that show what words say, or that are like another photograph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import find_folder, open_for_command
from tagkin.cli.output import (
    data,
    note,
    progress_bar,
    relative,
    report_problems,
    send_json,
)
from tagkin.cli.registry import command
from tagkin.cli.similar import find_like
from tagkin.cli.tables import file_table
from tagkin.wording import percent


@command("find")
def find(
    words: Annotated[list[str] | None, options.argument("WORDS")] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            "--like",
            metavar="PHOTO",
            readable=False,
            callback=options.find_on_server,
            help="Find the tagged photographs most similar to this one instead. It need not be in "
            "the collection.",
        ),
    ] = None,
    n: Annotated[
        int,
        typer.Option(
            "-n", metavar="N", parser=options.parse_count, help="Number of photographs to find."
        ),
    ] = 10,
    tag: Annotated[
        list[str] | None,
        typer.Option(
            "--tag",
            metavar="TAG",
            autocompletion=options.complete_tag,
            help="Only photographs with this tag, or with all these if repeated.",
        ),
    ] = None,
    folder: options.FolderFilter = None,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Find the photographs that WORDS describe.

    Searches the current folder's collection, offline; with the eyes of Immich, the words go there.
    Any words will do, in sixteen languages; no quotes are needed. Fit shows how well they fit,
    relative to the best photograph: 0 % is no better than most.

    --like PHOTO finds similar photographs: near in the semantic space, so similar in what they
    show, not only in how they look.

    Examples
    --------
    tagkin find a dog asleep in the sun
    tagkin find sailing -n 30 --tag beach
    tagkin find rotes Auto bei Nacht --folder 2024 --json
    tagkin find --like ~/Pictures/photo.jpg -n 30
    """
    if (like is None) == (not words):
        raise typer.BadParameter("Give either WORDS or --like PHOTO.")
    if like is not None:
        if tag or folder is not None:
            raise typer.BadParameter("--like goes with neither --tag nor --folder.")
        find_like(like, n, as_json, catalogue)
        return
    from tagkin.catalogue.selection import PhotographIndex, Selection
    from tagkin.catalogue.word_search import WordSearch

    text = " ".join(words or ())
    with progress_bar() as step:
        near = folder if folder is not None and folder.is_dir() else None
        with open_for_command(catalogue, near=near) as opened:
            part = find_folder(opened, folder)
            selection = Selection(folder=part, tags=tuple(opened.tags.find(tag or ())))
            selected = PhotographIndex(opened.database).select(opened.database, selection)
            reader = opened.model.reader()
            photographs = opened.photographs.with_tags()
            has = selected.has([photograph.content for photograph in photographs])
            photographs = [photographs[i] for i in has.nonzero()[0].tolist()]
            with reader.open_cache() as cache:
                search, missing = WordSearch.open(reader, photographs, cache)
        seen = reader.read([p.file for p in missing], step)
        known = {p.file: p for p in missing}
        if seen.files:
            search.add([known[file].content for file in seen.files], seen.features)
        by_content = {p.content: p for p in photographs}
        ranked, advice = search.rank(text)
    problems = report_problems(seen.failures)
    if advice:
        note(advice)
    best = [(by_content[match.content], match.fit) for match in ranked[:n]]
    if as_json:
        rows = [
            {"file": relative(Path(p.file)), "fit": round(fit, 2), "tags": p.tags}
            for p, fit in best
        ]
        send_json({"words": text, "photographs": rows, "unreadable": problems})
        return
    table = file_table("Photograph", "Fit", "Tags")
    for photograph, fit in best:
        table.add_row(relative(photograph.file), percent(fit), ", ".join(photograph.tags))
    data().print(table)
