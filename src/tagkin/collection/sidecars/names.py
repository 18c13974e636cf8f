"""Where the sidecar of a photograph is, or would be: ``img.xmp`` or ``img.jpg.xmp``."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tagkin.images.formats import suffixes
from tagkin.images.raw import raw_suffixes

__all__ = ["Convention", "Sidecar", "habit_of", "sidecar_for", "sidecar_names", "sidecars_of"]

_NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}
_SUFFIXES = (".xmp", ".XMP", ".Xmp")


class Convention(StrEnum):
    """How a new sidecar is named.

    `FULL` adds to the whole name, ``img.jpg.xmp``, as darktable, digiKam and Immich do; `STEM`
    replaces the suffix, ``img.xmp``, as Lightroom does beside raw files.
    """

    FULL = "img.jpg.xmp"
    STEM = "img.xmp"


@dataclass(frozen=True)
class Sidecar:
    """The file that holds, or would hold, the tags of a photograph."""

    path: Path
    exists: bool


def sidecar_names(name: str) -> list[str]:
    """Names that the sidecars of a photograph may have, in the order in which they are read."""
    stems = (name, os.path.splitext(name)[0])
    names = [stem + suffix for stem in stems for suffix in _SUFFIXES]
    return [one for one in names if one != name]


def sidecars_of(photograph: Path) -> list[Path]:
    """Its XMP files. Asked for by name: to list the folder for each of its photographs is slow."""
    there: dict[tuple[int, int], Path] = {}
    for sidecar in map(photograph.with_name, sidecar_names(photograph.name)):
        try:
            status = os.stat(sidecar)
        except ValueError:
            continue
        except OSError as error:
            if error.errno not in _NOT_THERE:  # whoever reads it says what is wrong
                there.setdefault((-1, len(there)), sidecar)
            continue
        there.setdefault((status.st_dev, status.st_ino), sidecar)
    return list(there.values())


def sidecar_for(
    photograph: str | os.PathLike[str], convention: Convention = Convention.FULL
) -> Sidecar:
    """The sidecar of a photograph: the one that is there, whatever it is called, or a new one.

    Parameters
    ----------
    photograph : path
    convention : Convention
        How a new one is named. Where both kinds are there already, the one that is named so is
        used. Where another photograph has the same stem, ``img.png`` beside ``img.jpg``, a new
        one gets the full name: ``img.xmp`` would be the sidecar of both.
    """
    photograph = Path(photograph)
    there = sidecars_of(photograph)
    if there:
        wanted = [path for path in there if _convention_of(path, photograph) is convention]
        return Sidecar((wanted or there)[0], exists=True)
    if convention is Convention.STEM and not _shares_stem(photograph):
        return Sidecar(photograph.with_name(f"{photograph.stem}.xmp"), exists=False)
    return Sidecar(photograph.with_name(f"{photograph.name}.xmp"), exists=False)


def habit_of(photographs: Iterable[str | os.PathLike[str]]) -> Convention:
    """How most sidecars of a collection are named; the full name where there is no habit.

    Every folder is listed once.
    """
    folders: dict[Path, set[str]] = {}
    n_full = n_stem = 0
    for photograph in map(Path, photographs):
        names = folders.get(photograph.parent)
        if names is None:
            names = folders[photograph.parent] = _names_in(photograph.parent)
        n_full += f"{photograph.name}.xmp".casefold() in names
        n_stem += f"{photograph.stem}.xmp".casefold() in names
    return Convention.STEM if n_stem > n_full else Convention.FULL


def _names_in(folder: Path) -> set[str]:
    try:
        return {name.casefold() for name in os.listdir(folder)}
    except OSError:
        return set()


def _convention_of(sidecar: Path, photograph: Path) -> Convention:
    return Convention.STEM if sidecar.stem == photograph.stem else Convention.FULL


def _shares_stem(photograph: Path) -> bool:
    """Whether another photograph beside it has its stem; its raw file is the same photograph."""
    others = suffixes() - raw_suffixes()
    if photograph.suffix.lower() not in others:
        return False
    spelled = (suffix for other in others for suffix in (other, other.upper()))
    beside = (photograph.with_suffix(suffix) for suffix in spelled)
    return any(path.exists() and not _is_same(path, photograph) for path in beside)


def _is_same(path: Path, photograph: Path) -> bool:
    try:
        return path.samefile(photograph)
    except OSError:
        return path.name == photograph.name
