"""tagkin model explain, similar, evaluate, info and relocate: ask a model in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagkin.cli import options
from tagkin.cli.model_folders import (
    files_of,
    open_model,
    read_features,
    read_photographs,
    report_missing,
    report_problems,
    select_tagged,
)
from tagkin.cli.output import (
    check_target,
    data,
    document,
    json_line,
    name_first,
    progress_bar,
    relative,
    say,
    send,
    shown,
)
from tagkin.cli.quality import examples_of, report_quality, write_quality
from tagkin.cli.registry import command
from tagkin.cli.streams import escape
from tagkin.cli.suggestions import NPhotos, report_similar
from tagkin.cli.tables import bar, facts, file_table, show, size
from tagkin.errors import InvalidInput, StorageError
from tagkin.wording import count, percent, shares_text

if TYPE_CHECKING:
    from tagkin.annotator import PhotoSuggestions

_TAGS = 12  # named by info
# what a model stores about itself
_SUMMARY: dict[str, type] = {
    "photographs": int,
    "in_series": int,
    "series": int,
    "tags": dict,
    "dropped": dict,
    "backbone": str,
    "fingerprint": str,
    "description": list,
}


@command("model explain")
def explain(
    photo: options.Photo,
    model: options.Model,
    n: Annotated[
        int,
        typer.Option("-n", metavar="N", min=1, help="Tags to explain, most confident first."),
    ] = 5,
    n_kin: options.NKin = 6,
    sheet: Annotated[
        Path | None,
        typer.Option("--sheet", metavar="FILE.png", help="Draw a contact sheet of the kin."),
    ] = None,
    overwrite: options.Overwrite = False,
    as_json: options.AsJson = False,
) -> None:
    """Show why a model suggests tags for a photograph.

    PHOTO is any photograph. A suggestion comes from its kin: the most similar tagged photographs
    with the tag, each with its share of the support. The photograph itself and the meaning of the
    tag's name have their shares, too. MODEL is the model's folder.

    Examples
    --------
    tagkin model explain photo.jpg my-tags
    tagkin model explain photo.jpg my-tags -n 8 --sheet why.png
    """
    check_target(sheet, overwrite, (".png",))
    with progress_bar() as step:
        annotator = open_model(model)
        (suggested,) = annotator.suggest([photo], n=n, n_kin=n_kin, progress=step)
        if sheet is not None:
            from tagkin.pages import contact_sheet

            step("Drawing", 0, 1)
            contact_sheet(suggested, sheet)
    report_missing(files_of([suggested]), model)
    if as_json:
        send(json_line(document(suggested)))
    else:
        _show(suggested)
    if sheet is not None:
        say(f"Contact sheet: {shown(sheet)}")


def _show(suggested: PhotoSuggestions) -> None:
    console = data()
    console.print(f"[bold]{shown(suggested.file)}[/bold]")
    if suggested.tags:
        console.print(f"Has the tags {', '.join(map(escape, suggested.tags))}.")
    if not suggested.suggestions:
        console.print("No suggestion.")
    for s in suggested.suggestions:
        console.print()
        confidence = f"{bar(s.confidence)} {percent(s.confidence)} confidence"
        console.print(f"[cyan]{escape(s.tag)}[/cyan]  {confidence}")
        if shares := shares_text(s.name_share, s.readout_share):
            console.print(f"[dim]Suggested {shares}[/dim]")
        if not s.kin:
            continue
        table = file_table("Kin", "Share", "Their tags")
        for kin in s.kin:
            table.add_row(shown(kin.file), percent(kin.share), ", ".join(map(escape, kin.tags)))
        show(table)


@command("model similar")
def similar(
    photo: options.Photo, model: options.Model, n: NPhotos = 10, as_json: options.AsJson = False
) -> None:
    """Find the photographs of a model most similar to a photograph.

    PHOTO is any photograph, and MODEL the model's folder. The neighbours are near in the semantic
    space: similar in what they show, not only in how they look.

    Examples
    --------
    tagkin model similar photo.jpg my-tags
    tagkin model similar photo.jpg my-tags -n 30 --json
    """
    with progress_bar():
        (neighbours,) = open_model(model).similar([photo], n)
    report_missing((neighbour.file for neighbour in neighbours), model)
    report_similar(photo, neighbours, as_json)


@command("model evaluate")
def evaluate(
    photos: options.Photos,
    model: options.Model,
    tags: options.Tags = None,
    column: options.Column = None,
    report: options.Report = None,
    overwrite: options.Overwrite = False,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
    as_csv: options.AsCsv = False,
) -> None:
    """Measure a model on tagged photographs that it has not seen.

    PHOTOS are photographs, and folders that are searched with their subfolders. Photographs that
    MODEL learned from are left out. tagkin evaluate explains the metrics; --csv writes metrics per
    tag.

    Examples
    --------
    tagkin model evaluate other-photos my-tags
    tagkin model evaluate photos my-tags --tags test.jsonl --report quality.html
    """
    check_target(report, overwrite, (".html", ".htm"))
    with progress_bar() as step:
        annotator = open_model(model, photos)
        photographs = read_photographs(photos, tags, column, step)
        tagged = select_tagged(photographs)
        tags_of = dict(zip(tagged.files, tagged.tags, strict=True))
        seen = read_features(annotator, tagged.files, step)
        rows = [tags_of[file] for file in seen.files]
        quality = annotator.evaluate(seen, rows, progress=step)
        failures = [*photographs.failures, *seen.failures]
        if report is not None:
            step("Writing the report", 0, 1)
            write_quality(quality, report, failures, *examples_of(annotator, seen, rows))
    report_problems(failures, verbose)
    report_missing(annotator.paths_, model)
    report_quality(quality, report, as_json, as_csv)


@command("model relocate")
def relocate(folder: Annotated[Path, options.argument("FOLDER")], model: options.Model) -> None:
    """Find the photographs of a model again after they were moved.

    FOLDER is searched for the photographs that MODEL learned from, by name and by content. Their
    paths are stored in your cache folder, never in the model.

    Examples
    --------
    tagkin model relocate ~/Photos my-tags
    """
    if not folder.is_dir():
        raise InvalidInput(f"{relative(folder)} is not a folder. Check the path.")
    with progress_bar() as step:
        annotator = open_model(model)
        missing = annotator.relocate(folder, progress=step)
    n_all = len(annotator.files_)
    lost = f" Missing: {escape(name_first(missing))}" if missing else ""
    say(f"Found {n_all - len(missing):,} of {count(n_all, 'photograph')}.{lost}")


@command("model info")
def info(model: options.Model, as_json: options.AsJson = False) -> None:
    """Show what a model learned from, and how.

    MODEL is the model's folder; tagkin status names the folder of a collection's model.

    Examples
    --------
    tagkin model info my-tags
    tagkin model info my-tags --json
    """
    summary = _read_summary(model)
    if as_json:
        send(json_line(summary))
        return
    by_count = sorted(summary["tags"].items(), key=lambda item: -item[1])
    named = name_first([f"{tag} ({n:,})" for tag, n in by_count], _TAGS)
    in_series = f", {summary['in_series']:,} of them in {summary['series']:,} series"
    n_bytes = size(summary["bytes"])
    if apart := summary["bytes_apart"]:
        n_bytes += f", {size(apart)} of it only for audits and further training"
    rows = [
        ("Model", f"{shown(model)} ({n_bytes})"),
        ("Photographs", f"{summary['photographs']:,}{in_series if summary['series'] else ''}"),
        ("Tags", f"{len(by_count):,}: {escape(named)}"),
        ("Backbone", f"{shown(summary['backbone'])} ({summary['fingerprint'][:12]})"),
    ]
    console = data()
    console.print(facts(rows))
    console.print()
    for line in summary["description"]:
        console.print(escape(line), style="dim")


def _read_summary(folder: Path) -> dict[str, Any]:
    """Return what a model stores about itself, without its arrays."""
    from tagkin.storage import read_summary

    summary = read_summary(folder)
    if summary is None:
        summary = open_model(folder).summary()
    elif not _is_usable(summary):
        raise StorageError(
            f"{relative(folder)} is damaged: its summary is not a model's summary. Restore it from "
            "a copy, or train again."
        )
    sizes = {file.name: file.stat().st_size for file in folder.iterdir()}
    apart = sum(n for name, n in sizes.items() if name.startswith("apart-"))
    return {
        "model": relative(folder),
        "bytes": sum(sizes.values()),
        "bytes_apart": apart,
        **{name: summary[name] for name in _SUMMARY},
    }


def _is_usable(summary: dict[str, Any]) -> bool:
    """Whether a summary has all fields in the form that is shown."""
    if any(type(summary.get(name)) is not kind for name, kind in _SUMMARY.items()):
        return False
    counts = [*summary["tags"].values(), *summary["dropped"].values()]
    texts = all(isinstance(line, str) for line in summary["description"])
    return texts and all(type(n) is int and 0 <= n < 2**53 for n in counts)
