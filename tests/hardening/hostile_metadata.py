"""Photographs whose metadata ask for far more time or memory than they weigh."""

import struct
import zlib
from pathlib import Path

from tests.hardening.hostile import deflated, empty_segments, png
from tests.hardening.samples import iptc_block, photographs, with_segments
from tests.images.synthetic import chunk

__all__ = ["CASES"]

_MORE_XMP = b"http://ns.adobe.com/xmp/extension/\0"
_HEAD = (
    b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF '
    b'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" '
    b'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:subject><rdf:Bag>'
)
_TAIL = b"</rdf:Bag></dc:subject></rdf:Description></rdf:RDF></x:xmpmeta>"


def jpeg_with_xmp(*packets: bytes) -> bytes:
    """A JPEG file with long packets, as Adobe puts them into many segments."""
    segments = []
    for k, packet in enumerate(packets):
        name = f"{k:032}".encode()
        for at in range(0, len(packet), 65_000):
            head = _MORE_XMP + name + struct.pack(">II", len(packet), at)
            segments.append((0xE1, head + packet[at : at + 65_000]))
    return with_segments(photographs()["jpeg-grey"], *segments)


def png_with_text(packed: bytes) -> bytes:
    """A PNG file of one pixel with compressed XMP."""
    text = chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + packed)
    return png(1, 1, 8, 0, zlib.compress(b"\0\0"), text)


def nested_items(n: int = 20_000) -> bytes:
    """Items in items: 340 KB."""
    return jpeg_with_xmp(_HEAD + b"<rdf:li>" * n + b"</rdf:li>" * n + _TAIL)


def nested_descriptions(n: int = 60, width: int = 600) -> bytes:
    """Properties in properties, as deep as anybody reads, with many items in each."""
    description = _HEAD[_HEAD.index(b"<rdf:RDF") :] + b"<rdf:li>x</rdf:li>" * width + b"<rdf:li>"
    end = b"</rdf:li></rdf:Bag></dc:subject></rdf:Description></rdf:RDF>"
    return jpeg_with_xmp(b"<a>" + description * n + end * n + b"</a>")


def many_words() -> bytes:
    """60,000 words of IPTC, of the length at which it cuts, and 90,000 of XMP: 6 MB."""
    items = b"".join(b"<rdf:li>%d</rdf:li>" % k for k in range(90_000))
    fields = iptc_block(*(f"{k:063}" for k in range(60_000))).removeprefix(b"Photoshop 3.0\0")
    parts = [fields[at : at + 60_000] for at in range(0, len(fields), 60_000)]
    jpeg = jpeg_with_xmp(_HEAD + items + _TAIL)
    return with_segments(jpeg, *((0xED, b"Photoshop 3.0\0" + part) for part in parts))


def full_packet() -> bytes:
    """As much as is read of a packet, in characters that take most memory."""
    items = "".join(f"<rdf:li>{'𝄞' * 16} {k}</rdf:li>" for k in range(80_000))
    return png_with_text(zlib.compress(_HEAD + items.encode() + _TAIL))


def zipped_elements() -> bytes:
    """24 MB of elements in 24 KB."""
    return png_with_text(deflated(24 << 20, b"<a/>", head=_HEAD))


def zipped_attributes() -> bytes:
    """As many attributes as fit."""
    names = b" ".join(b"a%d=''" % k for k in range(300_000))
    return png_with_text(zlib.compress(b"<a " + names + b"/>"))


def zipped_words() -> bytes:
    """Keywords of a single letter, until the packet is full."""
    return png_with_text(deflated(7 << 20, b"<rdf:li>x</rdf:li>", head=_HEAD))


def unordered_marks() -> bytes:
    """A word of marks that stand over and under one letter: to order them takes their square."""
    marks = ("\u0316\u0301" * 200_000).encode()
    return jpeg_with_xmp(_HEAD + b"<rdf:li>a" + marks + b"</rdf:li>" + _TAIL)


def many_exif_blocks() -> bytes:
    """EXIF whose directories point at each other, again and again: 16 MB."""
    n = 5000
    entries = b"".join(struct.pack("<HHII", 0x8769, 4, 16, 8) for _ in range(n))
    block = b"Exif\0\0II*\0" + struct.pack("<IH", 8, n) + entries
    return with_segments(photographs()["jpeg-grey"], *[(0xE1, block)] * 256)


def windows_words() -> bytes:
    """Windows' keywords: a million separators."""
    value = ("a;" * 1_000_000).encode("utf-16-le")
    entry = struct.pack("<HHII", 0x9C9E, 1, len(value), 26)
    return b"II*\0" + struct.pack("<IH", 8, 1) + entry + bytes(4) + value


def turned_iptc() -> bytes:
    """IPTC in a TIFF file with the bytes of each number turned round: 12 MB of empty fields."""
    fields = b"\x1c\x02\x19\0\0\x1c\x02\x19" * 1_500_000
    value = b"".join((b"\x1c\x02\x19\0"[::-1], fields))
    entry = struct.pack("<HHII", 33723, 4, len(value) // 4, 26)
    return b"II*\0" + struct.pack("<IH", 8, 1) + entry + bytes(4) + value


def photoshop_resources() -> bytes:
    """A million of Photoshop's resources, all empty."""
    value = b"8BIM\x04\x04\0\0\0\0\0\0" * 1_000_000
    entry = struct.pack("<HHII", 34377, 1, len(value), 26)
    return b"II*\0" + struct.pack("<IH", 8, 1) + entry + bytes(4) + value


def malformed_words() -> bytes:
    """XMP that is not well-formed, and has more elements than are read."""
    return jpeg_with_xmp(_HEAD + b"<dc:subject><rdf:li>x</rdf:li>" * 200_000)


def png_of_empty_chunks() -> bytes:
    """A PNG file of empty chunks: 12 bytes each, 24 MB."""
    return photographs()["png"][:33] + chunk(b"teSt", b"") * 2_000_000


def _sparse(head: bytes, size: int):
    def write(path: Path) -> None:
        with open(path, "wb") as file:
            file.write(head)
            file.truncate(size)

    return write


def _whole(make):
    return lambda path: path.write_bytes(make())


def _big_tiff(size: int) -> bytes:
    """A BigTIFF directory that claims as many and as long entries as it can."""
    entries = b"".join(struct.pack("<HHQQ", 700, 7, size - 4096, 4096) for _ in range(190))
    return b"II+\0" + struct.pack("<HHQQ", 8, 0, 16, 1 << 60) + entries


_GIF_HEAD = b"GIF89a\x08\0\x08\0\0\0\0"
_PNG_HEAD = b"\x89PNG\r\n\x1a\n"
# By name, functions that write each file; sparse ones take no space.
CASES = {
    "nested-items.jpg": _whole(nested_items),
    "nested-descriptions.jpg": _whole(nested_descriptions),
    "many-words.jpg": _whole(many_words),
    "full-packet.png": _whole(full_packet),
    "zipped-elements.png": _whole(zipped_elements),
    "zipped-attributes.png": _whole(zipped_attributes),
    "zipped-words.png": _whole(zipped_words),
    "unordered-marks.jpg": _whole(unordered_marks),
    "many-exif-blocks.jpg": _whole(many_exif_blocks),
    "windows-words.tif": _whole(windows_words),
    "turned-iptc.tif": _whole(turned_iptc),
    "photoshop-resources.tif": _whole(photoshop_resources),
    "malformed-words.jpg": _whole(malformed_words),
    "empty-segments.jpg": _whole(lambda: empty_segments(8 << 20)),
    "padding.jpg": _whole(lambda: b"\xff\xd8" + b"\xff" * (32 << 20)),
    "empty-chunks.png": _whole(png_of_empty_chunks),
    "xmp-blocks.gif": _whole(lambda: _GIF_HEAD + b"!\xff\x0bXMP DataXMP\0" * (1 << 20)),
    "short-parts.gif": _whole(lambda: _GIF_HEAD + b"!\xff\x0bXMP DataXMP" + b"\1a" * (8 << 20)),
    "sparse.webp": _sparse(b"RIFF\xf8\xff\xff\x0bWEBP", 200 << 20),
    "sparse.png": _sparse(_PNG_HEAD, 200 << 20),
    "sparse.jpg": _sparse(b"\xff\xd8\xff", 200 << 20),
    "sparse.avif": _sparse(b"\0\0\0\x20ftypavif", 20 << 30),
    "sparse.heic": _sparse(b"\0\0\0\x20ftypheic", 20 << 30),
    "sparse-64-bit.tif": _sparse(_big_tiff(20 << 30), 20 << 30),
    "repeated-entries.tif": _sparse(_big_tiff(60 << 20), 60 << 20),
}
