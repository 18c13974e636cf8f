"""Where the photographs of a model are. The model knows names; folders belong to a machine.

A model is handed on and photographs are moved. So a model stores the names of its photographs
relative to the folder that they have in common, and of that folder its last name alone. Where
the folder is, is kept in the user's cache, and found again by content when it has moved.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

from tagkin.collection import find_photographs
from tagkin.errors import StorageError, UnreadableImage
from tagkin.features import FeatureCache, default_cache_folder
from tagkin.filesystem import make_private_folder, write_whole
from tagkin.images import content_digest, read_bytes
from tagkin.progress import Progress

__all__ = ["Locations", "digest_reader", "rooted"]

# Whether a folder is the one: so many names are asked for, and so many contents read.
_ASKED_FOR, _READ = 100, 3


def rooted(paths: Iterable[str | os.PathLike[str]]) -> tuple[str | None, list[str]]:
    """The folder that files have in common, and their names in it with / between folders.

    Where they have none in common (drives of Windows), the names are whole paths.
    """
    whole = [os.path.abspath(path) for path in paths]
    try:
        root = os.path.commonpath([os.path.dirname(path) for path in whole])
    except ValueError:  # no path at all, or several drives
        return None, [PurePath(path).as_posix() for path in whole]
    within = len(os.path.join(root, ""))  # with the separator, which the root of all has itself
    return root, [path[within:].replace(os.sep, "/") for path in whole]


class Locations(Sequence[str]):
    """Paths of N photographs, as far as it is known where they are.

    Parameters
    ----------
    names : sequence of N str
        Relative to the root, with / between folders.
    digests : sequence of N str
        SHA-256 of the content of each.
    root : str, optional
        The folder that they are in. Without it, a path is the name alone.
    moved : dict of int to str, optional
        Whole paths of photographs, by their number, that are not under their name in the root.
    remembers : bool
        Whether `remember` keeps anything.
    """

    def __init__(
        self,
        names: Sequence[str],
        digests: Sequence[str],
        root: str | None = None,
        moved: dict[int, str] | None = None,
        remembers: bool = True,
    ):
        self.names, self.digests, self.root = names, digests, root
        self.moved = dict(moved or {})
        self.remembers = remembers

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each photograph, by its digest."""
        return {digest: i for i, digest in enumerate(self.digests)}

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        i = range(len(self))[number]
        return self.moved.get(i) or self._under(self.root, i)

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))

    def _under(self, root: str | os.PathLike[str] | None, i: int) -> str:
        name = str(self.names[i])
        return name if root is None else os.path.join(root, *name.split("/"))

    def missing(self) -> list[int]:
        """Numbers of the photographs that are not there."""
        return [i for i, path in enumerate(self) if not _is_there(path)]

    # --- after a move --------------------------------------------------------------------

    def meet(self, files: Sequence[str], digests: Sequence[str]) -> bool:
        """Learn from photographs that were looked at where lost ones are; whether any was."""
        numbers = self.numbers
        lost = []
        for file, digest in zip(files, digests, strict=True):
            i = numbers.get(digest)
            if i is not None and not _is_there(self[i]):
                lost.append((i, os.path.abspath(file)))
        for i, path in lost:
            if _is_there(self[i]):
                continue  # found with the root of another
            ending = os.path.join(os.sep, *str(self.names[i]).split("/"))
            if path.endswith(ending):
                self.root = path.removesuffix(ending) or os.sep
            else:
                self.moved[i] = path
        return bool(lost)

    def search(
        self,
        folder: str | os.PathLike[str],
        digest_of: Callable[[str], str | None],
        progress: Progress | None = None,
    ) -> None:
        """Look for the photographs under a folder: by name in it, the rest by content.

        Names are believed where one of a few has the right content, or where all are there:
        content changes when a program writes tags into a photograph.
        """
        whole = os.path.abspath(folder)
        if self._is_root(whole, digest_of) or (
            len(self) and all(_is_there(self._under(whole, i)) for i in range(len(self)))
        ):
            self.root, self.moved = whole, {}
        lost = {str(self.digests[i]): i for i in self.missing()}
        if not lost:
            return
        files = [str(path) for path in find_photographs(whole)]
        names = {PurePath(str(self.names[i])).name for i in lost.values()}
        files.sort(key=lambda file: os.path.basename(file) not in names)  # likely ones first
        for done, file in enumerate(files):
            if progress is not None:
                progress("Looking for photographs", done, len(files))
            digest, root = digest_of(file), self.root
            if digest not in lost:
                continue
            self.meet([file], [str(digest)])
            del lost[str(digest)]
            if self.root != root:  # one tells where others are
                lost = {key: i for key, i in lost.items() if not _is_there(self[i])}
            if not lost:
                break

    def try_root(
        self,
        folder: str | os.PathLike[str],
        digest_of: Callable[[str], str | None],
        prefer: bool = False,
    ) -> bool:
        """Take a folder for the root if it has the photographs that are missing now.

        They are looked for by name, and the content of a few is read: cheap enough for every
        folder that a command is given anyway. With `prefer`, also where none is missing but all
        are elsewhere, in a copy.
        """
        whole = os.path.abspath(folder)
        wanted = self.missing() or (prefer and self.root != whole)
        if not wanted or not self._is_root(whole, digest_of):
            return False
        self.root, self.moved = whole, {}
        return True

    def _is_root(self, folder: str, digest_of: Callable[[str], str | None]) -> bool:
        """Whether one of a few photographs that have these names there has the right content."""
        some = range(0, len(self), max(1, len(self) // _ASKED_FOR))
        there = [i for i in some if _is_there(self._under(folder, i))]
        return any(digest_of(self._under(folder, i)) == self.digests[i] for i in there[:_READ])

    # --- from one run to the next --------------------------------------------------------

    def find_root(self, model: Path, root_name: str) -> None:
        """Where the photographs are, for a model that was just opened.

        Beside the model or around it, by content, so that both can be moved together; or where
        they were last, where more of them still are.
        """
        root, moved = self._remembered()
        most = -1 if root is None else self._n_there(root)
        digest_of = digest_reader(None)
        beside = model.absolute().parent
        for folder in dict.fromkeys([str(beside / root_name), str(beside)]):
            n_there = self._n_there(folder)
            if n_there >= max(most, 1) and self._is_root(folder, digest_of):
                root, moved = folder, {}
                break
        self.root, self.moved = root, moved

    def _n_there(self, folder: str) -> int:
        """How many of some photographs are under their names in a folder."""
        some = range(0, len(self), max(1, len(self) // _ASKED_FOR))
        return sum(_is_there(self._under(folder, i)) for i in some)

    def _remembered(self) -> tuple[str | None, dict[int, str]]:
        """The root that was kept in the user's cache, else the present one; what lies elsewhere."""
        try:
            kept = json.loads(self._memory().read_text(encoding="utf-8"))
            root, moved = kept["root"], {int(i): str(path) for i, path in kept["moved"].items()}
        except (OSError, StorageError, ValueError, KeyError, TypeError, AttributeError):
            return self.root, self.moved  # nothing is remembered, or nothing that can be used
        usable = isinstance(root, str) and max(moved, default=0) < len(self)
        return (root, moved) if usable else (self.root, self.moved)

    def remember(self) -> None:
        """Keep where the photographs are in the user's cache, for the next run on this machine."""
        if not self.remembers:
            return
        text = json.dumps({"root": self.root, "moved": self.moved})
        try:
            path = self._memory()
            make_private_folder(path.parent)
            write_whole(path, text.encode(), private=True)
        except (OSError, StorageError):
            return  # a convenience: without it the folder has to be named

    def _memory(self) -> Path:
        content = "\0".join([*map(str, self.names), *map(str, self.digests)])
        key = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
        return default_cache_folder() / "locations" / f"{key}.json"


def digest_reader(cache: FeatureCache | None) -> Callable[[str], str | None]:
    """A function that tells the digest of a file's content, or None where it cannot be read."""

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


def _is_there(path: str) -> bool:
    try:
        return os.path.exists(path)
    except ValueError:  # a name that no file can have
        return False
