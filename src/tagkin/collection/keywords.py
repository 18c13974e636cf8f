"""Read the tags of a photograph from its XMP, IPTC keywords, Windows' EXIF keywords and sidecars.

XMP has them in ``dc:subject``, ``lr:hierarchicalSubject`` and ``digiKam:TagsList``. Sidecars are
``photo.xmp`` and ``photo.jpg.xmp``.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from tagkin.collection.capture import Shot, shot_of
from tagkin.collection.containers import Metadata, find_metadata
from tagkin.collection.iptc import iptc_keywords
from tagkin.collection.levels import merge_tags, tidy, without_parents
from tagkin.collection.sidecar_naming import sidecars_of
from tagkin.collection.xmp import MAX_BYTES, xmp_keywords, xmp_rating
from tagkin.errors import UnreadableImage
from tagkin.images.image_files import Failure, open_file, read_bytes

__all__ = [
    "MAX_KEYWORDS",
    "MAX_LENGTH",
    "FileMetadata",
    "read_keywords",
    "read_metadata",
]

MAX_KEYWORDS = 10_000  # in a file
MAX_LENGTH = 500  # characters of a keyword, with all its levels
_MAX_XP_KEYWORDS = 1 << 20  # bytes of Windows' keywords
_CUT = range(61, 65)  # bytes at which IPTC cuts a keyword, at the end of a character


def read_keywords(path: str | os.PathLike[str]) -> list[str]:
    """Return the tags of a photograph, each once.

    Tags with levels, ``animal|dog``, come first, and their last level is not a second tag. Damaged
    metadata are read up to the damage; `read_metadata` also reports the damage. Raises
    `UnreadableImage` if the photograph itself cannot be opened.
    """
    return list(read_metadata(path).tags)


class FileMetadata(NamedTuple):
    """The metadata of a photograph and its sidecars."""

    tags: dict[str, dict[str, str]]
    """The spelling of each tag in each file: the photograph or a sidecar."""
    problems: list[Failure]
    """One for each block of metadata that could not be read in full; its ``file`` is the photograph
    or the sidecar."""
    shot: Shot
    """The capture; a rating in a sidecar overrides the rating in the photograph."""


def read_metadata(path: str | os.PathLike[str], parents: Collection[str] = ()) -> FileMetadata:
    """Read the tags of a photograph and its sidecars, and how it was taken, in one pass.

    Tags that tagkin wrote below one of the `parents` come without it.
    """
    path = Path(path)
    words, problems, shot = _read_embedded(path)
    by_file = {str(path): _check_words(words, str(path), problems)}
    for sidecar in sidecars_of(path):
        try:
            packet = read_bytes(sidecar, MAX_BYTES)
            words, problem = xmp_keywords(packet)
            shot = shot._replace(rating=xmp_rating(packet) or shot.rating)
        except UnreadableImage as error:
            words, problem = [], str(error)
        problems += [Failure(str(sidecar), problem)] if problem else []
        by_file[str(sidecar)] = _check_words(words, str(sidecar), problems)
    by_file = {file: without_parents(words, parents) for file, words in by_file.items()}
    located: dict[str, dict[str, str]] = {
        tag: {} for tag in merge_tags(word for words in by_file.values() for word in words)
    }
    for file, words in by_file.items():
        for word in words:
            if (tag := tidy(word)) in located:
                located[tag].setdefault(file, word)
    return FileMetadata(located, problems, shot)


def _check_words(words: list[str], file: str, problems: list[Failure]) -> list[str]:
    """Return the words of a file that can be tags; the others are a problem."""
    first = words[:MAX_KEYWORDS]
    short = [word for word in first if len(word) <= MAX_LENGTH]
    if len(first) < len(words):
        reason = f"it has more than {MAX_KEYWORDS:,} keywords; only the first were read"
        problems.append(Failure(file, reason))
    if len(short) < len(first):
        reason = f"keywords of more than {MAX_LENGTH} characters were left out"
        problems.append(Failure(file, reason))
    return short


def _read_embedded(path: Path) -> tuple[list[str], list[Failure], Shot]:
    with open_file(path) as file:
        try:
            metadata = find_metadata(file)
        except UnreadableImage as error:
            problem = Failure(str(path), f"its metadata were not read: {error}")
            return [], [problem], shot_of(Metadata(), path)
    packets = [xmp_keywords(packet) for packet in metadata.xmp]
    reasons = [metadata.problem, *(problem for _, problem in packets)]
    problems = [Failure(str(path), reason) for reason in reasons if reason]
    words = [word for in_packet, _ in packets for word in in_packet]
    for block in metadata.xp_keywords:
        text = block[:_MAX_XP_KEYWORDS].decode("utf-16-le", "replace")
        words += text.split("\0", 1)[0].split(";")
    # the same words, cut to the 64 bytes of an IPTC keyword
    encoded = [word.encode("utf-8", "replace") for word in words]
    cut = {data[:size] for data in encoded for size in _CUT if size < len(data)}
    for block in metadata.iptc:
        words += [w for w in iptc_keywords(block) if w.encode("utf-8", "replace") not in cut]
    shot = shot_of(metadata, path)
    ratings = [rating for packet in metadata.xmp if (rating := xmp_rating(packet)) is not None]
    return words, problems, shot._replace(rating=ratings[0] if ratings else shot.rating)
