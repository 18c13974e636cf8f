"""Where the photographs of a model are on this machine.

People move photographs and pass on models. So a model stores the names of its photographs relative
to their common folder, and only the last name of that folder. The user's cache remembers the
folder's path, and its photographs are found again by content after a move.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePath
from typing import overload

import numpy as np

from tagkin.collection import find_photographs
from tagkin.errors import StorageError, UnreadableImage
from tagkin.features import FeatureCache, default_cache_folder
from tagkin.filesystem import make_private_folder, write_whole
from tagkin.images import content_digest, read_bytes

__all__ = ["Locations", "digest_reader", "split_root"]

_NAMES, _CONTENTS = 100, 3  # names looked up and contents read to recognise a folder


def split_root(paths: Iterable[str | os.PathLike[str]]) -> tuple[str | None, list[str]]:
    """Return the common folder of files, and their names in it with / between folders.

    If there is no common folder (several drives on Windows), the names are absolute paths.
    """
    whole = [os.path.abspath(path) for path in paths]
    try:
        root = os.path.commonpath([os.path.dirname(path) for path in whole])
    except ValueError:  # no path at all, or several drives
        return None, [PurePath(path).as_posix() for path in whole]
    within = len(os.path.join(root, ""))  # with the separator, which the root of a drive has itself
    return root, [path[within:].replace(os.sep, "/") for path in whole]


class Locations(Sequence[str]):
    """Paths of N photographs; only names if their folder is unknown.

    Parameters
    ----------
    names : sequence of N str
        Relative to the root, with / between folders.
    digests : sequence of N str
        SHA-256 of each photograph's content.
    root : str, optional
        Folder of the photographs. Without it, a path is the name alone.
    moved : dict of int to str, optional
        Absolute paths, by number, of photographs that are outside of the root.
    remembers : bool
        Whether `remember` writes anything.
    """

    def __init__(
        self,
        names: Sequence[str] | np.ndarray,
        digests: Sequence[str] | np.ndarray,
        root: str | None = None,
        moved: dict[int, str] | None = None,
        remembers: bool = True,
    ):
        self.names, self.digests = np.asarray(names, object), np.asarray(digests, object)
        self.root = root
        self.moved = dict(moved or {})
        self.remembers = remembers

    @classmethod
    def of(cls, paths: Sequence[str], digests: Sequence[str], remembers: bool) -> Locations:
        """Return the locations of photographs with these paths."""
        root, names = split_root(paths)
        return cls(names, digests, root, remembers=remembers)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Number of each photograph, by its digest."""
        return {digest: i for i, digest in enumerate(self.digests)}

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        i = range(len(self))[number]
        return self.moved.get(i) or self._join_root(self.root, i)

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))

    def _join_root(self, root: str | os.PathLike[str] | None, i: int) -> str:
        name = str(self.names[i])
        return name if root is None else os.path.join(root, *name.split("/"))

    def missing(self) -> list[int]:
        """Return the numbers of photographs that do not exist."""
        return [i for i, path in enumerate(self) if not _exists(path)]

    def find_numbers(self, digests: Sequence[str]) -> np.ndarray:
        """Return the number of the photograph with each digest, or −1, shape (n,)."""
        return np.array([self.numbers.get(digest, -1) for digest in digests], dtype=np.int64)

    def merge(self, files: Sequence[str], digests: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return all paths and digests: known contents get these paths, new ones come last."""
        paths, contents = list(self), list(self.digests)
        for file, digest, i in zip(files, digests, self.find_numbers(digests), strict=True):
            if i >= 0:
                paths[i] = file
            else:
                paths.append(file)
                contents.append(digest)
        return paths, contents

    # --- after a move --------------------------------------------------------------------

    def update_from(
        self, files: Sequence[str], digests: Sequence[str], cache: FeatureCache | bool = False
    ) -> None:
        """Update lost paths from photographs just read.

        Changes are remembered, as `remember` does with the `cache`.
        """
        lost = []
        for file, digest in zip(files, digests, strict=True):
            i = self.numbers.get(digest)
            if i is not None and not _exists(self[i]):
                lost.append((i, os.path.abspath(file)))
        for i, path in lost:
            if _exists(self[i]):
                continue  # another photograph has given the root
            ending = os.path.join(os.sep, *str(self.names[i]).split("/"))
            if path.endswith(ending):
                self.root = path.removesuffix(ending) or os.sep
            else:
                self.moved[i] = path
        if lost:
            self.remember(cache)

    def search(
        self,
        folder: str | os.PathLike[str],
        digest_of: Callable[[str], str | None],
        cache: FeatureCache | bool = False,
    ) -> list[str]:
        """Look for the photographs under a folder, by name, then by content; return missing names.

        Names are trusted if one of a few photographs has the right content, or if all exist:
        content changes when a program writes tags into a photograph. Changes are remembered, as
        `remember` does with the `cache`.
        """
        whole = os.path.abspath(folder)
        if self._is_root(whole, digest_of) or (
            len(self) and all(_exists(self._join_root(whole, i)) for i in range(len(self)))
        ):
            self.root, self.moved = whole, {}
        lost = {str(self.digests[i]): i for i in self.missing()}
        files = [str(path) for path in find_photographs(whole)] if lost else []
        names = {PurePath(str(self.names[i])).name for i in lost.values()}
        files.sort(key=lambda file: os.path.basename(file) not in names)  # likely ones first
        for file in files:
            digest, root = digest_of(file), self.root
            if digest not in lost:
                continue
            self.update_from([file], [str(digest)])
            del lost[str(digest)]
            if self.root != root:  # others may be in the new root, too
                lost = {key: i for key, i in lost.items() if not _exists(self[i])}
            if not lost:
                break
        self.remember(cache)
        return [str(self.names[i]) for i in self.missing()]

    def adopt_folder(self, folder: str | os.PathLike[str], cache: FeatureCache | bool) -> None:
        """Use a folder as the root if it has the photographs, instead of one with copies.

        This looks up names and reads the content of a few, which is cheap enough for every folder
        that a command gets. The change is remembered, as `remember` does with the `cache`.
        """
        whole = os.path.abspath(folder)
        is_known = self.root == whole and not self.missing()
        if not is_known and self._is_root(whole, digest_reader(None)):
            self.root, self.moved = whole, {}
            self.remember(cache)

    def _is_root(self, folder: str, digest_of: Callable[[str], str | None]) -> bool:
        """Whether one of a few photographs in the folder has the right name and content."""
        present = self._find_sample(folder)[:_CONTENTS]
        return any(digest_of(self._join_root(folder, i)) == self.digests[i] for i in present)

    def _find_sample(self, folder: str) -> list[int]:
        """Return the photographs of a sample that are in a folder, by name."""
        sample = range(0, len(self), max(1, len(self) // _NAMES))
        return [i for i in sample if _exists(self._join_root(folder, i))]

    # --- from one run to the next --------------------------------------------------------

    def find_root(self, model: Path, root_name: str) -> None:
        """Find the photographs of a model that was just opened.

        They may be next to the model, because people move both together; a few contents confirm
        it. The remembered folder wins if it has more of them.
        """
        root, moved = self._recall()
        most = -1 if root is None else len(self._find_sample(root))
        digest_of = digest_reader(None)
        parent = model.absolute().parent
        for folder in dict.fromkeys([str(parent / root_name), str(parent)]):
            n_present = len(self._find_sample(folder))
            if n_present >= max(most, 1) and self._is_root(folder, digest_of):
                root, moved = folder, {}
                break
        self.root, self.moved = root, moved

    def _recall(self) -> tuple[str | None, dict[int, str]]:
        """Return root and moved paths from the user's cache, else the present ones."""
        try:
            stored = json.loads(self._memory_file().read_text(encoding="utf-8"))
            root, moved = stored["root"], {int(i): str(path) for i, path in stored["moved"].items()}
        except (OSError, StorageError, ValueError, KeyError, TypeError, AttributeError):
            return self.root, self.moved  # the cache has nothing usable
        usable = isinstance(root, str) and max(moved, default=0) < len(self)
        return (root, moved) if usable else (self.root, self.moved)

    def remember(self, cache: FeatureCache | bool) -> None:
        """Write the paths to the user's cache folder, for the next run on this machine.

        `cache` is where the features are kept. If it may not be written to, this does nothing.
        """
        if not self.remembers or cache is False or (cache is not True and cache.read_only):
            return
        text = json.dumps({"root": self.root, "moved": self.moved})
        try:
            path = self._memory_file()
            make_private_folder(path.parent)
            write_whole(path, text.encode(), private=True)
        except (OSError, StorageError):
            return  # without it, the user passes the folder

    def _memory_file(self) -> Path:
        content = "\0".join([*map(str, self.names), *map(str, self.digests)])
        key = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
        return default_cache_folder() / "locations" / f"{key}.json"


def digest_reader(cache: FeatureCache | None) -> Callable[[str], str | None]:
    """Return a function that returns the digest of a file's content, or None if unreadable."""

    def digest_of(file: str) -> str | None:
        try:
            status = os.stat(file)
            if cache is None:
                return content_digest(read_bytes(file))
            (digest,) = cache.digests([file], [status])
            if digest is None:
                digest = content_digest(read_bytes(file))
                cache.remember([file], [status], [digest])
            return digest
        except (OSError, ValueError, UnreadableImage):
            return None

    return digest_of


def _exists(path: str) -> bool:
    try:
        return os.path.exists(path)
    except ValueError:  # no file can have this name
        return False
