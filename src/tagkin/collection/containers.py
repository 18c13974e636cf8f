"""Find the XMP, IPTC and EXIF blocks of image files, without decoding pixels.

Only the headers of blocks and the metadata blocks are read. A file can claim any number of blocks
of any size, so the numbers of blocks and bytes are limited.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass, field
from typing import BinaryIO

from tagkin.collection.facts import EXIF_TAGS
from tagkin.errors import UnreadableImage
from tagkin.images.file_blocks import (
    EXIF,
    EXIF_DIRECTORY,
    GPS_DIRECTORY,
    XMP,
    TooManySegments,
    chunks,
    directories,
    first_directory,
    gif_blocks,
    segments,
)
from tagkin.images.formats import format_of, open_header
from tagkin.images.image_files import amount, one_line
from tagkin.images.pillow_warnings import quiet

__all__ = ["MAX_BYTES", "Metadata", "find_metadata"]

MAX_BYTES = 16 << 20  # of all metadata in a file; usually far less
_MAX_BOXES = 1 << 16  # in a JPEG 2000 file
_MAX_EXIF = 4  # blocks; there should be one
_MAX_RESOURCES = 1 << 12  # in a Photoshop block, which has about thirty
_MAX_WHOLE = 64 << 20  # bytes of a HEIF or AVIF file, which its decoder reads whole

_XMP_TAG, _IPTC_TAG, _PHOTOSHOP_TAG, _XP_KEYWORDS_TAG = 700, 33723, 34377, 0x9C9E
_PROFILE, _PROFILES = b"Raw profile type ", {b"iptc", b"8bim", b"xmp", b"exif", b"app1"}
_GIF_XMP, _GIF_XMP_END = b"\x0bXMP DataXMP", b"\x01\xff\xfe\xfd"
_UUID_XMP = bytes.fromhex("be7acfcb97a942e89c71999491e3afac")
_UUID_IPTC, _UUID_EXIF = bytes.fromhex("33c7a4d2b81d4723a0baf1a3e097ad38"), b"JpgTiffExif->JP2"
_IPTC = 0x0404  # the kind of Photoshop's resources with IPTC
_MORE_XMP, _PHOTOSHOP = b"http://ns.adobe.com/xmp/extension/\0", b"Photoshop 3.0\0"


@dataclass
class Metadata:
    """The raw metadata blocks of a file.

    ``xp_keywords`` are the keywords that Windows writes, in UTF-16, separated by semicolons.
    ``exif`` has the values of the EXIF tags that hold facts, see `tagkin.collection.facts`.
    """

    xmp: list[bytes] = field(default_factory=list)
    iptc: list[bytes] = field(default_factory=list)
    xp_keywords: list[bytes] = field(default_factory=list)
    exif: dict[int, bytes] = field(default_factory=dict)
    problem: str = ""
    """Which metadata were not read, and why; empty if all were."""
    _n_bytes: int = 0
    _n_exif: int = 0

    def read(self, file: BinaryIO, length: int) -> bytes:
        """Read a block of a file; return nothing if that would exceed the limit of the file."""
        if self._n_bytes + length > MAX_BYTES:
            self.problem = f"it has more than {amount(MAX_BYTES)} of metadata; not all were read"
            return b""
        self._n_bytes += length
        return file.read(length)

    def decompress(self, block: bytes) -> bytes:
        """Decompress a block within the limit of the file; return it unchanged if it is damaged."""
        try:
            text = zlib.decompressobj().decompress(block, max(1, MAX_BYTES - self._n_bytes + 1))
        except zlib.error:
            return block  # its reader reports that
        self._n_bytes += len(text)
        if self._n_bytes > MAX_BYTES:
            self.problem = f"it has more than {amount(MAX_BYTES)} of metadata; not all were read"
            return b""
        return text

    def add_directory(self, tags: dict[int, bytes]) -> None:
        """Add the blocks in an image directory of TIFF or EXIF."""
        for tag, blocks in (
            (_XMP_TAG, self.xmp),
            (_IPTC_TAG, self.iptc),
            (_XP_KEYWORDS_TAG, self.xp_keywords),
        ):
            if tag in tags:
                blocks.append(tags[tag])
        self.iptc += _resources(tags.get(_PHOTOSHOP_TAG, b""))

    def add_exif(self, block: bytes) -> None:
        """Add the keywords and facts of an EXIF block."""
        self._n_exif += 1
        if self._n_exif > _MAX_EXIF:
            return
        block = block.removeprefix(EXIF)
        self.add_directory(first_directory(block, {_XP_KEYWORDS_TAG}))
        self.add_facts(block)

    def add_facts(self, source: bytes | BinaryIO) -> None:
        """Add the tags that hold facts in an EXIF block or a TIFF file."""
        for tags in directories(source, EXIF_TAGS, (EXIF_DIRECTORY, GPS_DIRECTORY)):
            self.exif |= tags


def find_metadata(file: BinaryIO) -> Metadata:
    """Find the metadata of an image file, up to the first damaged block.

    Raises `UnreadableImage` if a HEIF or AVIF file is damaged or too large, or a package is missing
    for it.
    """
    head = file.read(1024)
    file.seek(0)
    kind = format_of(head)
    metadata = Metadata()
    try:
        if kind == "JPEG":
            _from_jpeg(file, metadata)
        elif kind in ("PNG", "WebP"):
            _from_chunks(file, metadata, is_png=kind == "PNG")
        elif kind == "GIF":
            _from_gif(file, metadata)
        elif kind == "TIFF":
            wanted = {_XMP_TAG, _IPTC_TAG, _PHOTOSHOP_TAG, _XP_KEYWORDS_TAG}
            metadata.add_directory(first_directory(file, wanted))
            metadata.add_facts(file)
        elif kind in ("HEIF", "AVIF"):
            _from_heif(file, kind, metadata)
        elif kind == "PSD":
            _from_psd(file, metadata)
        elif kind == "JPEG 2000":
            _from_boxes(file, metadata)
    except TooManySegments as error:
        metadata.problem = f"its metadata were not all read: {error}"
    return metadata


# --- JPEG --------------------------------------------------------------------------------


def _from_jpeg(file: BinaryIO, metadata: Metadata) -> None:
    photoshop = bytearray()
    more: dict[bytes, dict[int, bytes]] = {}  # parts of long packets
    try:
        for marker, length in segments(file):
            content = metadata.read(file, length) if marker in (0xE1, 0xED) else b""
            if content.startswith(XMP):
                metadata.xmp.append(content.removeprefix(XMP))
            elif content.startswith(EXIF):
                metadata.add_exif(content)
            elif content.startswith(_PHOTOSHOP):  # long ones go on in the next segment
                photoshop += content.removeprefix(_PHOTOSHOP)
            elif content.startswith(_MORE_XMP) and len(content) >= len(_MORE_XMP) + 40:
                content = content.removeprefix(_MORE_XMP)
                position = int.from_bytes(content[36:40], "big")
                more.setdefault(content[:32], {})[position] = content[40:]
    finally:
        metadata.iptc += _resources(bytes(photoshop))
        metadata.xmp += [b"".join(parts[at] for at in sorted(parts)) for parts in more.values()]


def _resources(block: bytes, wanted: int = _IPTC) -> list[bytes]:
    """Return the first of Photoshop's image resources of a kind."""
    blocks, at = [], 0
    for _ in range(_MAX_RESOURCES):
        if block[at : at + 4] != b"8BIM" or at + 12 > len(block):
            break
        kind = int.from_bytes(block[at + 4 : at + 6], "big")
        at += 6 + _even(1 + block[at + 6])  # past its name
        size = int.from_bytes(block[at : at + 4], "big")
        if kind == wanted:
            blocks.append(block[at + 4 : at + 4 + size])
        at += 4 + _even(size)
    return blocks[:_MAX_EXIF]


def _even(n: int) -> int:
    return n + n % 2


# --- PSD and JPEG 2000 -------------------------------------------------------------------


def _from_psd(file: BinaryIO, metadata: Metadata) -> None:
    """Find the metadata among the image resources, which follow the header and the palette."""
    file.seek(26)
    file.seek(int.from_bytes(file.read(4), "big"), os.SEEK_CUR)
    block = metadata.read(file, int.from_bytes(file.read(4), "big"))
    metadata.iptc += _resources(block)
    metadata.xmp += _resources(block, 0x0424)
    for exif in _resources(block, 0x0422):
        metadata.add_exif(exif)


def _from_boxes(file: BinaryIO, metadata: Metadata) -> None:
    """Find the metadata in the boxes of a JPEG 2000 file, before or after the picture."""
    at = 0
    for _ in range(_MAX_BOXES):
        file.seek(at)
        head = file.read(16)
        length, start = int.from_bytes(head[:4], "big"), at + 8
        if length == 1:
            length, start = int.from_bytes(head[8:], "big"), at + 16
        if len(head) < 16 or length < start - at:  # also 0, for a box up to the end
            return
        at += length
        if head[4:8] == b"uuid":
            file.seek(start)
            kind, size = file.read(16), at - start - 16
            if kind == _UUID_EXIF and size > 0:
                metadata.add_exif(metadata.read(file, size))
            elif kind in (_UUID_XMP, _UUID_IPTC) and size > 0:
                blocks = metadata.xmp if kind == _UUID_XMP else metadata.iptc
                blocks.append(metadata.read(file, size))
    raise TooManySegments(f"more than {_MAX_BOXES:,} boxes")


# --- PNG and WebP ------------------------------------------------------------------------


def _from_chunks(file: BinaryIO, metadata: Metadata, *, is_png: bool) -> None:
    for name, length in chunks(file, is_png=is_png):
        if name in (b"eXIf", b"EXIF"):
            metadata.add_exif(metadata.read(file, length))
        elif name == b"XMP ":
            metadata.xmp.append(metadata.read(file, length))
        elif name in (b"iTXt", b"zTXt", b"tEXt"):
            _add_text(file, metadata, name, length)


def _add_text(file: BinaryIO, metadata: Metadata, kind: bytes, length: int) -> None:
    """Add the XMP, or the raw profile of ImageMagick, in a text chunk of PNG."""
    start = file.tell()
    keyword = file.read(min(length, 80)).partition(b"\0")[0]
    is_profile = keyword.startswith(_PROFILE)
    if not is_profile and (keyword != b"XML:com.adobe.xmp" or metadata.xmp):
        return
    file.seek(start)
    text = metadata.read(file, length)[len(keyword) + 1 :]
    is_compressed = kind == b"zTXt" or (kind == b"iTXt" and text[:1] == b"\1")
    if kind == b"iTXt":  # flags, language, translated keyword, text
        text = text[2:].split(b"\0", 2)[-1]
    elif kind == b"zTXt":
        text = text[1:]
    text = metadata.decompress(text) if is_compressed else text
    if is_profile:
        _add_profile(metadata, keyword.removeprefix(_PROFILE).lower(), text)
    else:
        metadata.xmp.append(text)


def _add_profile(metadata: Metadata, kind: bytes, text: bytes) -> None:
    """Add a raw profile: its name and length on lines of their own, then hexadecimal digits."""
    try:
        _, _, _, digits = text.split(b"\n", 3)
        block = bytes.fromhex(digits.decode("ascii"))
    except ValueError:  # also UnicodeDecodeError
        if kind in _PROFILES and not metadata.problem:
            metadata.problem = f"its {kind.decode()} profile is damaged and was not read"
        return
    if kind in (b"iptc", b"8bim"):
        metadata.iptc += _resources(block) if block.startswith(b"8BIM") else [block]
    elif kind == b"xmp" or block.startswith(XMP):
        metadata.xmp.append(block.removeprefix(XMP))
    elif kind in _PROFILES:
        metadata.add_exif(block)


# --- GIF ---------------------------------------------------------------------------------


def _from_gif(file: BinaryIO, metadata: Metadata) -> None:
    """Find XMP in a GIF file, which has it in one piece; the trailer ends sub-block parsing."""
    for label, start, end in gif_blocks(file):
        if label == b"!\xff" and not metadata.xmp:
            file.seek(start)
            if file.read(len(_GIF_XMP)) == _GIF_XMP:
                packet = metadata.read(file, end - start - len(_GIF_XMP))
                metadata.xmp.append(packet.partition(_GIF_XMP_END)[0])


# --- HEIF and AVIF -----------------------------------------------------------------------


def _from_heif(file: BinaryIO, kind: str, metadata: Metadata) -> None:
    """Let the decoder find the metadata; it does not decode pixels for that."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size > _MAX_WHOLE:
        raise UnreadableImage(f"{kind} of {amount(size)}, above the cap of {amount(_MAX_WHOLE)}")
    try:
        with quiet():
            info = open_header(file, kind).info
    except UnreadableImage:
        raise
    except Exception as error:  # decoders raise nearly everything
        raise UnreadableImage(f"a damaged {kind} file ({one_line(str(error))})") from error
    xmp, exif = info.get("xmp") or b"", info.get("exif") or b""
    metadata.xmp += [xmp] if xmp else []
    metadata.add_exif(exif)
