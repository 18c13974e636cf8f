"""Photographs in files and folders."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from tagkin.errors import InvalidInput, UnreadableImage
from tagkin.images.files import Failure, why
from tagkin.images.formats import suffixes
from tagkin.images.raw import has_rawpy, raw_suffixes

__all__ = ["find_photographs"]

# What systems and network drives put beside a person's photographs: previews, bins, forks.
_NOT_A_PERSONS = frozenset(
    {
        "#recycle",
        "#snapshot",
        "$recycle.bin",
        "@eadir",
        "@recently-snapshot",
        "@recycle",
        "@tmp",
        "__macosx",
        "lost+found",
        "system volume information",
        "thumbs.db",
    }
)
_NUMBER = re.compile(r"([0-9]+)")
_Order: TypeAlias = "tuple[list[Any], str]"
_DEAD_LINK = "a link to a file that is not there"


def find_photographs(
    *locations: str | os.PathLike[str],
    on_skipped: Callable[[Failure], None] | None = None,
    on_raw: Callable[[Path, Path | None], None] | None = None,
) -> list[Path]:
    """The photographs in files and folders, each path once.

    A file named here is taken whatever it is called. A folder is searched with all folders in
    it, for files with the suffix of a photograph; hidden ones are left out. Links are followed,
    and a folder that several lead to is searched once, by its own name if that is among them.

    A raw file of a camera and a photograph of the same name beside it, ``img1.cr2`` and
    ``img1.jpg``, are one photograph: the second. Other raw files are photographs where they can
    be read, with the extra ``raw``.

    Parameters
    ----------
    *locations : paths of files and folders
    on_skipped : callable, optional
        Gets a `Failure` for every location and every folder in one that cannot be read, and for
        every photograph that is a dead link or not a regular file. Without it, a location that
        cannot be read is an error; one that is not there always is.
    on_raw : callable, optional
        Gets every raw file that was left out, and the photograph beside it, or None where raw
        files cannot be read.

    Returns
    -------
    list of Path
        As given: relative locations give relative paths. In the order of the locations, and
        sorted by name within each, the same in every language: ``img2`` before ``img10``.
    """
    found: dict[Path, Path] = {}
    searched: set[str] = set()
    skip = on_skipped or (lambda failure: None)
    wanted = suffixes() | raw_suffixes()
    named: set[Path] = set()
    for location in locations:
        try:
            path, is_folder = _checked(location)
        except UnreadableImage as error:
            if on_skipped is None:
                raise InvalidInput(f"{location} cannot be read: {error}.") from error
            on_skipped(Failure(os.fsdecode(location), str(error)))
            continue
        inside = (
            sorted(_searched(path, wanted, searched, skip), key=_order) if is_folder else [path]
        )
        named.update(() if is_folder else [path.absolute()])
        for photograph in inside:
            found.setdefault(photograph.absolute(), photograph)
    for path, beside in _left_out(found, named):
        photograph = found.pop(path)
        if on_raw is not None:
            on_raw(photograph, beside)
    return list(found.values())


def _left_out(found: dict[Path, Path], named: set[Path]) -> list[tuple[Path, Path | None]]:
    """Raw files with a photograph beside them, or that cannot be read and that nobody named."""
    raw, readable = raw_suffixes(), has_rawpy()
    suffixes_here = {os.path.splitext(path.name)[1].lower() for path in found}
    if not suffixes_here & raw:
        return []
    others: dict[tuple[Path, str], Path] = {}
    for path, photograph in found.items():
        if path.suffix.lower() not in raw:
            others.setdefault((path.parent, path.stem.casefold()), photograph)
    left_out = []
    for path in found:
        beside = others.get((path.parent, path.stem.casefold()))
        unread = not readable and path not in named
        if path.suffix.lower() in raw and (beside is not None or unread):
            left_out.append((path, beside))
    return left_out


def _checked(location: str | os.PathLike[str]) -> tuple[Path, bool]:
    """The path of a location, and whether it is a folder; one that is not there is a mistake.

    Raises
    ------
    UnreadableImage
        If it is there and cannot be read.
    """
    try:
        path = Path(os.fsdecode(location))
        os.stat(path)
        if path.is_dir():
            os.scandir(path).close()
            return path, True
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise UnreadableImage(_DEAD_LINK) from None
        raise InvalidInput(f"There is no file or folder {location}. Check the path.") from None
    except OSError as error:
        raise UnreadableImage(why(error)) from error
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{location!r} is not a path ({error}).") from error
    return path, False


def _searched(
    top: Path, wanted: frozenset[str], searched: set[str], skip: Callable[[Failure], None]
) -> Iterator[Path]:
    """Photographs under a folder. Folders wait in two lists: linked ones until no other is left."""
    folders, linked = [top], list[Path]()
    while folders or linked:
        folder = folders.pop() if folders else linked.pop(0)
        real = os.path.realpath(folder)
        if real in searched:
            continue
        searched.add(real)
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            skip(Failure(str(folder), f"folder not searched: {why(error)}"))
            continue
        for entry in listed:
            # not entry.path: it would lose that a relative folder is "."
            path = folder / entry.name
            if entry.name.startswith(".") or entry.name.casefold() in _NOT_A_PERSONS:
                continue
            if _is_folder(entry):
                (linked if entry.is_symlink() else folders).append(path)
            elif path.suffix.lower() in wanted:
                problem = _problem(entry)
                if problem:
                    skip(Failure(str(path), problem))
                else:
                    yield path


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _problem(entry: os.DirEntry[str]) -> str | None:
    try:
        if entry.is_file():
            return None
        entry.stat()
    except FileNotFoundError:
        return _DEAD_LINK if entry.is_symlink() else "vanished"
    except OSError as error:
        return why(error)
    return "not a regular file"


def _order(path: Path) -> tuple[_Order, ...]:
    """Numbers in names by their value, letters without case; equal ones by their spelling."""
    *folders, name = path.parts
    return (*_order_of_folders(tuple(folders)), _order_of_name(name))


@lru_cache(maxsize=1024)  # most photographs lie in a folder with others
def _order_of_folders(names: tuple[str, ...]) -> tuple[_Order, ...]:
    return tuple(_order_of_name(name) for name in names)


def _order_of_name(name: str) -> _Order:
    pieces = _NUMBER.split(name.casefold())
    pieces[1::2] = map(int, pieces[1::2])
    return pieces, name
