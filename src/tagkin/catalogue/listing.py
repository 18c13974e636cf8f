"""What is in the folder now, by names and states alone: no file is read."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tagkin.collection import find_photographs, sidecar_names
from tagkin.errors import InvalidInput, pip_install
from tagkin.images import Failure
from tagkin.images.files import why

__all__ = ["RACY", "Listed", "Listing", "State", "check_listing", "list_folder", "state_of"]

_RACY_NS = 2 * 10**9  # a file that changed this recently may change again at the same time
RACY = -1  # in place of such a time: the file is read again by the next scan


class State(NamedTuple):
    """What tells that a file stayed as it was."""

    size: int
    mtime: int
    inode: int


class Listed(NamedTuple):
    """A photograph in the folder."""

    path: str
    """From the root, with / between folders."""
    file: str
    """Where it is."""
    state: State
    beside: bytes | None
    """A hash of the state of what lies beside it and holds its tags; None where nothing does."""
    raws: Sequence[str]
    """RAW files beside it: the two are one photograph."""


@dataclass(frozen=True)
class Listing:
    """The photographs in a folder, and what could not be looked at."""

    photographs: dict[str, Listed]
    """By their paths from the root."""
    failures: list[Failure]
    raw_of: dict[str, str]
    """RAW files, and the photograph beside each."""
    unread_raw: list[str]

    def is_hidden(self, file: str) -> bool:
        """Whether a file may be there although it was not seen: its folder cannot be searched."""
        return any(
            file == one.file or file.startswith(os.path.join(one.file, "")) for one in self.failures
        )


def list_folder(root: Path) -> Listing:
    """Find the photographs in a folder, each with its state and that of its sidecars."""
    failures: list[Failure] = []
    raw: list[tuple[Path, Path | None]] = []
    files = find_photographs(
        root, on_skipped=failures.append, on_raw=lambda *pair: raw.append(pair)
    )
    raw_of = {str(one): str(beside) for one, beside in raw if beside is not None}
    raws: dict[str, list[str]] = {}
    for one, beside in raw_of.items():
        raws.setdefault(beside, []).append(one)
    xmp = _Sidecars()
    start = len(os.path.join(root, ""))
    listed: dict[str, Listed] = {}
    for file in map(str, files):
        try:
            state = state_of(file)
        except OSError as error:
            failures.append(Failure(file, why(error)))
            continue
        path = file[start:].replace(os.sep, "/")
        also = raws.get(file, ())
        others = [*xmp.of(file), *also, *(x for one in also for x in xmp.of(one))]
        listed[path] = Listed(path, file, state, _hash(others), also)
    return Listing(listed, failures, raw_of, [str(one) for one, b in raw if b is None])


class _Sidecars:
    """Sidecars by the names in each folder, which is listed once."""

    def __init__(self) -> None:
        self._folder = ""
        self._there: frozenset[str] = frozenset()

    def of(self, file: str) -> list[str]:
        folder, name = os.path.split(file)
        if folder != self._folder:
            self._folder, self._there = folder, self._listed(folder)
        if not self._there:
            return []
        names = [one for one in sidecar_names(name) if one in self._there]
        return [os.path.join(folder, one) for one in names]

    @staticmethod
    def _listed(folder: str) -> frozenset[str]:
        try:
            with os.scandir(folder) as entries:
                return frozenset(e.name for e in entries if e.name.lower().endswith(".xmp"))
        except OSError:
            return frozenset()


def state_of(file: str) -> State:
    """Of a file; a time of a moment ago is `RACY`, which equals nothing that is on the disk."""
    status = os.stat(file)
    racy = time.time_ns() - status.st_mtime_ns < _RACY_NS
    return State(status.st_size, RACY if racy else status.st_mtime_ns, _signed(status.st_ino))


def _signed(inode: int) -> int:
    """An inode as a number that SQLite holds: some systems use all 64 bits and more."""
    return (inode & (2**64 - 1)) - 2**63


def _hash(files: Sequence[str]) -> bytes | None:
    if not files:
        return None
    content = hashlib.blake2b(digest_size=16)
    for file in files:
        try:
            state = state_of(file)
        except OSError:
            state = State(-1, RACY, 0)
        # never the same twice, where the next scan has to look again
        moment = time.time_ns() if state.mtime == RACY else 0
        content.update(f"{os.path.basename(file)}\0{state}\0{moment}\0".encode(errors="replace"))
    return content.digest()


def check_listing(root: Path, listing: Listing) -> None:
    """Refuse a folder without photographs: a scan of it would say that all are gone."""
    if listing.photographs:
        return
    said = f"No photograph in {root}. If it is on a drive, is that connected?"
    if listing.unread_raw:
        said += f" RAW files, of which there are {len(listing.unread_raw):,}, need "
        said += f"{pip_install('raw')}."
    raise InvalidInput(said)
