"""tagkin suggest: suggest tags for the photographs of a collection."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from tagkin.cli import options
from tagkin.cli.catalogues import open_collection, train_if_needed
from tagkin.cli.inputs import note_unknown_words, read_words, report_problems
from tagkin.cli.output import data, json_line, progress_bar, say, send
from tagkin.cli.registry import command
from tagkin.cli.suggestions import list_suggestions, send_csv, send_json
from tagkin.cli.tables import suggestions_text
from tagkin.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tagkin.catalogue import Catalogue, SuggestOptions, SuggestRun, TaggedContent
    from tagkin.features import FeatureCache
    from tagkin.progress import Progress

_N_LISTED = 20  # photographs with suggestions that people see at once


@command("suggest", writes=True)
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

    Every suggestion has a confidence, the probability that the tag is right, and kin: the most
    similar tagged photographs with the tag. Suggestions go into the catalogue and replace earlier
    ones that you have not decided on. Rejected tags are not suggested again.

    Shows the first suggestions as they come. --csv and --json write all; --json ends with counts.

    Examples
    --------
    tagkin suggest ~/Pictures
    tagkin suggest ~/Pictures/2024 --threshold 0.3
    tagkin suggest --only-untagged --precision 0.8 --csv
    """
    from tagkin.catalogue import SuggestOptions

    words = None if vocabulary is None else read_words(vocabulary)
    with (
        progress_bar() as step,
        _open_features(dry_run) as cache,
        open_collection(folder, catalogue, "suggest", step, write=True, dry_run=dry_run) as opened,
    ):
        part = None if folder is None else opened.relative(folder) or None
        wanted = SuggestOptions(
            n,
            threshold,
            precision,
            vocabulary=words,
            folder=part,
            only_untagged=only_untagged,
        )
        if as_csv:
            send_csv([])
        n_listed = 0

        def list_stored(run: int, contents: Sequence[TaggedContent]) -> None:
            nonlocal n_listed
            suggested = opened.suggestions.of_run(run, contents)
            if as_csv:
                send_csv(suggested, has_header=False)
            elif as_json:
                send_json(suggested)
            elif n_listed < _N_LISTED:
                list_suggestions(suggested[: _N_LISTED - n_listed])
                n_listed += len(suggested)

        steps = step, list_stored
        result, model = _suggest(opened, wanted, (cache, dry_run), steps)
        expected = opened.suggestions.expected_of_run(result.run)
    summary = {
        "run": None if dry_run else result.run,
        "dry_run": dry_run,
        "model": model,
        "photographs": result.n_photographs,
        "with_suggestions": result.n_with,
        "suggestions": result.n_suggestions,
        "expected": expected,
        "taught": result.n_taught,
        "unreadable": report_problems(result.failures),
    }
    if as_json:
        send(json_line(summary))
    elif not as_csv:
        _show(summary)


def _suggest(
    catalogue: Catalogue,
    wanted: SuggestOptions,
    cached: tuple[FeatureCache | bool, bool],
    steps: tuple[Progress, Callable[[int, Sequence[TaggedContent]], None]],
) -> tuple[SuggestRun, str | None]:
    """Suggest by a model or, if no photograph has a tag, by the names of tags alone."""
    (cache, dry_run), (step, on_stored) = cached, steps
    fingerprint = None
    if wanted.vocabulary is not None and catalogue.model.needs().tags:
        from tagkin.annotator import Annotator

        annotator, wanted = Annotator(cache=cache), wanted.by_name()
    else:
        if not dry_run:
            train_if_needed(catalogue, step)
        step("Opening the model", 0, 1)
        annotator, fingerprint = catalogue.model.load(cache)
    if wanted.vocabulary is not None:
        note_unknown_words(annotator, wanted.vocabulary)
    result = catalogue.model.suggest(
        annotator,
        wanted,
        contents=catalogue.photographs.with_tags(
            folder=wanted.folder, only_untagged=wanted.only_untagged
        ),
        fingerprint=fingerprint,
        on_stored=on_stored,
        progress=step,
    )
    return result, fingerprint


def _open_features(dry_run: bool) -> AbstractContextManager[FeatureCache | bool]:
    """Open the cache; a dry run uses what is there, and adds nothing."""
    if not dry_run:
        return nullcontext(True)
    from tagkin.features import ReadOnlyCache, default_cache_folder

    return ReadOnlyCache(default_cache_folder())


def _show(summary: dict[str, Any]) -> None:
    console = data()
    if summary["with_suggestions"] > _N_LISTED:
        n_more = summary["with_suggestions"] - _N_LISTED
        console.print(f"and {count(n_more, 'more photograph')} (--csv lists all suggestions)")
    if summary["with_suggestions"]:
        console.print()
    run = "" if summary["dry_run"] else f" (run {summary['run']})"
    names = ("suggestions", "with_suggestions", "photographs", "expected")
    text = suggestions_text(*(summary[name] for name in names))
    console.print(f"[green]{text}{run}.[/green]")
    if summary["taught"]:
        changed = count(summary["taught"], "photograph")
        console.print(f"Tags of {changed} that changed since the last training count already.")
    if summary["dry_run"]:
        say("Dry run; nothing was written.")
    elif summary["suggestions"]:
        console.print()
        accept = f"tagkin accept --run {summary['run']} --at-least 0.9 --dry-run"
        console.print(f"Next: [bold]{accept}[/bold]")
