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
from tagkin.cli.tables import bar, file_table, show


@command("find")
def find(
    words: Annotated[list[str], options.argument("WORDS")],
    n: NPhotos = 10,
    tag: options.TagFilter = None,
    folder: options.FolderFilter = None,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Find the photographs that WORDS describe.

    Searches the current folder's collection, offline. Any words will do, in sixteen languages; no
    quotes are needed. A bar shows how well they fit, relative to the best photograph: no bar means
    no better than most. --tag keeps only photographs that have all these tags.

    Examples
    --------
    tagkin find a dog asleep in the sun
    tagkin find sailing -n 30 --tag beach
    tagkin find rotes Auto bei Nacht --folder 2024 --json
    """
    from tagkin.catalogue.word_search import WordSearch

    text = " ".join(words)
    with progress_bar() as step:
        near = folder if folder is not None and folder.is_dir() else None
        with open_for_command(catalogue, near=near) as opened:
            part = find_folder(opened, folder)
            tags = opened.tags.find(tag or ())
            matches = opened.photographs.search(tags, folder=part, n=-1)
            allowed = {file.content for _, _, file in matches if file is not None}
            reader = opened.model.reader()
            photographs = [p for p in opened.photographs.with_tags() if p.content in allowed]
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
        send(json_line({"words": text, "photographs": rows, "unreadable": problems}))
        return
    table = file_table("Photograph", "Fit", "Tags")
    for photograph, fit in best:
        table.add_row(shown(photograph.file), bar(fit), ", ".join(map(escape, photograph.tags)))
    show(table)
