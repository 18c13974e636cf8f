"""Train, suggest and explain where a catalogue says which photographs and which model."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.padding import Padding

from tagkin.cli.catalogues import day, folder_in, opened, paths_in
from tagkin.cli.output import data, json_line, relative, say, send, shown, shown_tag, shown_text
from tagkin.cli.progress import progress_bar
from tagkin.cli.sources import report_problems
from tagkin.cli.tables import count, facts, percent, seconds, suggestions_text
from tagkin.progress import Progress
from tagkin.wording import shares_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tagkin.annotator import Annotator, Finding, PhotoSuggestions
    from tagkin.catalogue import Catalogue, Explained, TagProvenance
    from tagkin.features import FeatureCache

__all__ = [
    "explain_in_catalogue",
    "learn_from_catalogue",
    "model_of_catalogue",
    "refuse_options",
    "report_learned",
    "suggest_in_catalogue",
    "undecided",
]

_STATES = {
    "found": "in your files",
    "accepted": "accepted",
    "suggested": "suggested",
    "rejected": "rejected",
}


def refuse_options(rule: str, **given: Any) -> None:
    """Refuse options that have no effect here; `rule` completes "--sheet can only be used ..."."""
    names = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if names:
        raise typer.BadParameter(f"{' and '.join(names)} can only be used {rule}.")


# --- train -------------------------------------------------------------------------------


def learn_from_catalogue(
    annotator: Annotator, catalogue: Path | None, given: dict[str, Any], step: Progress
) -> dict[str, Any]:
    """Learn from the photographs and tags of a catalogue; what to tell of it."""
    with opened(catalogue, "train", write=True) as one:
        parameters = {name: value for name, value in given.items() if value not in (None, False)}
        run = one.model.train(annotator, parameters, progress=step)
        return {
            "run": run,
            "dry_run": False,
            "folder": relative(one.root),
            "catalogue": relative(one.path),
            "model": relative(one.model_folder),
            "photographs": {
                "found": one.photographs.count()["n_photographs"],
                "used": len(annotator.files_),
            },
            "tags": {
                "learned": len(annotator.vocabulary_.names_),
                "dropped": dict(annotator.vocabulary_.dropped_),
            },
            "rejected": one.suggestions.progress().n_rejected,
            "denoised": float(annotator.blend_),
        }


def report_learned(
    annotator: Annotator, learned: dict[str, Any], start: float, verbose: bool, as_json: bool
) -> None:
    """Tell what was learned from a catalogue."""
    learned["photographs"]["unreadable"] = report_problems(annotator.failures_, verbose)
    learned["seconds"] = time.perf_counter() - start
    if as_json:
        send(json_line(learned))
        return
    photos, tags = learned["photographs"], learned["tags"]
    few = count(annotator.min_count, "photograph")
    dropped = f", {len(tags['dropped']):,} on fewer than {few} left out" if tags["dropped"] else ""
    console = data()
    console.print(
        f"[green]Learned {count(tags['learned'], 'tag')} from {count(photos['used'], 'photograph')}"
        f" in {seconds(learned['seconds'])} (run {learned['run']}).[/green]"
    )
    console.print()
    rows = [
        ("Folder", shown(learned["folder"])),
        ("Photographs", f"{photos['found']:,}, {photos['used']:,} of them with tags to learn from"),
        ("Tags", f"{tags['learned']:,} learned{dropped}"),
        ("Rejected", f"{count(learned['rejected'], 'tag')} count against"),
    ]
    console.print(facts(rows))
    console.print()
    console.print("Next: [bold]tagkin suggest[/bold]")


# --- suggest -----------------------------------------------------------------------------


def model_of_catalogue(catalogue: Path | None, photo: Path | None = None) -> tuple[Path, Path]:
    """The folder of the model that was learned from a collection, and that of its photographs."""
    near = photo if catalogue is None and photo is not None and photo.exists() else None
    with _near(catalogue, near) as one:
        one.model.load()  # or what to do
        return one.model_folder, one.root


def undecided(
    catalogue: Path | None, annotator: Annotator, n: int | None, kind: str | None
) -> list[Finding]:
    """What an audit finds, less what a person has decided on, in the names that tags have now."""
    with opened(catalogue) as one:
        decided = one.suggestions.progress()
        asked = None if n is None else n + decided.n_accepted + decided.n_rejected
        while True:
            every = annotator.audit(asked, kind=kind)
            left = one.doubts.select_undecided(every)
            if n is None or asked is None or len(left) >= n or len(every) < asked:
                return left[:n]
            asked *= 2


def _near(catalogue: Path | None, near: Path | None) -> Catalogue:
    """The catalogue of a photograph; of one that lies elsewhere, the only one there is."""
    from tagkin.errors import InvalidInput

    try:
        return opened(catalogue, near=near)
    except InvalidInput:
        if near is None:
            raise
        return opened(catalogue)


def suggest_in_catalogue(
    catalogue: Path | None,
    wanted: dict[str, Any],
    folder: Path | None,
    only_untagged: bool,
    leaf_only: bool,
    keep_features: bool,
    dry_run: bool,
    verbose: bool,
    as_json: bool,
    listed: Callable[[list[PhotoSuggestions]], None] | None,
) -> None:
    """Suggest tags for the photographs of a catalogue, keep them there, and tell how many.

    Which they are is for `listed` to tell, where it is given.
    """
    with (
        progress_bar() as step,
        _features(keep_features, dry_run) as cache,
        opened(catalogue, "suggest", write=True, dry_run=dry_run) as one,
    ):
        step("Opening the model", 0, 1)
        annotator, fingerprint = one.model.load(cache)
        annotator.vocabulary_.leaf_only |= leaf_only
        found = one.model.suggest(
            annotator,
            fingerprint,
            wanted,
            folder=folder_in(one, folder),
            only_untagged=only_untagged,
            progress=step,
        )
        expected = one.suggestions.expected_of_run(found.run)
        each = [] if listed is None else one.suggestions.of_run(found.run)
    problems = report_problems(found.failures, verbose)
    told = {
        "run": None if dry_run else found.run,
        "dry_run": dry_run,
        "model": fingerprint,
        "photographs": found.n_photographs,
        "with_suggestions": found.n_with,
        "suggestions": found.n_suggestions,
        "expected": expected,
        "taught": found.n_taught,
        "unreadable": problems,
    }
    if as_json:
        send(json_line(told))
        return
    if listed is not None:
        listed(each)
        return
    console = data()
    run = "" if dry_run else f" (run {found.run})"
    text = suggestions_text(found.n_suggestions, found.n_with, found.n_photographs, expected)
    console.print(f"[green]{text}{run}.[/green]")
    if found.n_taught:
        changed = count(found.n_taught, "photograph")
        console.print(f"Tags of {changed} that changed since the last training count already.")
    if dry_run:
        say("This is what would be suggested. Nothing was written.")
        return
    console.print()
    console.print(f"Next: [bold]tagkin accept --run {found.run} --at-least 0.9 --dry-run[/bold]")


def _features(keep: bool, dry_run: bool) -> AbstractContextManager[FeatureCache | bool]:
    """Where features are kept; a dry run uses those that are there, and adds nothing."""
    if not (keep and dry_run):
        return nullcontext(keep)
    from tagkin.features import ReadOnlyCache, default_cache_folder

    return ReadOnlyCache(default_cache_folder())


# --- explain -----------------------------------------------------------------------------


def explain_in_catalogue(catalogue: Path | None, photo: Path, n_kin: int, as_json: bool) -> None:
    """Tell of every tag of a photograph who says so."""
    near = photo if catalogue is None and photo.exists() else None
    with opened(catalogue, near=near) as one:
        (path,) = paths_in(one, [photo])
        found = one.explain(path)
        if as_json:
            send(json_line(_document(one, found, n_kin)))
        else:
            _show(one, found, n_kin)


def _document(catalogue: Catalogue, found: Explained, n_kin: int) -> dict[str, Any]:
    """Paths as a person here would name them."""
    plain = found.to_dict()
    plain["file"] = relative(catalogue.absolute(plain.pop("path")))
    for tag in plain["tags"]:
        for said in tag["said"]:
            if "file" in said:
                said["file"] = relative(catalogue.absolute(said["file"]))
        tag["kin"] = [
            {
                "file": kin["path"] and relative(catalogue.absolute(kin["path"])),
                "share": kin["share"],
            }
            for kin in tag["kin"][:n_kin]
        ]
    return plain


def _show(catalogue: Catalogue, found: Explained, n_kin: int) -> None:
    console = data()
    console.print(f"[bold]{shown(catalogue.absolute(found.path))}[/bold]")
    if not found.tags:
        console.print("No tag stands in its files, and none was suggested.")
    for tag in found.tags:
        console.print()
        sure = "" if tag.confidence is None else f", {percent(tag.confidence)} confidence"
        console.print(f"[cyan]{shown_tag(tag.tag)}[/cyan]  {_STATES[tag.state]}{sure}")
        for said in tag.said:
            when = f"  [dim]{day(said.when)}[/dim]" if said.when else ""
            console.print(f"  {shown_text(said.text)}{when}")
        if shares := shares_text(tag.name_share, tag.readout_share):
            console.print(f"  [dim]suggested {shares}[/dim]")
        if kin := _kin_text(catalogue, tag, n_kin):
            console.print(Padding(f"[dim]kin: {kin}[/dim]", (0, 0, 0, 2)))


def _kin_text(catalogue: Catalogue, tag: TagProvenance, n_kin: int) -> str:
    there = [kin for kin in tag.kin[:n_kin] if kin.path is not None]
    return ", ".join(
        f"{shown(catalogue.absolute(str(kin.path)))} ({percent(kin.share)})" for kin in there
    )
