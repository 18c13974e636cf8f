"""The photographs of a source, as it lists them, and what is read of each in a scan."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from tagkin.catalogue.seen_lists import ListsRead
from tagkin.collection.facts import Facts
from tagkin.images import Failure

__all__ = ["RACY", "Listed", "Listing", "PhotographRead", "State", "read_batches", "read_state"]

_RACY_NS = 2 * 10**9  # a file that changed this recently may change again at the same time
RACY = -1  # in place of a recent time: the next scan reads the file again


class State(NamedTuple):
    """The state of a file; if it is equal, the file is unchanged."""

    size: int
    mtime: int
    inode: int


class Listed(NamedTuple):
    """A photograph in the folder."""

    path: str
    """From the root, with / between folders."""
    file: str
    """Absolute path."""
    state: State
    beside: bytes | None
    """Hash of the states of its sidecars and RAW files, or of what a server says about it; None
    without any."""
    raws: Sequence[str] = ()
    """Its RAW files: they are the same photograph."""
    is_likely_tagged: bool = False


@dataclass(frozen=True)
class Listing:
    """The photographs in a folder, and failures to read the folder."""

    photographs: dict[str, Listed]
    """By path from the root."""
    failures: list[Failure]
    raw_of: dict[str, str]
    """The photograph beside each RAW file."""

    def is_hidden(self, file: str) -> bool:
        """Whether a file may exist unseen, because its folder cannot be read."""
        return any(
            file == failure.file or file.startswith(os.path.join(failure.file, ""))
            for failure in self.failures
        )


def read_state(file: str) -> State:
    """Return the state of a file; its time is `RACY`, never equal, if just modified."""
    status = os.stat(file)
    racy = time.time_ns() - status.st_mtime_ns < _RACY_NS
    # some systems use all 64 bits of an inode and more; SQLite's numbers are signed
    inode = (status.st_ino & (2**64 - 1)) - 2**63
    return State(status.st_size, RACY if racy else status.st_mtime_ns, inode)


# --- reading -----------------------------------------------------------------------------


# photographs in a transaction, which an interrupted scan keeps: few at first, because the review
# page shows them as they are stored
_FIRST_BATCH, _BATCH = 32, 256


class PhotographRead(NamedTuple):
    """The result of reading a photograph."""

    listed: Listed
    digest: str | None
    lists: ListsRead | None
    """None if it could not be read; then its known tags stay."""
    failures: list[Failure]
    facts: Facts = MappingProxyType({})


def read_batches(
    photographs: Sequence[Listed], read: Callable[[Listed], PhotographRead]
) -> Iterator[list[PhotographRead]]:
    """Yield photographs in batches, read on all cores."""
    start, size = 0, _FIRST_BATCH
    with ThreadPoolExecutor() as pool:
        while batch := photographs[start : start + size]:
            yield list(pool.map(read, batch))
            start, size = start + size, min(2 * size, _BATCH)
