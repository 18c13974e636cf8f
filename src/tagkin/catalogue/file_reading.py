"""Reading the files of photographs in a scan: content, tags and capture."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tagkin.catalogue.listing import Listed
from tagkin.catalogue.seen_lists import ListsRead, end_of_name
from tagkin.collection import Shot, read_metadata
from tagkin.collection.kinds import Kinds, KindTag, read_kinds
from tagkin.errors import UnreadableImage
from tagkin.images import Failure, content_digest, read_bytes

__all__ = ["Reading", "ReadingOptions", "read_batches"]

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
    photographs: Sequence[Listed], with_content: bool, options: ReadingOptions
) -> Iterator[list[Reading]]:
    """Yield photographs in batches, read on all cores."""
    start, size = 0, _FIRST_BATCH
    with ThreadPoolExecutor() as pool:
        while batch := photographs[start : start + size]:
            yield list(pool.map(lambda listed: _read(listed, with_content, options), batch))
            start, size = start + size, min(2 * size, _BATCH)


def _read(listed: Listed, with_content: bool, options: ReadingOptions) -> Reading:
    """Read a photograph and its sidecars; errors are failures of that file."""
    digest, failures, shot = None, [], Shot()
    lists: dict[str, dict[str, list[str]]] = {}
    unsure: set[str] = set()
    try:
        if with_content:
            digest = content_digest(read_bytes(listed.file))
        for file in (listed.file, *listed.raws):
            metadata = read_metadata(file, options.parents)
            failures += metadata.problems
            shot = shot.or_else(metadata.shot)
            lists |= {end_of_name(f, listed.file): metadata.lists[f] for f in metadata.lists}
            unsure |= {end_of_name(f, listed.file) for f in metadata.unsure}
    except UnreadableImage as error:
        failures.append(Failure(listed.file, str(error)))
        return Reading(listed, None, None, failures)
    others = [
        tag._replace(file=tag.file and _path_from_root(tag.file, listed))
        for tag in read_kinds((listed.file, *listed.raws), listed.path, options.kinds)
    ]
    return Reading(listed, digest, ListsRead(lists, unsure), failures, shot, others)


def _path_from_root(place: str, listed: Listed) -> str:
    """Return the path of a file beside a photograph, or "" for the photograph itself."""
    if place == listed.file:
        return ""
    start = len(os.path.join(os.path.dirname(listed.file), ""))
    return "/".join(
        filter(None, (os.path.dirname(listed.path), place[start:].replace(os.sep, "/")))
    )
