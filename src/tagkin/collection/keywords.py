"""Read the tags and facts of a photograph and its sidecars.

Tags are in XMP, in IPTC keywords and in Windows' EXIF keywords. XMP has them in ``dc:subject``,
``lr:hierarchicalSubject`` and ``digiKam:TagsList``. Sidecars are ``photo.xmp`` and
``photo.jpg.xmp``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tagkin.collection.containers import find_metadata
from tagkin.collection.facts import Facts, merge_embedded, merge_facts, read_exif
from tagkin.collection.sidecar_naming import sidecars_of
from tagkin.collection.tag_lists import IPTC, WINDOWS, merge_lists
from tagkin.errors import UnreadableImage
from tagkin.images.image_files import Failure, open_file, read_bytes

if TYPE_CHECKING:
    from tagkin.collection.xmp import Packet

__all__ = [
    "MAX_KEYWORDS",
    "MAX_LENGTH",
    "FileMetadata",
    "read_file_lists",
    "read_keywords",
    "read_metadata",
]

MAX_KEYWORDS = 10_000  # in a file
MAX_LENGTH = 500  # characters of a keyword, with all its levels
_MAX_XP_KEYWORDS = 1 << 20  # bytes of Windows' keywords
_MARK = 0x1C
_CHARACTER_SET, _KEYWORD = (1, 90), (2, 25)
_LATIN_1 = {b"\x1b.A", b"\x1b-A", b"\x1b,A"}
_MAX_FIELDS = 1 << 16
_LONGEST_IPTC = 64  # bytes that IPTC allows a keyword; some writers leave one for a zero


def read_keywords(path: str | os.PathLike[str]) -> list[str]:
    """Return the tags of a photograph, each once.

    Tags with levels, ``animal|dog``, come first, and their last level is not a second tag. Damaged
    metadata are read up to the damage; `read_metadata` also reports the damage. Raises
    `UnreadableImage` if the photograph itself cannot be opened.
    """
    return list(read_metadata(path).tags)


class FileMetadata(NamedTuple):
    """The metadata of a photograph and its sidecars."""

    lists: dict[str, dict[str, list[str]]]
    """The words in each list of tags of each file: the photograph or a sidecar."""
    problems: list[Failure]
    """One for each block of metadata that could not be read in full; its ``file`` is the photograph
    or the sidecar."""
    facts: Facts
    """When, where and with what it was taken; a sidecar counts before the photograph."""
    unsure: set[str]
    """The files whose lists may have more words than were read."""

    @property
    def tags(self) -> dict[str, dict[str, str]]:
        """The spelling of each tag in each file: the union of all lists."""
        return merge_lists(self.lists).tags


class _Embedded(NamedTuple):
    """What is inside a photograph."""

    lists: dict[str, list[str]]
    problems: list[Failure]
    facts: Facts


def read_metadata(path: str | os.PathLike[str]) -> FileMetadata:
    """Read the tags and facts of a photograph and its sidecars in one pass."""
    path = Path(path)
    lists, problems, facts = _read_embedded(path)
    files = {str(path): lists}
    for sidecar in sidecars_of(path):
        try:
            packet = _read_sidecar(sidecar)
        except UnreadableImage as error:
            problems.append(Failure(str(sidecar), str(error)))
            files[str(sidecar)] = {}
            continue
        facts = merge_facts(packet.facts, facts)
        problems += [Failure(str(sidecar), packet.problem)] if packet.problem else []
        files[str(sidecar)] = packet.lists
    unsure = {failure.file for failure in problems}
    for file, lists in files.items():
        files[file] = _limit_words(lists, file, problems)
    return FileMetadata(files, problems, facts, unsure)


def read_file_lists(path: Path) -> dict[str, list[str]]:
    """Return the words in each list of tags of one file, a photograph or a sidecar."""
    if path.suffix.lower() == ".xmp":
        return _limit_words(_read_sidecar(path).lists, str(path), [])
    return _limit_words(_read_embedded(path).lists, str(path), [])


def _limit_words(
    lists: dict[str, list[str]], file: str, problems: list[Failure]
) -> dict[str, list[str]]:
    """Return the words of a file that can be tags; the others are a problem."""
    n_left = MAX_KEYWORDS
    short: dict[str, list[str]] = {}
    has_long = False
    for name, words in lists.items():
        first = words[:n_left]
        n_left -= len(first)
        short[name] = [word for word in first if len(word) <= MAX_LENGTH]
        has_long |= len(short[name]) < len(first)
    if sum(map(len, lists.values())) > MAX_KEYWORDS:
        reason = f"it has more than {MAX_KEYWORDS:,} keywords; only the first were read"
        problems.append(Failure(file, reason))
    if has_long:
        reason = f"keywords of more than {MAX_LENGTH} characters were left out"
        problems.append(Failure(file, reason))
    return short


def _read_sidecar(path: Path) -> Packet:
    from tagkin.collection.xmp import MAX_BYTES

    return _read_packet(read_bytes(path, MAX_BYTES))


def _read_packet(packet: bytes) -> Packet:
    # here, because many photographs have no XMP, and lxml takes long to import
    from tagkin.collection.xmp import read_packet

    return read_packet(packet)


def _read_embedded(path: Path) -> _Embedded:
    with open_file(path) as file:
        try:
            metadata = find_metadata(file)
        except UnreadableImage as error:
            problem = Failure(str(path), f"its metadata were not read: {error}")
            return _Embedded({}, [problem], {})
    packets = [_read_packet(packet) for packet in metadata.xmp]
    reasons = [metadata.problem, *(packet.problem for packet in packets)]
    problems = [Failure(str(path), reason) for reason in reasons if reason]
    lists: dict[str, list[str]] = {}
    for packet in packets:
        for name, words in packet.lists.items():
            lists.setdefault(name, []).extend(words)
    for block in metadata.xp_keywords:
        text = block[:_MAX_XP_KEYWORDS].decode("utf-16-le", "replace")
        lists.setdefault(WINDOWS, []).extend(text.split("\0", 1)[0].split(";"))
    for block in metadata.iptc:
        if words := _iptc_keywords(block):
            lists.setdefault(IPTC, []).extend(words)
    in_xmp = merge_facts(*(packet.facts for packet in packets))
    return _Embedded(lists, problems, merge_embedded(read_exif(metadata.exif), in_xmp))


# --- keywords in IPTC-IIM blocks, the older way to write them into photographs ---------------


def _iptc_keywords(block: bytes) -> list[str]:
    """Return the keywords of a block, in order.

    A block can declare Latin-1. Otherwise a keyword is read as UTF-8 if it is valid UTF-8, else
    as Latin-1, because many programs write UTF-8 without declaring it. If a keyword was cut
    inside a character, that character is dropped.
    """
    fields = _iptc_fields(_restore_byte_order(block))
    latin = any(key == _CHARACTER_SET and value in _LATIN_1 for key, value in fields)
    return [_iptc_text(value, latin) for key, value in fields if key == _KEYWORD]


def _iptc_text(value: bytes, latin: bool) -> str:
    if not latin:
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            whole = value[: error.start]
            if error.reason == "unexpected end of data" and _is_cut(value, whole):
                return whole.decode("utf-8")
    try:
        return value.decode("cp1252")  # which most writers of "Latin-1" use
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _is_cut(value: bytes, whole: bytes) -> bool:
    """Whether a value is UTF-8 that ends inside a character.

    "café" in Latin-1 looks the same. A cut value has the full length, or has other characters
    that are valid UTF-8.
    """
    return len(value) >= _LONGEST_IPTC - 1 or not whole.isascii()


def _restore_byte_order(block: bytes) -> bytes:
    """Undo the byte order of TIFF files that hold the block as 32-bit numbers."""
    if block[:1] != bytes([_MARK]) and block[3:4] == bytes([_MARK]):
        whole = len(block) // 4 * 4
        turned = bytearray(whole)
        for i in range(4):
            turned[i::4] = block[3 - i : whole : 4]
        return bytes(turned) + block[whole:][::-1]
    return block


def _iptc_fields(block: bytes) -> list[tuple[tuple[int, int], bytes]]:
    """Return ((record, dataset), value) for each field before the first invalid field."""
    fields: list[tuple[tuple[int, int], bytes]] = []
    at = 0
    while at + 5 <= len(block) and block[at] == _MARK and len(fields) < _MAX_FIELDS:
        key = block[at + 1], block[at + 2]
        size = int.from_bytes(block[at + 3 : at + 5], "big")
        at += 5
        if size & 0x8000:  # the size of the size
            width = size & 0x7FFF
            size = int.from_bytes(block[at : at + width], "big")
            at += width
        if at + size > len(block):
            break
        fields.append((key, block[at : at + size]))
        at += size
    return fields
