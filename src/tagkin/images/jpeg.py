"""The segments of a JPEG file, found without decoding any pixel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

__all__ = ["MAX_HEADER", "scan_start", "segments"]

MAX_HEADER = 64 << 20  # what stands before the picture is far smaller


def segments(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """Marker and length of each segment up to the first scan, with the file at its content."""
    file.seek(2)
    while file.tell() < MAX_HEADER and file.read(1) == b"\xff":
        while (code := file.read(1)) == b"\xff":  # markers may be padded
            pass
        if not code or code == b"\xd9":
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
        if marker == 0xDA:
            return
        file.seek(after)


def scan_start(file: BinaryIO) -> tuple[int, bool]:
    """Where the picture itself starts in a JPEG file, and whether it is in Huffman's code.

    The start is 0 if it is not found: decoders forgive more than is forgiven here.
    """
    huffman = False
    for marker, _ in segments(file):
        huffman = huffman or 0xC0 <= marker <= 0xC2
        if marker == 0xDA:
            return file.tell(), huffman
    return 0, huffman
