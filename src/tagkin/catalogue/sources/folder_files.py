"""The photographs in a folder: listed by names and file states, and read in a scan."""

from __future__ import annotations

import functools
import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from tagkin.catalogue.listing import RACY, Listed, Listing, PhotographRead, State, read_state
from tagkin.catalogue.seen_lists import ListsRead, end_of_name
from tagkin.collection import find_photographs, read_metadata, sidecar_names
from tagkin.collection.facts import merge_facts
from tagkin.collection.keywords import FileMetadata
from tagkin.errors import InvalidInput, UnreadableImage
from tagkin.images import Failure, content_digest, read_bytes
from tagkin.images.image_files import why
from tagkin.wording import count

__all__ = ["check_listing", "list_folder", "read_lists", "read_photograph"]


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


def read_photograph(listed: Listed, with_content: bool) -> PhotographRead:
    """Read a photograph and its sidecars; errors are failures of that file."""
    digest, files = None, (listed.file, *listed.raws)
    try:
        if with_content:
            digest = content_digest(read_bytes(listed.file))
        metadata = [read_metadata(file) for file in files]
    except UnreadableImage as error:
        failures = [Failure(listed.file, str(error))]
        return PhotographRead(listed, None, None, failures)
    failures = [problem for part in metadata for problem in part.problems]
    facts = merge_facts(*(part.facts for part in metadata))
    lists = _join_lists(metadata, listed.file)
    return PhotographRead(listed, digest, lists, failures, facts)


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
