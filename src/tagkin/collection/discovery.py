"""Photographs in folders."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from tagkin.errors import InvalidInput
from tagkin.images.formats import raw_suffixes, suffixes, unreadable_suffixes
from tagkin.images.image_files import Failure, why

__all__ = ["find_photographs", "has_photograph", "is_left_out"]

# Folders and files that systems and network drives put beside a person's photographs.
_SYSTEM_NAME = re.compile(
    r"[#@]recycle|#snapshot|\$recycle\.bin|@eadir|@recently-snapshot|@tmp|__macosx|lost\+found"
    r"|system volume information|thumbs\.db"
)
_NUMBER = re.compile(r"([0-9]+)")
_Key: TypeAlias = "tuple[list[str | int], str]"
_DEAD_LINK = "a link to a file that is not there"


def find_photographs(
    folder: str | os.PathLike[str],
    *,
    on_skipped: Callable[[Failure], None] | None = None,
    on_raw: Callable[[Path, Path], None] | None = None,
) -> list[Path]:
    """Find the photographs in a folder, by their suffixes, with those in all its subfolders.

    Hidden files are left out. Links are followed, and a folder that several links lead to is
    searched once. A relative folder gives relative paths. They are sorted by name, ``img2`` before
    ``img10``, the same in every language.

    A raw file and a photograph of the same name, ``img1.cr2`` and ``img1.jpg``, are one
    photograph: the second. Other raw files are photographs.

    Parameters
    ----------
    folder : path
    on_skipped : callable, optional
        Gets a `Failure` for every subfolder that cannot be read, and for every photograph that is a
        dead link, not a regular file, or in a format that needs a missing package.
    on_raw : callable, optional
        Gets every raw file that was left out, with the photograph of the same name.
    """
    path = _check_folder(folder)
    skip = on_skipped or (lambda failure: None)
    wanted = dict.fromkeys(suffixes(), "") | unreadable_suffixes()
    photographs = dict.fromkeys(sorted(_search(path, wanted, set(), skip), key=_sort_key))
    for raw, developed in _excluded_raw(photographs):
        del photographs[raw]
        if on_raw is not None:
            on_raw(raw, developed)
    return list(photographs)


def has_photograph(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder or a subfolder has a photograph that is not raw; stops at the first."""
    paths = _search(Path(folder), dict.fromkeys(suffixes(), ""), set(), lambda failure: None)
    return next(paths, None) is not None


def is_left_out(name: str) -> bool:
    """Whether a file or folder of this name is hidden, or the system's own."""
    return name.startswith(".") or _SYSTEM_NAME.fullmatch(name.casefold()) is not None


def _excluded_raw(photographs: Collection[Path]) -> list[tuple[Path, Path]]:
    """Return raw files with the photograph of the same name beside them."""
    raw = raw_suffixes()
    raw_files = [path for path in photographs if path.suffix.lower() in raw]
    if not raw_files:
        return []
    developed: dict[tuple[Path, str], Path] = {}
    for path in photographs:
        if path.suffix.lower() not in raw:
            developed.setdefault((path.parent, path.stem.casefold()), path)
    keys = ((path, (path.parent, path.stem.casefold())) for path in raw_files)
    return [(path, developed[key]) for path, key in keys if key in developed]


def _check_folder(folder: str | os.PathLike[str]) -> Path:
    try:
        path = Path(os.fsdecode(folder))
        os.scandir(path).close()
    except FileNotFoundError:
        raise InvalidInput(f"There is no folder {folder}. Check the path.") from None
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be read: {why(error)}.") from error
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{folder!r} is not a path ({error}).") from error
    return path


def _search(
    top: Path, wanted: Mapping[str, str], searched: set[str], skip: Callable[[Failure], None]
) -> Iterator[Path]:
    """Yield photographs below a folder; linked folders come after all others.

    `wanted` has their suffixes, and for each the reason why it cannot be read, or "".
    """
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
            if is_left_out(entry.name):
                continue
            if _is_folder(entry):
                (linked if entry.is_symlink() else folders).append(path)
            elif (reason := wanted.get(path.suffix.lower())) is not None:
                problem = reason or _find_problem(entry)
                if problem:
                    skip(Failure(str(path), problem))
                else:
                    yield path


def _is_folder(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        return entry.is_dir()
    return False


def _find_problem(entry: os.DirEntry[str]) -> str | None:
    try:
        if entry.is_file():
            return None
        entry.stat()
    except FileNotFoundError:
        return _DEAD_LINK if entry.is_symlink() else "vanished"
    except OSError as error:
        return why(error)
    return "not a regular file"


def _sort_key(path: Path) -> tuple[_Key, ...]:
    """Sort numbers in names by value and letters without case, then by spelling."""
    return tuple(map(_name_key, path.parts))


@lru_cache(maxsize=1024)  # most photographs share their folders with others
def _name_key(name: str) -> _Key:
    pieces: list[str | int] = _NUMBER.split(name.casefold())
    pieces[1::2] = map(int, pieces[1::2])
    return pieces, name
