"""Files shredded into blocks: each takes a decoder time and memory, and need hold nothing."""

from __future__ import annotations

from tagkin.errors import UnreadableImage

__all__ = ["refuse_shredded"]

MAX_BLOCKS = 1 << 18  # of a file; the largest photographs are in some ten thousand


def refuse_shredded(found: str, data: bytes) -> None:
    """Refuse a PNG or GIF file of far more blocks than anybody writes.

    Raises
    ------
    UnreadableImage
    """
    count = {"PNG": _png_chunks, "GIF": _gif_blocks}.get(found)
    if count is not None and count(data) >= MAX_BLOCKS:
        raise UnreadableImage(f"shredded into more than {MAX_BLOCKS:,} blocks")


def _png_chunks(data: bytes) -> int:
    """How many chunks there are, up to the limit."""
    at = 8
    for n in range(MAX_BLOCKS):
        if at + 8 > len(data) or data[at + 4 : at + 8] == b"IEND":
            return n
        at += int.from_bytes(data[at : at + 4], "big") + 12
    return MAX_BLOCKS


def _gif_blocks(data: bytes) -> int:
    """How many blocks stand before the first picture, up to the limit; padding counts as well."""
    flags = data[10] if len(data) > 10 else 0
    at = 13 + (3 * (2 << (flags & 7)) if flags & 0x80 else 0)
    inside = False  # of an extension, whose parts have their size before them
    for n in range(MAX_BLOCKS):
        if at >= len(data) or (not inside and data[at] in b",;"):
            return n
        if inside:
            inside = data[at] > 0
            at += data[at] + 1
        elif data[at] == ord("!"):
            inside = True
            at += 2
        else:
            at += 1
    return MAX_BLOCKS
