"""Reading the files of photographs in a scan: content, tags and capture."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tagkin.catalogue.listing import Listed
from tagkin.catalogue.tag_records import Places
from tagkin.collection import Shot, read_metadata
from tagkin.collection.kinds import Kinds, KindTag, read_kinds
from tagkin.errors import UnreadableImage
from tagkin.images import Failure, content_digest, read_bytes

__all__ = ["Reading", "ReadingOptions", "read_batches", "read_photograph"]

# photographs in a transaction, which an interrupted scan keeps: few at first, because the review
# page shows them as they are stored
_FIRST_BATCH, _BATCH = 32, 256


class Reading(NamedTuple):
    """The result of reading a photograph."""

    listed: Listed
    digest: str | None
    places: Places | None
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
    digest, failures, shot = None, [], Shot()
    places_of: dict[str, list[tuple[str, str]]] = {}
    try:
        if with_content:
            digest = content_digest(read_bytes(listed.file))
        for file in (listed.file, *listed.raws):
            metadata = read_metadata(file, options.parents)
            failures += metadata.problems
            shot = shot.or_else(metadata.shot)
            for tag, places in metadata.tags.items():
                places_of.setdefault(tag, []).extend(
                    (word, _path_from_root(place, listed)) for place, word in places.items()
                )
    except UnreadableImage as error:
        failures.append(Failure(listed.file, str(error)))
        return Reading(listed, None, None, failures)
    others = [
        tag._replace(file=tag.file and _path_from_root(tag.file, listed))
        for tag in read_kinds((listed.file, *listed.raws), listed.path, options.kinds)
    ]
    return Reading(listed, digest, places_of, failures, shot, others)


def _path_from_root(place: str, listed: Listed) -> str:
    """Return the path of a file beside a photograph, or "" for the photograph itself."""
    if place == listed.file:
        return ""
    start = len(os.path.join(os.path.dirname(listed.file), ""))
    return "/".join(
        filter(None, (os.path.dirname(listed.path), place[start:].replace(os.sep, "/")))
    )
