"""tagkin suggest: suggest tags for the photographs of a collection."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tagkin.cli import options
from tagkin.cli.catalogues import load_or_train, next_command, open_collection
from tagkin.cli.output import (
    csv_text,
    data,
    document,
    note,
    progress_bar,
    relative,
    report_problems,
    say,
    send,
    send_json,
)
from tagkin.cli.registry import command
from tagkin.cli.streams import visible
from tagkin.cli.tables import suggestions_text
from tagkin.wording import count, name_first, percent

if TYPE_CHECKING:
    from tagkin.annotator import PhotoSuggestions
    from tagkin.catalogue import SuggestRun
    from tagkin.features import FeatureCache

_SHARES = ["name_share", "readout_share", "time_share", "place_share", "folder_share"]
_COLUMNS = ["file_name", "tag", "confidence", "kin", *_SHARES]
_N_WORDS = 5  # unknown words that are named
_N_LISTED = 20  # photographs with suggestions that people see at once


@command("suggest")
def suggest(
    folder: options.Folder = None,
    only_untagged: options.OnlyUntagged = False,
    threshold: options.Threshold = None,
    precision: options.Precision = None,
    n: options.NTags = None,
    vocabulary: options.Vocabulary = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    as_csv: options.AsCsv = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Suggest tags for the photographs of a collection.

    FOLDER is the collection, or a folder in it; the default is the current folder's collection. A
    new FOLDER is scanned, and a model is trained if there is none.

    Every suggestion has a confidence, the probability that the tag is right, and most have kin: the
    most similar tagged photographs with the tag. Suggestions go into the catalogue and replace
    earlier ones that you have not decided on. Rejected tags are not suggested again.

    Shows the first suggestions as they come. --csv and --json write all; --json ends with counts.

    Examples
    --------
    tagkin suggest ~/Pictures
    tagkin suggest ~/Pictures/2024 --threshold 0.3
    tagkin suggest --only-untagged --precision 0.8 --csv
    """
    from tagkin.annotator.name_suggestions import find_unknown_words
    from tagkin.catalogue import SuggestOptions

    words = None if vocabulary is None else options.read_words(vocabulary)
    with (
        progress_bar() as step,
        _open_features(dry_run) as cache,
        open_collection(folder, catalogue, "suggest", step, write=True, dry_run=dry_run) as opened,
    ):
        if words is not None and opened.model.needs().tags:
            from tagkin.annotator import Annotator

            annotator, model = Annotator(cache=cache), None
        else:
            read = opened.model.load if dry_run else partial(load_or_train, opened, step)
            annotator, model = read(cache)
        if words and (unknown := find_unknown_words(words, annotator.reader.require_prior())):
            have = count(len(unknown), "word has", "words have")
            named = name_first(unknown, _N_WORDS)
            note(f"{have} no known meaning and cannot be suggested by name: {named}")
        part = None if folder is None else opened.relative(folder) or None
        wanted = SuggestOptions(
            n, threshold, precision, vocabulary=words, folder=part, only_untagged=only_untagged
        )
        listing = _Listing(as_json, as_csv)
        result = opened.model.suggest(
            annotator,
            wanted.by_name() if model is None else wanted,  # by name: no photograph has a tag
            contents=opened.photographs.with_tags(folder=part, only_untagged=only_untagged),
            fingerprint=model,
            on_stored=listing.add,
            progress=step,
        )
        expected = opened.suggestions.expected_of_run(result.run)
        then = None if dry_run else next_command(opened.status())
    problems = report_problems(result.failures)
    if as_json:
        summary = {
            "run": None if dry_run else result.run,
            "dry_run": dry_run,
            "model": model,
            "photographs": result.n_photographs,
            "with_suggestions": result.n_with,
            "suggestions": result.n_suggestions,
            "expected": expected,
            "taught": result.n_taught,
            "unreadable": problems,
        }
        send_json(summary)
    elif not as_csv:
        _show(result, expected, then)


def _open_features(dry_run: bool) -> AbstractContextManager[FeatureCache | bool]:
    """Open the cache; a dry run uses what is there, and adds nothing."""
    if not dry_run:
        return nullcontext(True)
    from tagkin.features import FeatureCache, default_cache_folder

    return FeatureCache(default_cache_folder(), read_only=True)


@dataclass
class _Listing:
    """Writes suggestions as they are stored: all as data, the first ones for people."""

    as_json: bool
    as_csv: bool
    n_listed: int = 0

    def __post_init__(self) -> None:
        if self.as_csv:
            send(csv_text(_COLUMNS, ()))

    def add(self, suggested: Sequence[PhotoSuggestions]) -> None:
        """Write the suggestions for some photographs."""
        if self.as_csv:
            send(csv_text(None, (row for photo in suggested for row in _csv_rows(photo))))
        elif self.as_json:
            for photo in suggested:
                send_json(document(photo))
        else:
            for photo in suggested[: max(0, _N_LISTED - self.n_listed)]:
                tags = [f"{s.tag} {percent(s.confidence)}" for s in photo.suggestions]
                sys.stdout.write(visible(f"{relative(photo.file)}  {', '.join(tags)}") + "\n")
            self.n_listed += len(suggested)
        sys.stdout.flush()


def _csv_rows(photo: PhotoSuggestions) -> list[list[object]]:
    """Return a row per suggestion; | separates kin, the largest shares first."""
    return [
        [
            relative(photo.file),
            s.tag,
            s.confidence,
            "|".join(relative(kin.file) for kin in s.kin),
            *(getattr(s, name) for name in _SHARES),
        ]
        for s in photo.suggestions
    ]


def _show(result: SuggestRun, expected: float, then: str | None) -> None:
    """Show counts and the next command; a dry run has none."""
    console = data()
    if result.n_with > _N_LISTED:
        n_more = result.n_with - _N_LISTED
        console.print(f"and {count(n_more, 'more photograph')} (--csv lists all suggestions)")
    if result.n_with:
        console.print()
    run = "" if then is None else f" (run {result.run})"
    text = suggestions_text(result.n_suggestions, result.n_with, result.n_photographs, expected)
    console.print(f"{text}{run}.", style="green")
    if result.n_taught:
        changed = count(result.n_taught, "photograph")
        console.print(
            f"Tags of {changed} changed since the last training. They count already; new tags "
            "count from the next training on."
        )
    if then is None:
        say("Dry run; nothing was written.")
    elif result.n_suggestions:
        console.print()
        console.print(console.text("Next: ", (then, "bold")))
    else:
        console.print(
            "No tag is likely enough. Tag more photographs, such as with `tagkin review`, or see "
            "less likely tags: `tagkin suggest --threshold 0.2`"
        )
