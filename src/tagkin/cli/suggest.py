"""tagkin suggest: tags for photographs, with the kin that support them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagkin.cli import options
from tagkin.cli.files import check_target, write_file
from tagkin.cli.output import (
    csv_text,
    data,
    document,
    json_line,
    note,
    only_one,
    relative,
    say,
    send,
    shown,
    shown_tag,
)
from tagkin.cli.progress import progress_bar
from tagkin.cli.sources import (
    open_model,
    photographs,
    report_missing,
    report_problems,
    use_cache,
)
from tagkin.cli.tables import count, file_table, kin_text, percent, show, suggestions_text
from tagkin.cli.vocabularies import words_of
from tagkin.cli.with_catalogue import model_of_catalogue, refuse_options, suggest_in_catalogue
from tagkin.progress import Progress

if TYPE_CHECKING:
    from tagkin.annotator import Annotator, PhotoSuggestions
    from tagkin.collection import Collection

__all__ = ["EXAMPLES", "run"]

_NAMED = 5
_NO_KIN = "from the name alone, no kin yet"

EXAMPLES = """\b
Examples:
  tagkin suggest new-photos --model my-tags
  tagkin suggest ~/Pictures --only-untagged --model my-tags -o new.csv
  tagkin suggest new-photos --precision 0.8 --model my-tags
  tagkin suggest photo.jpg -n 3 --model my-tags --json
  tagkin suggest --threshold 0.3 --folder 2024
  tagkin suggest ~/Pictures --vocabulary common
"""


def run(
    photos: options.PhotosOrAll = None,
    model: options.ModelOrCatalogue = None,
    tags: options.Tags = None,
    column: options.Column = None,
    only_untagged: Annotated[
        bool, typer.Option("--only-untagged", help="Skip photographs that carry tags.")
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            metavar="X",
            min=0,
            max=1,
            help="Suggest tags with at least this confidence, a probability from 0 to 1. Default: "
            "0.5, unless --precision or -n is given.",
        ),
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            "--precision",
            metavar="X",
            min=0,
            max=1,
            help="Suggest as many as possible so that this share of each tag's suggestions is "
            "right.",
        ),
    ] = None,
    n: Annotated[
        int | None,
        typer.Option(
            "-n", "--n-tags", metavar="N", min=1, help="Suggest at most N tags per photograph."
        ),
    ] = None,
    n_kin: options.NKin = 5,
    vocabulary: Annotated[
        str | None,
        typer.Option(
            "--vocabulary",
            metavar="FILE",
            help="Tags to suggest by their names where no photograph carries them yet: a text file "
            "with one tag per line, or the word common for some hundred common ones. It needs no "
            "model.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to a .csv or .jsonl file."),
    ] = None,
    overwrite: options.Overwrite = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Write JSON Lines to standard output, one photograph per line."
        ),
    ] = False,
    as_csv: options.AsCsv = False,
    verbatim: options.Verbatim = False,
    leaf_only: options.LeafOnly = False,
    collection: options.Collection = None,
    cache: options.Cache = None,
    no_cache: options.NoCache = False,
    verbose: options.Verbose = False,
    folder: options.Folder = None,
    dry_run: options.DryRun = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Suggest tags for photographs.

    PHOTOS are photographs, and folders that are searched with all their subfolders.

    Every suggestion has a confidence, the probability that the tag is right, and kin: the most
    similar tagged photographs that carry the tag. Tags that a photograph already carries are not
    suggested. Your photographs are only read.

    With --vocabulary, tags that no photograph carries yet are suggested from their names alone.
    They have no kin, and a model is not needed: it works for a collection without a single tag.

    Without PHOTOS, tags are suggested for all photographs of a catalogue and kept there, in the
    place of those that were suggested before and that you have not decided on. What you accepted
    since the last training counts already, and what you rejected is not suggested again. --json
    tells how many there are, --csv and --output which. With --dry-run they are not kept.
    """
    only_one(json=as_json, csv=as_csv, output=output)
    only_one(threshold=threshold is not None, precision=precision is not None)
    check_target(output, overwrite, (".csv", ".jsonl"))
    wanted = {"threshold": threshold, "precision": precision, "n": n, "n_kin": n_kin}
    if not photos:
        if model is not None:
            raise typer.BadParameter(
                "PHOTOS are missing; a catalogue needs neither them nor --model."
            )
        refuse_options(
            "with PHOTOS",
            tags=tags,
            column=column,
            collection=collection,
            vocabulary=vocabulary,
        )
        only_one(dry_run=dry_run, output=output)
        kept = use_cache(cache, no_cache)
        listed = partial(_deliver, output=output, as_csv=as_csv, verbatim=verbatim)
        suggest_in_catalogue(
            catalogue,
            wanted,
            folder,
            only_untagged,
            leaf_only,
            kept,
            dry_run,
            verbose,
            as_json,
            listed if as_csv or output else None,
        )
        return
    refuse_options("without PHOTOS, with a catalogue", folder=folder, dry_run=dry_run)
    words = None if vocabulary is None else words_of(vocabulary)
    with progress_bar() as step:
        if model is None and words is not None:
            annotator = _without_model(cache, no_cache)
        else:
            own, root = (model, None) if model else model_of_catalogue(catalogue, photos[0])
            annotator = open_model(own, cache, no_cache, collection, step, leaf_only, photos, root)
        found = photographs(photos, tags, column, step)
        if only_untagged:
            found = found.untagged()
        suggested, failures = _suggested(annotator, found, wanted, words, step)
        if only_untagged:
            suggested = [one for one in suggested if not one.tags]
    report_problems([*found.failures, *failures], verbose)
    report_missing(k.file for one in suggested for s in one.suggestions for k in s.kin)
    if output is not None or as_json or as_csv:
        _deliver(suggested, output, as_csv, verbatim)
    else:
        _show(suggested, with_kin=n_kin > 0)


def _deliver(
    suggested: list[PhotoSuggestions], output: Path | None, as_csv: bool, verbatim: bool
) -> None:
    """Write suggestions to a file, or to standard output, for programs."""
    if output is None:
        send(_csv(suggested, verbatim) if as_csv else _json(suggested))
        return
    to_csv = output.suffix.lower() == ".csv"
    write_file(output, _csv(suggested, verbatim) if to_csv else _json(suggested))
    say(f"{_summary(suggested)} Written to {shown(output)}.")


def _suggested(
    annotator: Annotator,
    found: Collection,
    wanted: dict[str, Any],
    words: list[str] | None,
    step: Progress,
) -> tuple[list[PhotoSuggestions], list[Any]]:
    """Suggestions, and why there are none for photographs that could not be read."""
    if not len(found):
        return [], []
    if words is not None:
        _note_unknown(annotator, words)
    suggested = annotator.suggest(found, vocabulary=words, progress=step, **wanted)
    readable = {one.file for one in suggested}
    left_out = [file for file in found.files if file not in readable]
    return suggested, list(annotator.read_features(left_out).failures) if left_out else []


def _without_model(cache: Path | None, no_cache: bool) -> Annotator:
    kept = use_cache(cache, no_cache)
    from tagkin.annotator import Annotator

    return Annotator(cache=kept)


def _note_unknown(annotator: Annotator, words: list[str]) -> None:
    unknown = annotator.unknown_words(words)
    if unknown:
        named = ", ".join(shown_tag(word) for word in unknown[:_NAMED])
        more = ", …" if len(unknown) > _NAMED else ""
        have = count(len(unknown), "word has", "words have")
        note(f"{have} no known meaning and cannot be suggested by name: {named}{more}")


def _json(suggested: list[PhotoSuggestions]) -> str:
    return "".join(json_line(document(one)) for one in suggested)


def _csv(suggested: list[PhotoSuggestions], verbatim: bool) -> str:
    """One row per suggestion; kin are separated by |, those with the largest shares first."""
    return csv_text(
        ["file_name", "tag", "confidence", "kin", "name_share", "readout_share"],
        (
            [
                relative(one.file),
                s.tag,
                s.confidence,
                "|".join(relative(k.file) for k in s.kin),
                s.name_share,
                s.readout_share,
            ]
            for one in suggested
            for s in one.suggestions
        ),
        verbatim=verbatim,
    )


def _show(suggested: list[PhotoSuggestions], with_kin: bool) -> None:
    # a column for kin, unless none are asked for
    some = ("Kin",) if with_kin else ()
    table = file_table("Photograph", "Tag", "Confidence", *some)
    for one in suggested:
        name = shown(one.file)
        if not one.suggestions:
            table.add_row(name, "[dim]No suggestion[/dim]")
        for s in one.suggestions:
            kin = (kin_text(s.kin) or _NO_KIN,) if with_kin else ()
            table.add_row(name, shown_tag(s.tag), percent(s.confidence), *kin)
            name = ""
    if suggested:
        show(table)
        data().print()
    say(_summary(suggested))


def _summary(suggested: list[PhotoSuggestions]) -> str:
    every = [s.confidence for one in suggested for s in one.suggestions]
    n_with = sum(bool(one.suggestions) for one in suggested)
    return f"{suggestions_text(len(every), n_with, len(suggested), sum(every))}."
