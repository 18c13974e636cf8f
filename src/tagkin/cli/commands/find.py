"""tagkin find: photographs that show what words say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tagkin.cli import options
from tagkin.cli.catalogues import find_folder, open_for_command
from tagkin.cli.inputs import report_problems
from tagkin.cli.output import json_line, note, progress_bar, relative, send, shown
from tagkin.cli.registry import command
from tagkin.cli.streams import escape
from tagkin.cli.suggestions import NPhotos
from tagkin.cli.tables import file_table, show


@command("find")
def find(
    words: Annotated[str, options.argument("WORDS")],
    n: NPhotos = 10,
    tag: options.TagFilter = None,
    folder: options.FolderFilter = None,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Find the photographs that WORDS describe.

    Searches the current folder's collection with the backbone of its model. A joint encoder of
    photographs and texts understands any words in the languages that it was trained on. The
    built-in backbones know a thousand things: they find dogs, not a dog asleep in the sun. --tag
    keeps only photographs that have all these tags.

    Examples
    --------
    tagkin find "red car at night"
    tagkin find sailing -n 30 --tag beach
    tagkin find dog --folder 2024 --json
    """
    from tagkin.catalogue.word_search import WordSearch, word_reader

    with progress_bar() as step:
        near = folder if folder is not None and folder.is_dir() else None
        with open_for_command(catalogue, near=near) as opened:
            part = find_folder(opened, folder)
            tags = opened.tags.find(tag or ())
            matches = opened.photographs.search(tags, folder=part, n=-1)
            allowed = {file.content for _, _, file in matches if file is not None}
            step("Opening the model", 0, 1)
            reader = word_reader(opened)
            prior = reader.require_prior()
            photographs = [p for p in opened.photographs.with_tags() if p.content in allowed]
        seen = reader.read([p.file for p in photographs], step)
        known = {p.file: p for p in photographs}
        search = WordSearch(prior, [known[file].content for file in seen.files], seen.features)
        by_content = {p.content: p for p in photographs}
        best = [by_content[content] for content in search.rank(words)[:n]]
    problems = report_problems(seen.failures)
    if search.note:
        note(search.note)
    if as_json:
        rows = [{"file": relative(Path(p.file)), "tags": p.tags} for p in best]
        send(json_line({"words": words, "photographs": rows, "unreadable": problems}))
        return
    table = file_table("Photograph", "Tags")
    for photograph in best:
        table.add_row(shown(photograph.file), ", ".join(map(escape, photograph.tags)))
    show(table)
