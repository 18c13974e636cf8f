"""Where the sidecar of a photograph is, or would be: ``img.xmp`` or ``img.jpg.xmp``."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tagkin.images.formats import suffixes
from tagkin.images.raw import raw_suffixes

__all__ = ["Convention", "Naming", "Sidecar", "sidecar_names", "sidecars_of"]

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
    why: str = ""
    """Why a new one has its name."""


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


class Naming:
    """Which files get the tags of a photograph, and how new sidecars are named.

    A new sidecar is named as most sidecars in its folder, else as most in the collection. Only
    sidecars of the same kind count: of photographs with a RAW file, or of the others.

    Parameters
    ----------
    photographs : iterable of paths
        The collection.
    convention : Convention, optional
        The name to use instead.
    """

    def __init__(
        self,
        photographs: Iterable[str | os.PathLike[str]] = (),
        convention: Convention | None = None,
    ):
        self.convention = convention
        self._folders: dict[Path, _Folder] = {}
        self._votes: Counter[tuple[Path | None, bool]] = Counter()  # more than 0: the full name
        for photograph in () if convention else map(Path, photographs):
            folder = self._folder(photograph.parent)
            vote = folder.vote(photograph)
            if vote:
                kind = folder.is_raw(photograph)
                self._votes[photograph.parent, kind] += vote
                self._votes[None, kind] += vote

    def sidecars(self, photograph: str | os.PathLike[str]) -> list[Sidecar]:
        """The sidecars to write: all that are there, or else a new one.

        If both ``img.jpg.xmp`` and ``img.xmp`` are there, some programs read the first and others
        the second. A RAW file of the photograph may have sidecars of its own, which get the tags,
        too. ``img.xmp`` is left alone if ``img.png`` beside ``img.jpg`` has it as well.
        """
        photograph = Path(photograph)
        own = self._existing(photograph) or [self._new(photograph)]
        others = [one for raw in self.raw_files(photograph) for one in self._existing(raw)]
        return list({one.path: one for one in (*own, *others)}.values())

    def raw_sidecars(self, raw: str | os.PathLike[str]) -> list[Sidecar]:
        """The sidecars of a RAW file; a new one is named as Lightroom does if there is no habit."""
        raw = Path(raw)
        return self._existing(raw) or [self._new(raw, Convention.STEM)]

    def raw_files(self, photograph: str | os.PathLike[str]) -> list[Path]:
        """RAW files that are one photograph with this one."""
        photograph = Path(photograph)
        names = self._folder(photograph.parent).raw_files(photograph)
        return [photograph.with_name(name) for name in names]

    def _existing(self, photograph: Path) -> list[Sidecar]:
        shared = self._other_photograph(photograph)
        return [
            Sidecar(path, exists=True)
            for path in sidecars_of(photograph)
            if not shared or _convention_of(path, photograph) is Convention.FULL
        ]

    def _new(self, photograph: Path, default: Convention = Convention.FULL) -> Sidecar:
        convention, why = self._chosen(photograph, default)
        other = self._other_photograph(photograph)
        if convention is Convention.STEM and other:
            convention, why = Convention.FULL, f"{other} has the same name"
        name = photograph.name if convention is Convention.FULL else photograph.stem
        return Sidecar(photograph.with_name(f"{name}.xmp"), exists=False, why=why)

    def _chosen(self, photograph: Path, default: Convention) -> tuple[Convention, str]:
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
        """Another photograph that would have the same ``img.xmp``, unless it is RAW."""
        if photograph.suffix.lower() in raw_suffixes() or self.raw_files(photograph):
            return None
        return self._folder(photograph.parent).other_photograph(photograph)

    def _folder(self, path: Path) -> _Folder:
        if path not in self._folders:
            self._folders[path] = _Folder(path)
        return self._folders[path]


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
        """RAW files of a photograph: the first one of their name."""
        stem = photograph.stem.casefold()
        first = next(iter(self._photographs.get(stem, ())), None)
        return self._raw.get(stem, []) if photograph.name == first else []

    def is_raw(self, photograph: Path) -> bool:
        """Whether a photograph is a RAW file, or has one beside it."""
        return photograph.suffix.lower() in raw_suffixes() or bool(self.raw_files(photograph))

    def other_photograph(self, photograph: Path) -> str | None:
        """Another photograph, not RAW, with the same stem."""
        names = self._photographs.get(photograph.stem.casefold(), [])
        others = [name for name in names if name != photograph.name]
        return others[0] if photograph.name in names and others else None

    def vote(self, photograph: Path) -> int:
        """1 if its sidecars have the full name, -1 if they have the stem, else 0."""
        full = [photograph.name, *self.raw_files(photograph)]
        n_full = any(f"{name}.xmp".casefold() in self._names for name in full)
        return n_full - (f"{photograph.stem}.xmp".casefold() in self._names)


def _convention_of(sidecar: Path, photograph: Path) -> Convention:
    return Convention.STEM if sidecar.stem == photograph.stem else Convention.FULL
