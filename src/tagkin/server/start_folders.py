"""Folders of this machine, for a person who chooses one: places, subfolders and photographs.

Nothing is shown that the person may not read. A server for other machines shows only what is below
one folder.
"""

from __future__ import annotations

import itertools
import os
import string
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from platformdirs import user_desktop_dir, user_downloads_dir, user_pictures_dir

from tagkin.collection.discovery import is_left_out
from tagkin.errors import InvalidInput, NotFound
from tagkin.images.formats import suffixes
from tagkin.images.image_files import why

BUDGET = 0.6
"""Seconds for counting the photographs in all subfolders of a folder."""
N_PICTURES = 12  # photographs that are shown of a folder
_N_FOLDERS = 1000  # subfolders that are listed
_N_KEPT = 2000  # pictures that a page may ask for
_MOUNTS = {"linux": ("/media", "/mnt"), "darwin": ("/Volumes",)}


class StartFolder(NamedTuple):
    """A folder to start from."""

    name: str
    path: str


class Subfolder(NamedTuple):
    """A folder in a folder."""

    name: str
    path: str
    n_photographs: int
    """With those in its own subfolders, as far as they were counted."""
    is_counted: bool
    """Whether all were counted."""


@dataclass(frozen=True)
class Folder:
    """What a person sees of a folder."""

    path: str
    above: list[StartFolder]
    """The folders that it is in, the outermost first."""
    folders: list[Subfolder]
    n_folders: int
    photographs: list[str]
    """Paths of the first ones."""
    n_photographs: int
    """Without those in subfolders."""

    @property
    def n_everywhere(self) -> int:
        """Photographs here and in the subfolders, as far as they were counted."""
        return self.n_photographs + sum(folder.n_photographs for folder in self.folders)

    @property
    def is_counted(self) -> bool:
        """Whether all photographs in subfolders were counted."""
        return self.n_folders == len(self.folders) and all(f.is_counted for f in self.folders)


class Folders:
    """The folders that a person may choose from: all that they may read, or those below `within`.

    Pictures of photographs go by numbers, so that no address of a picture names a file.
    """

    def __init__(self, within: Path | None = None):
        self._within = None if within is None else os.path.realpath(within)
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._pictures: OrderedDict[int, str] = OrderedDict()

    def pictures(self) -> str:
        """Return the person's folder Pictures."""
        folder = user_pictures_dir()
        if not os.path.isdir(folder):
            raise InvalidInput(
                f"There is no folder {folder} for pictures. Name the folder whose photographs "
                "other machines may see."
            )
        return folder

    def start(self) -> str:
        """Return the folder that is shown first: Pictures, or else the person's own folder."""
        if self._within is not None:
            return self._within
        pictures = user_pictures_dir()
        return pictures if os.path.isdir(pictures) else os.path.expanduser("~")

    def places(self) -> list[StartFolder]:
        """Return the places and drives of this machine."""
        if self._within is not None:
            return [StartFolder(os.path.basename(self._within) or self._within, self._within)]
        named = {
            "Pictures": user_pictures_dir(),
            "Downloads": user_downloads_dir(),
            "Desktop": user_desktop_dir(),
            "Home": os.path.expanduser("~"),
        }
        places = [StartFolder(name, path) for name, path in named.items() if os.path.isdir(path)]
        places += sorted(_drives())
        return list({os.path.realpath(place.path): place for place in reversed(places)}.values())[
            ::-1
        ]

    def allows(self, path: str) -> bool:
        """Whether a folder may be chosen, if it exists."""
        return self._within is None or _is_below(os.path.realpath(path), self._within)

    def check(self, path: str) -> str:
        """Return the real path of a folder that may be chosen."""
        if not os.path.isabs(path) or "\0" in path:
            raise InvalidInput(f"{path!r} is not the whole path of a folder.")
        real = os.path.realpath(path)
        if not self.allows(real):
            raise NotFound("There is no such folder here.")
        if not os.path.isdir(real):
            raise NotFound(f"There is no folder {path}. Is its drive connected?")
        return real

    def look(self, path: str) -> Folder:
        """Return what a person sees of a folder."""
        real = self.check(path)
        try:
            with os.scandir(real) as entries:
                listed = sorted(
                    (e for e in entries if not is_left_out(e.name)), key=lambda e: e.name.casefold()
                )
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {why(error)}.") from error
        folders = [e.path for e in listed if _is_folder(e) and self.allows(e.path)]
        files = [e.path for e in listed if _is_photograph(e.name, suffixes()) and _is_file(e)]
        photographs = [path for path in files if self.allows(path)]
        until = time.monotonic() + BUDGET
        return Folder(
            real,
            self._above(real),
            [_count(folder, until) for folder in folders[:_N_FOLDERS]],
            len(folders),
            photographs[:N_PICTURES],
            len(photographs),
        )

    def number(self, path: str) -> int:
        """Return a number by which a page can ask for the picture of a photograph."""
        with self._lock:
            number = next(self._numbers)
            self._pictures[number] = path
            while len(self._pictures) > _N_KEPT:
                self._pictures.popitem(last=False)
        return number

    def picture(self, number: int) -> str:
        """Return the photograph of a number."""
        with self._lock:
            path = self._pictures.get(number)
        if path is None:
            raise NotFound("There is no such picture.")
        return path

    def _above(self, real: str) -> list[StartFolder]:
        parents = [str(parent) for parent in reversed(Path(real).parents)]
        return [
            StartFolder(os.path.basename(parent) or parent, parent)
            for parent in parents
            if self.allows(parent)
        ]


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def _is_photograph(name: str, wanted: frozenset[str]) -> bool:
    return os.path.splitext(name)[1].lower() in wanted


def _count(folder: str, until: float) -> Subfolder:
    """Count the photographs in a folder, until a moment; links are not followed."""
    n, todo, is_counted, wanted = 0, [folder], True, suffixes()
    while todo:
        if time.monotonic() >= until:
            is_counted = False
            break
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    if is_left_out(entry.name):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    else:
                        n += _is_photograph(entry.name, wanted)
        except OSError:  # a scan will say so
            continue
    return Subfolder(os.path.basename(folder), folder, n, is_counted)


def _drives() -> Iterator[StartFolder]:
    """Yield the drives and network shares that are connected."""
    if sys.platform == "win32":
        for letter in string.ascii_uppercase:
            if os.path.isdir(f"{letter}:\\"):
                yield StartFolder(f"{letter}:", f"{letter}:\\")
        return
    user = os.path.basename(os.path.expanduser("~"))
    folders = [*_MOUNTS.get(sys.platform, ()), f"/media/{user}", f"/run/media/{user}"]
    if hasattr(os, "getuid"):
        folders.append(f"/run/user/{os.getuid()}/gvfs")  # network shares of a desktop
    for folder in folders:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            path = os.path.join(folder, name)
            if path not in folders and os.path.isdir(path) and os.access(path, os.R_OK | os.X_OK):
                yield StartFolder(name, path)
    yield StartFolder("Computer", "/")
