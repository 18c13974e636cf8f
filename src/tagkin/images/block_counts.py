"""Refuse files with far too many blocks, which waste time and memory."""

from __future__ import annotations

from tagkin.errors import UnreadableImage

__all__ = ["check_block_count"]

MAX_BLOCKS = 1 << 18  # in a file; the largest photographs have about ten thousand


def check_block_count(kind: str, data: bytes) -> None:
    """Raise `UnreadableImage` for a PNG or GIF file with `MAX_BLOCKS` or more blocks."""
    count = {"PNG": _count_png_chunks, "GIF": _count_gif_blocks}.get(kind)
    if count is not None and count(data) >= MAX_BLOCKS:
        raise UnreadableImage(f"it has more than {MAX_BLOCKS:,} blocks")


def _count_png_chunks(data: bytes) -> int:
    """Return the number of chunks, at most `MAX_BLOCKS`."""
    at = 8
    for n in range(MAX_BLOCKS):
        if at + 8 > len(data) or data[at + 4 : at + 8] == b"IEND":
            return n
        at += int.from_bytes(data[at : at + 4], "big") + 12
    return MAX_BLOCKS


def _count_gif_blocks(data: bytes) -> int:
    """Return the number of blocks and padding bytes before the first picture, up to the limit."""
    flags = data[10] if len(data) > 10 else 0
    at = 13 + (3 * (2 << (flags & 7)) if flags & 0x80 else 0)
    in_extension = False  # whose parts start with their size
    for n in range(MAX_BLOCKS):
        if at >= len(data) or (not in_extension and data[at] in b",;"):
            return n
        if in_extension:
            in_extension = data[at] > 0
            at += data[at] + 1
        elif data[at] == ord("!"):
            in_extension = True
            at += 2
        else:
            at += 1
    return MAX_BLOCKS
