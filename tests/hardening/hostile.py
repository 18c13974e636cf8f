"""Files that ask for far more than they weigh. Each is a few kilobytes, or sparse."""

import struct
import zlib

from tests.images.synthetic import chunk

__all__ = [
    "bomb_png",
    "deep_tiff",
]


def deflated(n: int, byte: bytes = b"\0", head: bytes = b"") -> bytes:
    """A zlib stream of a head and so many equal bytes, made without having them all at once.

    One block of them is packed, so that it can stand after whatever comes before it, and repeated.
    """
    block = byte * (1 << 20)
    n_blocks, n_rest = divmod(n, len(block))
    check = zlib.adler32(head)
    for _ in range(n_blocks):
        check = zlib.adler32(block, check)
    check = zlib.adler32(block[:n_rest], check)
    repeated = _packed(block, zlib.Z_FULL_FLUSH) * n_blocks
    parts = [_packed(head, zlib.Z_FULL_FLUSH), repeated, _packed(block[:n_rest], zlib.Z_FINISH)]
    return b"\x78\xda" + b"".join(parts) + struct.pack(">I", check)


def _packed(data: bytes, end: int) -> bytes:
    """A part of a stream, without what stands before and after all of them."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush(end)


def png(width: int, height: int, bits: int, colour: int, pixels: bytes, *more: bytes) -> bytes:
    """A PNG file of packed pixels, with further chunks before them."""
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    chunks = [chunk(b"IHDR", header), *more, chunk(b"IDAT", pixels), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def bomb_png(width: int = 16_000, height: int = 16_000) -> bytes:
    """Grey with alpha: 256 megapixels in 500 KB."""
    row = 1 + 2 * width
    return png(width, height, 8, 4, deflated(row * height))


def small_bomb_png(width: int = 16_000, height: int = 16_000) -> bytes:
    """One bit a pixel: 256 megapixels in 31 KB."""
    row = 1 + -(-width // 8)
    return png(width, height, 1, 0, deflated(row * height))


def tiff(entries: dict[int, tuple[int, int, int]], tail: bytes = b"") -> bytes:
    """A TIFF file: entries by tag as (type, count, value), and what comes after its directory."""
    body = struct.pack("<H", len(entries))
    for tag, (kind, count, value) in sorted(entries.items()):
        body += struct.pack("<HHII", tag, kind, count, value)
    return b"II*\0" + struct.pack("<I", 8) + body + bytes(4) + tail


def deep_tiff(width: int = 13_000, height: int = 13_000, n_strips: int = 100) -> bytes:
    """Greys of 16 bits in strips of the same bytes: 169 megapixels, which are 338 MB, in 5 KB."""
    rows = -(-height // n_strips)
    strip = deflated(2 * width * rows)
    n_entries = 9
    lists = 8 + 2 + 12 * n_entries + 4  # where the strips' places and sizes are
    start = lists + 8 * n_strips
    entries = {
        256: (4, 1, width),
        257: (4, 1, rows * n_strips),
        258: (3, 1, 16),
        259: (3, 1, 8),
        262: (3, 1, 1),
        273: (4, n_strips, lists),
        277: (3, 1, 1),
        278: (4, 1, rows),
        279: (4, n_strips, lists + 4 * n_strips),
    }
    assert len(entries) == n_entries
    places = struct.pack("<I", start) * n_strips + struct.pack("<I", len(strip)) * n_strips
    return tiff(entries, places + strip)


def empty_segments(n: int) -> bytes:
    """A JPEG file of empty segments: four bytes each, and no picture among them."""
    return b"\xff\xd8" + b"\xff\xe2\0\2" * n + b"\xff\xd9"
