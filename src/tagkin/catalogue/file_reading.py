"""Reading the files of photographs in a scan: content, tags and capture."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tagkin.catalogue.listing import Listed
from tagkin.catalogue.seen_lists import ListsRead, end_of_name
from tagkin.collection import Shot, read_metadata
from tagkin.collection.keywords import FileMetadata
from tagkin.collection.kinds import Kinds, KindTag, read_kinds
from tagkin.errors import UnreadableImage
from tagkin.images import Failure, content_digest, read_bytes

__all__ = ["Reading", "ReadingOptions", "read_batches", "read_lists", "read_photograph"]

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
    shot: Shot = Shot()
    others: Sequence[KindTag] = ()
    """Tags of other kinds; their files are from the root."""


class ReadingOptions(NamedTuple):
    """How photographs are read."""

    parents: Collection[str]
    """The parents below which tagkin wrote tags."""
    kinds: Kinds


def read_batches(
    photographs: Sequence[Listed], read: Callable[[Listed], Reading]
) -> Iterator[list[Reading]]:
    """Yield photographs in batches, read on all cores."""
    start, size = 0, _FIRST_BATCH
    with ThreadPoolExecutor() as pool:
        while batch := photographs[start : start + size]:
            yield list(pool.map(read, batch))
            start, size = start + size, min(2 * size, _BATCH)


def read_photograph(listed: Listed, with_content: bool, options: ReadingOptions) -> Reading:
    """Read a photograph and its sidecars; errors are failures of that file."""
    digest, files = None, (listed.file, *listed.raws)
    try:
        if with_content:
            digest = content_digest(read_bytes(listed.file))
        metadata = [read_metadata(file, options.parents) for file in files]
    except UnreadableImage as error:
        failures = [Failure(listed.file, str(error))]
        return Reading(listed, None, None, failures)
    failures = [problem for part in metadata for problem in part.problems]
    shot = functools.reduce(Shot.or_else, (part.shot for part in metadata))
    lists = _join_lists(metadata, listed.file)
    others = [
        tag._replace(file=tag.file and _path_from_root(tag.file, listed))
        for tag in read_kinds(files, listed.path, options.kinds)
    ]
    return Reading(listed, digest, lists, failures, shot, others)


def read_lists(files: Sequence[str], parents: Collection[str]) -> ListsRead:
    """Return the lists of tags of a photograph, the first file, of its RAW files, and sidecars.

    Raises `UnreadableImage` if one of the files cannot be opened.
    """
    return _join_lists([read_metadata(file, parents) for file in files], files[0])


def _join_lists(metadata: Sequence[FileMetadata], photograph: str) -> ListsRead:
    return ListsRead(
        {
            end_of_name(file, photograph): part.lists[file]
            for part in metadata
            for file in part.lists
        },
        {end_of_name(file, photograph) for part in metadata for file in part.unsure},
    )


def _path_from_root(place: str, listed: Listed) -> str:
    """Return the path of a file beside a photograph, or "" for the photograph itself."""
    if place == listed.file:
        return ""
    start = len(os.path.join(os.path.dirname(listed.file), ""))
    return "/".join(
        filter(None, (os.path.dirname(listed.path), place[start:].replace(os.sep, "/")))
    )
