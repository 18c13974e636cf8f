"""Where image files keep their metadata: XMP, IPTC and EXIF blocks, found without any pixel.

Only headers of blocks and the blocks themselves are read; what lies between is jumped over.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import BinaryIO

from tagkin.errors import UnreadableImage
from tagkin.images.files import one_line
from tagkin.images.formats import format_of, open_header
from tagkin.images.jpeg import segments
from tagkin.images.pillow_warnings import quiet
from tagkin.images.tiff import directories, first_directory

__all__ = ["CAMERA", "MAX_BLOCK", "SERIAL", "TAKEN", "Metadata", "find_metadata"]

MAX_BLOCK = 64 << 20  # metadata are far smaller

_XMP_TAG, _IPTC_TAG, _PHOTOSHOP_TAG, _XP_KEYWORDS_TAG = 700, 33723, 34377, 0x9C9E
_EXIF_DIRECTORY = 0x8769
TAKEN, SERIAL = 0x9003, 0xA431  # when a photograph was taken, and the camera's number
CAMERA = (0x010F, 0x0110)  # its make and model
_CAPTURE = {TAKEN, SERIAL, *CAMERA}
_EXIF, _XMP = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"
_MORE_XMP, _PHOTOSHOP = b"http://ns.adobe.com/xmp/extension/\0", b"Photoshop 3.0\0"


@dataclass
class Metadata:
    """Blocks of metadata as they stand in a file.

    ``xp_keywords`` are those that Windows writes: UTF-16, separated by semicolons. ``capture``
    has what EXIF says of the camera and of the time, tag by tag.
    """

    xmp: list[bytes] = field(default_factory=list)
    iptc: list[bytes] = field(default_factory=list)
    xp_keywords: list[bytes] = field(default_factory=list)
    capture: dict[int, bytes] = field(default_factory=dict)

    def add_directory(self, tags: dict[int, bytes]) -> None:
        """Take what an image directory of TIFF or EXIF has."""
        for tag, blocks in (
            (_XMP_TAG, self.xmp),
            (_IPTC_TAG, self.iptc),
            (_XP_KEYWORDS_TAG, self.xp_keywords),
        ):
            if tag in tags:
                blocks.append(tags[tag])
        self.iptc += _iptc_of_photoshop(tags.get(_PHOTOSHOP_TAG, b""))

    def add_exif(self, block: bytes) -> None:
        """Take what an EXIF block has."""
        block = block.removeprefix(_EXIF)
        self.add_directory(first_directory(block, {_XP_KEYWORDS_TAG}))
        self.add_capture(block)

    def add_capture(self, source: bytes | BinaryIO) -> None:
        """Take what an EXIF block or a TIFF file says of the camera and of the time."""
        for found in directories(source, _CAPTURE, _EXIF_DIRECTORY):
            self.capture |= found


def find_metadata(file: BinaryIO) -> Metadata:
    """The metadata of an image file. What ends early or makes no sense ends the search.

    Raises
    ------
    UnreadableImage
        If it is HEIF or AVIF, and damaged, or a package is missing for it.
    """
    head = file.read(1024)
    file.seek(0)
    found = format_of(head)
    metadata = Metadata()
    if found == "JPEG":
        _from_jpeg(file, metadata)
    elif found == "PNG":
        _from_png(file, metadata)
    elif found == "WebP":
        _from_webp(file, metadata)
    elif found == "TIFF":
        wanted = {_XMP_TAG, _IPTC_TAG, _PHOTOSHOP_TAG, _XP_KEYWORDS_TAG}
        metadata.add_directory(first_directory(file, wanted))
        metadata.add_capture(file)
    elif found in ("HEIF", "AVIF"):
        _from_heif(file, found, metadata)
    return metadata


# --- JPEG --------------------------------------------------------------------------------


def _from_jpeg(file: BinaryIO, metadata: Metadata) -> None:
    photoshop: list[bytes] = []
    more: dict[bytes, dict[int, bytes]] = {}
    for marker, length in segments(file):
        if marker not in (0xE1, 0xED):
            continue
        content = file.read(length)
        if content.startswith(_XMP):
            metadata.xmp.append(content.removeprefix(_XMP))
        elif content.startswith(_EXIF):
            metadata.add_exif(content)
        elif content.startswith(_PHOTOSHOP):  # long ones go on in the next segment
            photoshop.append(content.removeprefix(_PHOTOSHOP))
        elif content.startswith(_MORE_XMP) and len(content) >= len(_MORE_XMP) + 40:
            content = content.removeprefix(_MORE_XMP)
            more.setdefault(content[:32], {})[int.from_bytes(content[36:40], "big")] = content[40:]
    metadata.iptc += _iptc_of_photoshop(b"".join(photoshop))
    metadata.xmp += [b"".join(parts[at] for at in sorted(parts)) for parts in more.values()]


def _iptc_of_photoshop(block: bytes) -> list[bytes]:
    """The IPTC blocks among Photoshop's image resources."""
    found, at = [], 0
    while block[at : at + 4] == b"8BIM" and at + 12 <= len(block):
        kind = int.from_bytes(block[at + 4 : at + 6], "big")
        at += 6 + _even(1 + block[at + 6])  # past its name
        size = int.from_bytes(block[at : at + 4], "big")
        if kind == 0x0404:
            found.append(block[at + 4 : at + 4 + size])
        at += 4 + _even(size)
    return found


def _even(n: int) -> int:
    return n + n % 2


# --- PNG and WebP ------------------------------------------------------------------------


def _from_png(file: BinaryIO, metadata: Metadata) -> None:
    file.seek(8)
    while len(head := file.read(8)) == 8:
        length, kind = struct.unpack(">I4s", head)
        after = file.tell() + length + 4
        if kind == b"IEND":
            return
        if kind == b"eXIf" and length <= MAX_BLOCK:
            metadata.add_exif(file.read(length))
        elif kind == b"iTXt" and length <= MAX_BLOCK and not metadata.xmp:
            metadata.xmp += _xmp_of_text(file.read(length))
        file.seek(after)


def _xmp_of_text(content: bytes) -> list[bytes]:
    """The XMP of an iTXt chunk: keyword, flags, language, translated keyword, text."""
    keyword, _, rest = content.partition(b"\0")
    if keyword != b"XML:com.adobe.xmp" or len(rest) < 2:
        return []
    text = rest[2:].split(b"\0", 2)[-1]
    if rest[0] == 0:
        return [text]
    try:
        return [zlib.decompressobj().decompress(text, MAX_BLOCK)]
    except zlib.error:
        return [text]  # not XML: whoever reads it says so


def _from_webp(file: BinaryIO, metadata: Metadata) -> None:
    file.seek(12)
    while len(head := file.read(8)) == 8:
        kind, length = struct.unpack("<4sI", head)
        after = file.tell() + _even(length)
        if kind == b"XMP " and length <= MAX_BLOCK:
            metadata.xmp.append(file.read(length))
        elif kind == b"EXIF" and length <= MAX_BLOCK:
            metadata.add_exif(file.read(length))
        file.seek(after)


# --- HEIF and AVIF -----------------------------------------------------------------------


def _from_heif(file: BinaryIO, found: str, metadata: Metadata) -> None:
    """Their boxes are left to their decoders, which look at the pixels only when asked to."""
    try:
        with quiet():
            info = open_header(file, found).info
    except UnreadableImage:
        raise
    except Exception as error:  # as in decoding: nearly everything
        raise UnreadableImage(f"a damaged {found} file ({one_line(str(error))})") from error
    metadata.xmp += [info["xmp"]] if info.get("xmp") else []
    metadata.add_exif(info.get("exif") or b"")
