"""The sidecars of a photograph, and the names of new ones: ``img.xmp`` or ``img.jpg.xmp``."""

from __future__ import annotations

import errno
import functools
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tagkin.images.formats import raw_suffixes, suffixes

__all__ = ["Convention", "Sidecar", "SidecarNaming", "sidecar_names", "sidecars_of"]

_MISSING = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}
_SUFFIXES = (".xmp", ".XMP", ".Xmp")


class Convention(StrEnum):
    """The name of a new sidecar.

    `FULL` appends to the name, ``img.jpg.xmp``, as darktable, digiKam and Immich do. `STEM`
    replaces the suffix, ``img.xmp``, as Lightroom does for RAW files.
    """

    FULL = "img.jpg.xmp"
    STEM = "img.xmp"


@dataclass(frozen=True)
class Sidecar:
    """An existing or new sidecar of a photograph."""

    path: Path
    exists: bool
    why: str = ""
    """The reason for the name of a new sidecar."""


def sidecar_names(name: str) -> list[str]:
    """Return the possible names of a photograph's sidecars, in reading order."""
    stems = (name, os.path.splitext(name)[0])
    names = [stem + suffix for stem in stems for suffix in _SUFFIXES]
    return [sidecar for sidecar in names if sidecar != name]


def sidecars_of(photograph: Path) -> list[Path]:
    """Return the existing sidecars; checking names is faster than listing the folder."""
    sidecars: dict[tuple[int, int], Path] = {}
    for sidecar in map(photograph.with_name, sidecar_names(photograph.name)):
        try:
            status = os.stat(sidecar)
        except ValueError:
            continue
        except OSError as error:
            if error.errno not in _MISSING:  # reading it reports the error
                sidecars.setdefault((-1, len(sidecars)), sidecar)
            continue
        sidecars.setdefault((status.st_dev, status.st_ino), sidecar)
    return list(sidecars.values())


class SidecarNaming:
    """Chooses the sidecars that get the tags of a photograph.

    A new sidecar has the `convention`. By default it is named like most sidecars in its folder,
    else like most in the collection of `photographs`. Photographs with a RAW file and photographs
    without are counted separately.
    """

    def __init__(
        self,
        photographs: Iterable[str | os.PathLike[str]] = (),
        convention: Convention | None = None,
    ):
        self.convention = convention
        self._folder = functools.cache(_Folder)
        self._votes: Counter[tuple[Path | None, bool]] = Counter()  # more than 0: the full name
        for photograph in () if convention else map(Path, photographs):
            folder = self._folder(photograph.parent)
            vote = folder.vote(photograph)
            if vote:
                kind = folder.is_raw(photograph)
                self._votes[photograph.parent, kind] += vote
                self._votes[None, kind] += vote

    def sidecars(self, photograph: str | os.PathLike[str]) -> list[Sidecar]:
        """Return all existing sidecars, or a new one.

        If both ``img.jpg.xmp`` and ``img.xmp`` exist, some programs read the first and others
        the second. Existing sidecars of the photograph's RAW file are included. ``img.xmp`` is not
        if it could belong to another photograph, such as ``img.png`` beside ``img.jpg``, or
        ``img.cr3`` beside ``img.cr2``.
        """
        photograph = Path(photograph)
        own = self._find_existing(photograph) or [self._name_new(photograph)]
        of_raw = [
            sidecar for raw in self.raw_files(photograph) for sidecar in self._find_existing(raw)
        ]
        return list({sidecar.path: sidecar for sidecar in (*own, *of_raw)}.values())

    def raw_sidecars(self, raw: str | os.PathLike[str]) -> list[Sidecar]:
        """Return the sidecars of a RAW file, or a new one, by default named like Lightroom's."""
        raw = Path(raw)
        return self._find_existing(raw) or [self._name_new(raw, Convention.STEM)]

    def raw_files(self, photograph: str | os.PathLike[str]) -> list[Path]:
        """Return the RAW files of a photograph."""
        photograph = Path(photograph)
        names = self._folder(photograph.parent).raw_files(photograph)
        return [photograph.with_name(name) for name in names]

    def _find_existing(self, photograph: Path) -> list[Sidecar]:
        shared = self._other_photograph(photograph)
        return [
            Sidecar(path, exists=True)
            for path in sidecars_of(photograph)
            if not shared or path.stem != photograph.stem
        ]

    def _name_new(self, photograph: Path, default: Convention = Convention.FULL) -> Sidecar:
        convention, why = self._choose_convention(photograph, default)
        other = self._other_photograph(photograph)
        if convention is Convention.STEM and other:
            convention, why = Convention.FULL, f"{other} has the same name"
        name = photograph.name if convention is Convention.FULL else photograph.stem
        return Sidecar(photograph.with_name(f"{name}.xmp"), exists=False, why=why)

    def _choose_convention(self, photograph: Path, default: Convention) -> tuple[Convention, str]:
        if self.convention is not None:
            return self.convention, "named as you asked"
        is_raw = self._folder(photograph.parent).is_raw(photograph)
        kind = "RAW" if is_raw else "non-RAW"
        for folder, place in ((photograph.parent, "folder"), (None, "collection")):
            if votes := self._votes[folder, is_raw]:
                convention = Convention.FULL if votes > 0 else Convention.STEM
                return convention, f"named as most {kind} sidecars in this {place}"
        return default, "default name"

    def _other_photograph(self, photograph: Path) -> str | None:
        """Return another photograph that could have the same ``img.xmp``, or None."""
        if self.raw_files(photograph):
            return None
        return self._folder(photograph.parent).other_photograph(photograph)


class _Folder:
    """The names in a folder, listed once."""

    def __init__(self, path: Path):
        try:
            names = os.listdir(path)
        except OSError:
            names = []
        self._names = {name.casefold() for name in names}
        self._photographs: dict[str, list[str]] = {}
        self._raw: dict[str, list[str]] = {}
        raw, others = raw_suffixes(), suffixes() - raw_suffixes()
        for name in sorted(names, key=str.casefold):
            stem, suffix = os.path.splitext(name.casefold())
            if suffix in raw:
                self._raw.setdefault(stem, []).append(name)
            elif suffix in others:
                self._photographs.setdefault(stem, []).append(name)

    def raw_files(self, photograph: Path) -> list[str]:
        """Return the RAW files of a photograph if it is the first with their stem."""
        stem = photograph.stem.casefold()
        first = next(iter(self._photographs.get(stem, ())), None)
        return self._raw.get(stem, []) if photograph.name == first else []

    def is_raw(self, photograph: Path) -> bool:
        """Whether a photograph is or has a RAW file."""
        return photograph.suffix.lower() in raw_suffixes() or bool(self.raw_files(photograph))

    def other_photograph(self, photograph: Path) -> str | None:
        """Return another photograph with the same stem, or None.

        RAW files are photographs only if no other file has their stem.
        """
        stem = photograph.stem.casefold()
        names = self._photographs.get(stem) or self._raw.get(stem, [])
        others = [name for name in names if name != photograph.name]
        return others[0] if photograph.name in names and others else None

    def vote(self, photograph: Path) -> int:
        """Return 1 if its sidecars have the full name, -1 if they have the stem, else 0."""
        full = [photograph.name, *self.raw_files(photograph)]
        n_full = any(f"{name}.xmp".casefold() in self._names for name in full)
        return n_full - (f"{photograph.stem}.xmp".casefold() in self._names)
