"""What commands on a catalogue share: which one is meant, and which part of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagkin.cli.output import note, relative, shown_text
from tagkin.errors import InvalidInput
from tagkin.wording import count

if TYPE_CHECKING:
    from tagkin.catalogue import Catalogue, Filters

__all__ = ["day", "filters_of", "folder_in", "opened", "paths_in", "tag_file_in", "tell_others"]

_NAMED = 3


def opened(
    catalogue: Path | None,
    command: str = "tagkin",
    *,
    write: bool = False,
    near: Path | None = None,
    dry_run: bool = False,
) -> Catalogue:
    """The catalogue that a command means; see `tagkin.catalogue.open_catalogue`."""
    from tagkin.catalogue import open_catalogue

    found = open_catalogue(catalogue, near, write=write, command=command, dry_run=dry_run)
    tell_others(found, catalogue)
    return found


def tell_others(used: Catalogue, named: Path | None) -> None:
    """Say which catalogue is used if nobody named it and others know the same folder."""
    from tagkin.catalogue import other_catalogues

    if named is not None:
        return
    if others := other_catalogues(used.root):
        others_text = ", ".join(map(relative, others))
        note(
            f"{relative(used.root)} is in {count(1 + len(others), 'catalogue')}. This is "
            f"{relative(used.path)}; --catalogue names another: {others_text}"
        )


def paths_in(catalogue: Catalogue, photos: Sequence[Path]) -> list[str]:
    """Photographs as the catalogue names them: given from here, or from its root."""
    found = []
    for photo in photos:
        beside = catalogue.root / photo
        inside = not photo.is_absolute() and not os.path.lexists(photo) and os.path.lexists(beside)
        found.append(catalogue.relative(beside if inside else photo))
    return found


def folder_in(catalogue: Catalogue, folder: Path | None) -> str | None:
    """A folder of the collection as the catalogue names it: given from its root, or from here."""
    if folder is None:
        return None
    for one in (catalogue.root / folder, folder):
        if os.path.isdir(one):
            return catalogue.relative(one)
    raise InvalidInput(f"There is no folder {relative(folder)} in {relative(catalogue.root)}.")


def filters_of(
    catalogue: Catalogue,
    photos: Sequence[Path] | None,
    tags: Sequence[str] | None,
    at_least: float | None,
    below: float | None,
    run: int | None,
    folder: Path | None,
    types: Sequence[str] | None = None,
) -> Filters:
    """The filters that options say."""
    from tagkin.catalogue import Filters

    if run is not None:
        catalogue.runs.get(run)  # there has to be one
    return Filters(
        tags=tuple(tags or ()),
        at_least=at_least,
        below=below,
        run=run,
        folder=folder_in(catalogue, folder),
        photographs=tuple(_usable(catalogue, paths_in(catalogue, photos or ()))),
        types=tuple(types or ()),
    )


def _usable(catalogue: Catalogue, paths: Sequence[str]) -> list[str]:
    """Return the photographs that can be decided on, and name the others with the reason.

    A name that there is neither here nor in the catalogue is a mistake in the command.
    """
    usable, problems = [], []
    for path in paths:
        try:
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


def tag_file_in(catalogue: Catalogue, tags: Path | None) -> str | None:
    """A tag file as the catalogue keeps it: from its root where it lies there."""
    if tags is None or str(tags) == "embedded":
        return None if tags is None else "embedded"
    try:
        return catalogue.relative(tags)
    except InvalidInput:
        return os.path.abspath(tags)


def day(moment: Any) -> str:
    """Write a moment as a person here says it: Today 21:14, Yesterday 21:14, or with the date."""
    import datetime

    if moment is None:
        return "–"
    then = datetime.datetime.fromisoformat(moment).astimezone()
    ago = datetime.datetime.now().astimezone().date() - then.date()
    name = {0: "Today", 1: "Yesterday"}.get(ago.days, f"{then:%F}")
    return shown_text(f"{name} {then:%H:%M}")
