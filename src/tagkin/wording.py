"""Numbers as people read them in sentences."""

from __future__ import annotations

__all__ = ["count", "denoising_text", "shares_text"]


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


def shares_text(name_share: float | None, readout_share: float | None) -> str:
    """How much kin, the photograph itself and the tag's name have to do with a suggestion.

    Empty where nobody noted it.

    >>> shares_text(0.0, 0.25)
    '75 % by its kin, 25 % by what the photograph itself shows'
    >>> shares_text(1.0, 0.0)
    '100 % by what the name of the tag means'
    """
    if name_share is None or readout_share is None:
        return ""
    parts = [
        (1 - name_share - readout_share, "by its kin"),
        (readout_share, "by what the photograph itself shows"),
        (name_share, "by what the name of the tag means"),
    ]
    return ", ".join(f"{100 * share:.0f} % {what}" for share, what in parts if share >= 0.005)
