"""The tags that a photograph carries itself, or in a file beside it. Nothing is ever written.

They are read from

- XMP: ``dc:subject``, ``lr:hierarchicalSubject`` and ``digiKam:TagsList``, inside the photograph
  and in the sidecars ``photo.xmp`` and ``photo.jpg.xmp``;
- IPTC: the keywords (2:25);
- EXIF: the keywords that Windows writes.
"""

from __future__ import annotations

import os
from pathlib import Path

from tagkin.collection.containers import find_metadata
from tagkin.collection.iptc import iptc_keywords
from tagkin.collection.levels import merged, tidy
from tagkin.collection.sidecars.names import sidecars_of
from tagkin.collection.xmp import MAX_BYTES, xmp_keywords
from tagkin.errors import UnreadableImage
from tagkin.images.files import Failure, open_file, read_bytes

__all__ = ["MAX_KEYWORDS", "MAX_LENGTH", "find_keywords", "locate_keywords", "read_keywords"]

MAX_KEYWORDS = 10_000  # of a file
MAX_LENGTH = 500  # characters of one, with all its levels
_MAX_XP_KEYWORDS = 1 << 20  # bytes of Windows' keywords
_CUT = range(61, 65)  # bytes at which IPTC cuts a keyword, at the end of a character


def read_keywords(path: str | os.PathLike[str]) -> list[str]:
    """The tags that a photograph carries, each once.

    Tags with levels, ``animal|dog``, come first, and their last level is not repeated as a tag
    of its own. Damaged metadata give what can be read of them; `find_keywords` says what was
    wrong.

    Raises
    ------
    UnreadableImage
        If the photograph itself cannot be opened.
    """
    return find_keywords(path)[0]


def find_keywords(path: str | os.PathLike[str]) -> tuple[list[str], list[Failure]]:
    """The tags that a photograph carries, and what was wrong with its metadata.

    Returns
    -------
    tags : list of str
        As `read_keywords` gives them.
    problems : list of Failure
        One for each block of metadata that could not be read in full; its ``file`` is the
        photograph or the sidecar.

    Raises
    ------
    UnreadableImage
        If the photograph itself cannot be opened.
    """
    located, problems = locate_keywords(path)
    return list(located), problems


def locate_keywords(
    path: str | os.PathLike[str],
) -> tuple[dict[str, dict[str, str]], list[Failure]]:
    """As `find_keywords`, with where each tag stands.

    Returns
    -------
    tags : dict of tag to (dict of file to spelling)
        The files, the photograph or sidecars, that hold a tag, and the word there.
    problems : list of Failure
    """
    path = Path(path)
    words, problems = _embedded(path)
    by_file = {str(path): _usable(words, str(path), problems)}
    for sidecar in sidecars_of(path):
        try:
            more, problem = xmp_keywords(read_bytes(sidecar, MAX_BYTES))
        except UnreadableImage as error:
            more, problem = [], str(error)
        problems += [Failure(str(sidecar), problem)] if problem else []
        by_file[str(sidecar)] = _usable(more, str(sidecar), problems)
    located: dict[str, dict[str, str]] = {
        tag: {} for tag in merged(word for some in by_file.values() for word in some)
    }
    for file, some in by_file.items():
        for word in some:
            if (tag := tidy(word)) in located:
                located[tag].setdefault(file, word)
    return located, problems


def _usable(words: list[str], file: str, problems: list[Failure]) -> list[str]:
    """The words of a file that can be tags; where some cannot, that is a problem."""
    some = words[:MAX_KEYWORDS]
    short = [word for word in some if len(word) <= MAX_LENGTH]
    if len(some) < len(words):
        what = f"it has more than {MAX_KEYWORDS:,} keywords, of which the first were read"
        problems.append(Failure(file, what))
    if len(short) < len(some):
        what = f"keywords of more than {MAX_LENGTH} characters were left out"
        problems.append(Failure(file, what))
    return short


def _embedded(path: Path) -> tuple[list[str], list[Failure]]:
    problems: list[Failure] = []
    with open_file(path) as file:
        try:
            metadata = find_metadata(file)
        except UnreadableImage as error:
            return [], [Failure(str(path), f"its metadata were not read: {error}")]
    if metadata.problem:
        problems.append(Failure(str(path), metadata.problem))
    words: list[str] = []
    for packet in metadata.xmp:
        found, problem = xmp_keywords(packet)
        words += found
        problems += [Failure(str(path), problem)] if problem else []
    for block in metadata.xp_keywords:
        text = block[:_MAX_XP_KEYWORDS].decode("utf-16-le", "replace")
        words += text.split("\0", 1)[0].split(";")
    longer = _starts(words)
    for block in metadata.iptc:
        words += [word for word in iptc_keywords(block) if _bytes_of(word) not in longer]
    return words, problems


def _starts(words: list[str]) -> set[bytes]:
    """What is left of words that are too long for IPTC, which holds 64 bytes a keyword."""
    long = filter(lambda data: len(data) > _CUT[0], map(_bytes_of, words))
    return {data[:size] for data in long for size in _CUT if size < len(data)}


def _bytes_of(word: str) -> bytes:
    return word.encode("utf-8", "replace")
