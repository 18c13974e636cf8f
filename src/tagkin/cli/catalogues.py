"""Catalogues: which one a command means, made if needed, and which part of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tagkin.cli.output import name_root, note, relative, report_problems, say
from tagkin.errors import DamagedModel, InvalidInput, MissingExtra
from tagkin.progress import Progress
from tagkin.wording import count, edited_text, name_first

if TYPE_CHECKING:
    from tagkin.annotator import Annotator
    from tagkin.catalogue import Catalogue, Decided, Filters, Scan, Status
    from tagkin.features import FeatureCache

_NAMED = 3


def open_for_command(
    catalogue: Path | None,
    command: str = "tagkin",
    *,
    write: bool = False,
    near: Path | None = None,
    dry_run: bool = False,
) -> Catalogue:
    """Open the catalogue that a command means; see `tagkin.catalogue.open_catalogue`."""
    from tagkin.catalogue import open_catalogue

    opened = open_catalogue(catalogue, near, write=write, command=command, dry_run=dry_run)
    show_server_paths(opened)
    return opened


@contextmanager
def open_collection(
    folder: Path | None,
    catalogue: Path | None,
    command: str,
    step: Progress,
    *,
    write: bool = False,
    dry_run: bool = False,
) -> Iterator[Catalogue]:
    """Open the catalogue of a folder; a folder without a catalogue is scanned first."""
    from tagkin.catalogue import is_catalogued

    if folder is None or is_catalogued(folder, catalogue):
        with open_for_command(
            catalogue, command, write=write, near=folder, dry_run=dry_run and write
        ) as opened:
            yield opened
        return
    with open_or_forget(folder, catalogue, command, dry_run=dry_run) as opened:
        result = opened.scan(None, None, progress=step)
        report_problems(result.failures)
        note_files(result)
        yield opened


@contextmanager
def open_or_forget(
    folder: Path | None, catalogue: Path | None, command: str, *, dry_run: bool
) -> Iterator[Catalogue]:
    """Open the catalogue of a folder to scan it.

    A new one of which nothing came is forgotten, so it is not one of two that a later command could
    mean.
    """
    from tagkin.catalogue import forget_catalogue, is_catalogued, open_for_scan

    is_new = folder is not None and not dry_run and not is_catalogued(folder, catalogue)
    with open_for_scan(folder, catalogue, command=command, dry_run=dry_run) as opened:
        show_server_paths(opened)
        try:
            yield opened
        except (InvalidInput, MissingExtra):
            if is_new:
                forget_catalogue(opened.root)
                shown = relative(opened.root)
                note(f"{shown} is not a collection yet: tagkin scan {shown}")
            raise


def open_near(photo: Path, catalogue: Path | None) -> Catalogue:
    """Open the catalogue of a photograph; of another photograph, the current folder's."""
    try:
        return open_for_command(catalogue, near=first_photograph([photo]))
    except InvalidInput:
        return open_for_command(catalogue)


def first_photograph(photos: Sequence[Path] | None) -> Path | None:
    """Return the first photograph, if it tells the collection.

    One that does not exist here may be named from the root of the current folder's collection. If
    the current folder has no collection, the folders in its name tell which is meant.
    """
    from tagkin.catalogue import is_catalogued

    if not photos:
        return None
    first = photos[0]
    is_meant = not is_catalogued(Path(), None) and is_catalogued(first, None)
    return first if first.exists() or is_meant else None


def next_command(state: Status) -> str:
    """Return the command that does what is next in a collection."""
    if state.model is None and not state.n_suggestions:  # by names, there may be suggestions
        return "tagkin train" if state.n_tags else "tagkin suggest --vocabulary common"
    if state.n_sure:
        return "tagkin accept --at-least 0.9 --dry-run"
    if state.n_to_write:
        return "tagkin write --dry-run"
    if state.n_to_remove:
        return "tagkin write --remove --dry-run"
    if state.n_suggestions or _suggested_nothing(state):
        return "tagkin review"
    return "tagkin suggest"


def _suggested_nothing(state: Status) -> bool:
    """Whether the same would happen if `tagkin suggest` ran again: it would suggest nothing."""
    last = state.last_suggest
    if last is None or last.outcome.get("suggestions"):
        return False
    return all(run is None or run.id < last.id for run in (state.last_scan, state.last_train))


def load_or_train(
    catalogue: Catalogue, step: Progress, cache: FeatureCache | bool
) -> tuple[Annotator, str]:
    """Return the model of a collection and its fingerprint; train it if none can be read."""
    model = catalogue.model
    if model.exists:
        step("Opening the model", 0, 1)
        try:
            return model.load(cache)
        except DamagedModel as error:
            note(f"{error} That happens now.")
    annotator = model.unfitted()
    run = model.train(annotator, progress=step)
    learned = count(len(annotator.vocabulary_.names_), "tag")
    photographs = count(len(annotator.files_), "photograph")
    say(f"Learned {learned} from {photographs} (run {run}).")
    return model.load(cache)


def check_whole(catalogue: Catalogue, folder: Path | None) -> None:
    """Reject a folder that is only a part of a collection."""
    if folder is not None and os.path.realpath(folder) != os.path.realpath(catalogue.root):
        raise InvalidInput(
            f"{relative(folder)} is not the folder of a collection. Name the whole collection: "
            f"{relative(catalogue.root)}"
        )


def show_server_paths(catalogue: Catalogue) -> None:
    """Let messages name the photographs of a server by its name, such as immich/2024."""
    if catalogue.server:
        name_root(catalogue.root, catalogue.root.name)


# --- parts of a collection -------------------------------------------------------------------


def find_paths(catalogue: Catalogue, photos: Sequence[Path]) -> list[str]:
    """Return photographs as the catalogue names them; given from here, or from its root."""
    return [catalogue.relative(_from_here_or_root(catalogue, photo)) for photo in photos]


def check_not_folder(catalogue: Catalogue, path: str) -> None:
    """Reject a folder in place of a photograph."""
    whole = catalogue.absolute(path)
    if os.path.isdir(whole):
        raise InvalidInput(f"{relative(whole)} is a folder, not a photograph.")


def _from_here_or_root(catalogue: Catalogue, path: Path) -> Path:
    """Return a path below the root of the collection if it exists there and not here."""
    from_root = catalogue.root / path
    is_inside = not os.path.lexists(path) and os.path.lexists(from_root)
    return from_root if is_inside else path


def find_folder(catalogue: Catalogue, folder: Path | None) -> str | None:
    """Return a folder as the catalogue names it; given from here, or from its root."""
    if folder is None:
        return None
    for path in (catalogue.root / folder, folder):
        if os.path.isdir(path):
            return catalogue.relative(path)
    raise InvalidInput(f"There is no folder {relative(folder)} in {relative(catalogue.root)}.")


def add_photographs(
    filters: Filters, catalogue: Catalogue, photos: Sequence[Path] | None
) -> Filters:
    """Return filters that also select photographs; a single folder means the photographs in it."""
    part = None
    if photos and len(photos) == 1:
        only = _from_here_or_root(catalogue, photos[0])
        if only.is_dir():
            part, photos = catalogue.relative(only), ()
    photographs = _usable(catalogue, find_paths(catalogue, photos or ()))
    return replace(filters, folder=part, photographs=tuple(photographs))


def _usable(catalogue: Catalogue, paths: Sequence[str]) -> list[str]:
    """Return the photographs that can be decided on; say why the rest cannot.

    A name that is neither here nor in the catalogue is a mistake in the command.
    """
    usable, problems = [], []
    for path in paths:
        try:
            check_not_folder(catalogue, path)
            catalogue.photographs.content_of(path)
        except InvalidInput as error:
            if not os.path.lexists(catalogue.absolute(path)):
                raise
            problems.append(str(error))
        else:
            usable.append(path)
    if problems and not usable:
        raise InvalidInput(" ".join(problems[:_NAMED]))
    for problem in problems:
        note(problem)
    return usable


def decision_rows(catalogue: Catalogue, decided: Decided) -> list[dict[str, object]]:
    """Return decisions for JSON."""
    return [
        {
            "file": relative(catalogue.absolute(decision.path)),
            "tag": decision.tag,
            "confidence": decision.confidence,
            "suggested_by": decision.run,
            "copies": [relative(catalogue.absolute(path)) for path in decision.copies],
        }
        for decision in decided.each
    ]


def day(moment: str | None) -> str:
    """Write a moment as a person here says it: Today 21:14, Yesterday 21:14, or with the date."""
    import datetime

    if moment is None:
        return "–"
    then = datetime.datetime.fromisoformat(moment).astimezone()
    ago = datetime.datetime.now().astimezone().date() - then.date()
    name = {0: "Today", 1: "Yesterday"}.get(ago.days, f"{then:%F}")
    return f"{name} {then:%H:%M}"


def note_to_confirm(paths: Sequence[str]) -> None:
    """Name photographs whose decisions wait, because they may be others now."""
    if paths:
        note(edited_text(paths, "`tagkin suggest` keeps"))


def note_files(result: Scan) -> None:
    """Name photographs that only a tag file knows, and say what happened to RAW files."""
    if result.absent:
        are = count(len(result.absent), "photograph that is", "photographs that are")
        note(f"the tag file names {are} not there: {name_first(result.absent)}")
    for name, paths in result.overwritten.items():
        of = count(len(paths), "photograph")
        note(
            f"another program overwrote {name} of {of} ({name_first(paths)}). Its former tags "
            "count, because other lists have them. If you removed them, reject them."
        )
    if result.raw_of:
        lie = count(len(result.raw_of), "RAW file lies", "RAW files lie")
        note(f"{lie} beside a photograph of the same name: each pair counts as one photograph.")
