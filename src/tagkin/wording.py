"""Numbers as people read them in sentences."""

from __future__ import annotations

__all__ = ["count", "denoising_text"]


def count(n: int, one: str, several: str | None = None) -> str:
    """A number with its word; several are the word with an s unless they are given.

    >>> count(1, "tag"), count(1200, "tag"), count(0, "copy", "copies")
    ('1 tag', '1,200 tags', '0 copies')
    """
    return f"{n:,} {one if n == 1 else several or one + 's'}"


def denoising_text(blend: float) -> str:
    """How much tags are denoised for the space, in plain words."""
    if not blend:
        return "no, the tags are taken as they are"
    much = "all" if blend == 1 else f"{100 * blend:.0f} %"
    return f"{much} of the weight of tags comes from photographs that look alike"
