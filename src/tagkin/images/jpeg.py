"""Find the segments of a JPEG file without decoding pixels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

__all__ = ["MAX_HEADER", "MAX_SEGMENTS", "Scan", "first_scan", "segments"]

MAX_HEADER = 64 << 20  # bytes before the picture; usually far fewer
MAX_SEGMENTS = 1 << 14  # a colour profile has up to 255, a long XMP packet a thousand
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_SCAN, _END = 0xDA, 0xD9


class TooManySegments(ValueError):
    """The file has far more segments than any photograph."""


def segments(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """Yield the marker and length of each segment up to the first scan.

    The file is positioned at the content of the segment. After `MAX_SEGMENTS` segments this
    raises `TooManySegments`.
    """
    file.seek(2)
    for _ in range(MAX_SEGMENTS):
        if file.tell() >= MAX_HEADER or file.read(1) != b"\xff":
            return
        code = file.read(1)
        if code == b"\xff":  # markers may be padded
            file.seek(-1, 1)
            continue
        if not code or code[0] == _END:
            return
        marker = code[0]
        if marker == 0x01 or 0xD0 <= marker <= 0xD7:  # these have no content
            continue
        size = file.read(2)
        if len(size) < 2:
            return
        length = max(0, int.from_bytes(size, "big") - 2)
        after = file.tell() + length
        yield marker, length
        if marker == _SCAN:
            return
        file.seek(after)
    raise TooManySegments(f"more than {MAX_SEGMENTS:,} segments before its picture")


class Scan(NamedTuple):
    """The start and the encoding of the picture in a JPEG file."""

    start: int
    """0 if there is no valid start; decoders tolerate more."""
    huffman: bool
    """Whether it uses Huffman coding."""
    is_all: bool
    """Whether it is the only scan. With several scans, decoders keep all coefficients."""


def first_scan(file: BinaryIO) -> Scan:
    """Return the first scan of a JPEG file; may raise `TooManySegments`."""
    huffman, n_components, progressive = False, 0, False
    for marker, _ in segments(file):
        if marker in _FRAMES:
            huffman = huffman or marker <= 0xC2
            progressive = progressive or marker in (0xC2, 0xC6, 0xCA, 0xCE)
            frame = file.read(6)
            n_components = frame[5] if len(frame) == 6 else 0
        elif marker == _SCAN:
            start = file.tell()
            n_in_scan = (file.read(1) or b"\0")[0]
            return Scan(start, huffman, not progressive and n_in_scan >= n_components)
    return Scan(0, huffman, False)
