"""The photographs in a folder: listed by names and file states, and read in a scan."""

from __future__ import annotations

import functools
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tagkin.catalogue.seen_lists import ListsRead, end_of_name
from tagkin.collection import find_photographs, read_metadata, sidecar_names
from tagkin.collection.facts import Facts, merge_facts
from tagkin.collection.keywords import FileMetadata
from tagkin.errors import InvalidInput, UnreadableImage
from tagkin.images import Failure, content_digest, read_bytes
from tagkin.images.image_files import why
from tagkin.wording import count

__all__ = [
    "RACY",
    "Listed",
    "Listing",
    "Reading",
    "State",
    "check_listing",
    "list_folder",
    "read_batches",
    "read_lists",
    "read_photograph",
    "read_state",
]

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


def list_folder(root: Path) -> Listing:
    """Find the photographs in a folder, with the states of their files and sidecars."""
    failures: list[Failure] = []
    raw_files: list[tuple[Path, Path]] = []
    files = find_photographs(
        root, on_skipped=failures.append, on_raw=lambda *pair: raw_files.append(pair)
    )
    raw_of = {str(raw): str(photo) for raw, photo in raw_files}
    raws_of: dict[str, list[str]] = {}
    for raw, photo in raw_of.items():
        raws_of.setdefault(photo, []).append(raw)
    names_in = functools.cache(_xmp_names)
    start = len(os.path.join(root, ""))
    listed: dict[str, Listed] = {}
    for file in map(str, files):
        try:
            state = read_state(file)
        except OSError as error:
            failures.append(Failure(file, why(error)))
            continue
        path = file[start:].replace(os.sep, "/")
        raws = raws_of.get(file, ())
        folder = os.path.dirname(file)
        names = names_in(folder)
        sidecars = [
            os.path.join(folder, name)
            for photo in ((file, *raws) if names else ())
            for name in sidecar_names(os.path.basename(photo))
            if name in names
        ]
        beside = _hash([*raws, *sidecars])
        listed[path] = Listed(path, file, state, beside, raws, beside is not None)
    return Listing(listed, failures, raw_of)


def _xmp_names(folder: str) -> frozenset[str]:
    """Return the names of all sidecars in a folder."""
    try:
        return frozenset(name for name in os.listdir(folder) if name.lower().endswith(".xmp"))
    except OSError:
        return frozenset()


def read_state(file: str) -> State:
    """Return the state of a file; its time is `RACY`, never equal, if just modified."""
    status = os.stat(file)
    racy = time.time_ns() - status.st_mtime_ns < _RACY_NS
    # some systems use all 64 bits of an inode and more; SQLite's numbers are signed
    inode = (status.st_ino & (2**64 - 1)) - 2**63
    return State(status.st_size, RACY if racy else status.st_mtime_ns, inode)


def _hash(files: Sequence[str]) -> bytes | None:
    if not files:
        return None
    content = hashlib.blake2b(digest_size=16)
    for file in files:
        try:
            state = read_state(file)
        except OSError:
            state = State(-1, RACY, 0)
        moment = time.time_ns() if state.mtime == RACY else 0  # so the next scan reads it again
        content.update(f"{os.path.basename(file)}\0{state}\0{moment}\0".encode(errors="replace"))
    return content.digest()


def check_listing(root: Path, listing: Listing) -> None:
    """Reject a folder without photographs, because a scan would mark all as gone."""
    if listing.photographs:
        return
    message = f"No photograph in {root}. If it is on a drive, is the drive connected?"
    if listing.failures:
        first = listing.failures[0]
        n_unread = count(len(listing.failures), "file")
        message += f" {n_unread} could not be read: {first.file}: {first.reason}"
    raise InvalidInput(message)


# --- reading -----------------------------------------------------------------------------


# photographs in a transaction, which an interrupted scan keeps: few at first, because the review
# page shows them as they are stored
_FIRST_BATCH, _BATCH = 32, 256


class Reading(NamedTuple):
    """The result of reading a photograph."""

    listed: Listed
    digest: str | None
    lists: ListsRead | None
    """None if it could not be read; then its known tags stay."""
    failures: list[Failure]
    facts: Facts = MappingProxyType({})


def read_batches(
    photographs: Sequence[Listed], read: Callable[[Listed], Reading]
) -> Iterator[list[Reading]]:
    """Yield photographs in batches, read on all cores."""
    start, size = 0, _FIRST_BATCH
    with ThreadPoolExecutor() as pool:
        while batch := photographs[start : start + size]:
            yield list(pool.map(read, batch))
            start, size = start + size, min(2 * size, _BATCH)


def read_photograph(listed: Listed, with_content: bool) -> Reading:
    """Read a photograph and its sidecars; errors are failures of that file."""
    digest, files = None, (listed.file, *listed.raws)
    try:
        if with_content:
            digest = content_digest(read_bytes(listed.file))
        metadata = [read_metadata(file) for file in files]
    except UnreadableImage as error:
        failures = [Failure(listed.file, str(error))]
        return Reading(listed, None, None, failures)
    failures = [problem for part in metadata for problem in part.problems]
    facts = merge_facts(*(part.facts for part in metadata))
    lists = _join_lists(metadata, listed.file)
    return Reading(listed, digest, lists, failures, facts)


def read_lists(files: Sequence[str]) -> ListsRead:
    """Return the lists of tags of a photograph, the first file, of its RAW files, and sidecars.

    Raises `UnreadableImage` if one of the files cannot be opened.
    """
    return _join_lists([read_metadata(file) for file in files], files[0])


def _join_lists(metadata: Sequence[FileMetadata], photograph: str) -> ListsRead:
    return ListsRead(
        {
            end_of_name(file, photograph): part.lists[file]
            for part in metadata
            for file in part.lists
        },
        {end_of_name(file, photograph) for part in metadata for file in part.unsure},
    )
