"""Write text on pictures: choose fonts and shorten text to fit."""

from __future__ import annotations

import contextlib
import functools
import re
import unicodedata
from bisect import bisect_right
from pathlib import PurePath

from PIL import ImageDraw, ImageFont

from tagkin.fonts import find_covered, fonts_for, open_font

__all__ = ["fit_text", "length", "name_of", "printable", "runs", "write"]

Font = ImageFont.FreeTypeFont

_VARIANTS = dict.fromkeys(range(0xFE00, 0xFE10))  # variation selectors; fonts have one form only


def printable(text: str) -> str:
    """Replace characters without a shape, controls and lone surrogates, with a mark."""
    odd = {"Cc", "Cs", "Cn"}
    return "".join("\ufffd" if unicodedata.category(sign) in odd else sign for sign in text)


def name_of(file: str, length: int = 26) -> str:
    """Return a file name without its folders; a long name loses its middle."""
    name = printable(PurePath(file).name or file)
    if len(name) <= length:
        return name
    tail = (length - 1) // 2
    return f"{name[: length - 1 - tail]}…{name[-tail:]}"


def fit_text(text: str, size: int, width: float) -> str:
    """Return the text, cut at the end if it is wider than `width` pixels."""
    text = _to_one_line(text)
    if length(text, size) <= width:
        return text
    # bisection, because measuring every prefix of a long text would take seconds
    n_fitting = bisect_right(range(len(text)), width, key=lambda n: length(text[:n] + "…", size))
    return text[: max(n_fitting - 1, 0)].rstrip() + "…"


def length(text: str, size: int) -> float:
    """Return the width of a line in pixels."""
    return sum(font.getlength(run) for font, run in runs(text, size))


def write(
    draw: ImageDraw.ImageDraw,
    at: tuple[float, float],
    text: str,
    size: int,
    colour: str,
    anchor: str = "la",
) -> None:
    """Write one line, with a suitable font for every character.

    `anchor` is the point of the text at `at`, as in Pillow: the left end, the middle or the right
    end (l, m, r), and the top of the line, its middle or the top of its letters (a, m, t).
    """
    pieces = runs(_to_one_line(text), size)
    widths = [font.getlength(run) for font, run in pieces]
    ascent, descent = _font(None, size).getmetrics()
    highest = min((font.getbbox(run, anchor="ls")[1] for font, run in pieces), default=0)
    x = at[0] - {"l": 0, "m": 0.5, "r": 1}[anchor[0]] * sum(widths)
    # a common baseline for fonts of different heights
    y = at[1] + {"a": ascent, "m": (ascent - descent) / 2, "t": -highest}[anchor[1]]
    for (font, run), width in zip(pieces, widths, strict=True):
        draw.text((x, y), run, fill=colour, font=font, anchor="ls")
        x += width


def _to_one_line(text: str) -> str:
    """Return the text in one line, with composed characters, which more fonts have."""
    return printable(unicodedata.normalize("NFC", text).replace("\n", " "))


# --- fonts -------------------------------------------------------------------------------


def runs(text: str, size: int) -> list[tuple[Font, str]]:
    """Split the text into pieces, each with an installed font that has its characters.

    A word uses a single font if one has all its characters.
    """
    text = text.translate(_VARIANTS)
    paths = (None, *fonts_for(frozenset(char for char in text if not _has(None, char))))
    pieces: list[tuple[str | None, str]] = []
    for word in re.findall(r"\S+|\s+", text):
        whole = any(all(_has(path, char) for char in word) for path in paths)
        for piece in (word,) if whole else word:
            path = next((p for p in paths if all(_has(p, char) for char in piece)), None)
            if pieces and (pieces[-1][0] == path or _attaches(piece[0])):
                pieces[-1] = pieces[-1][0], pieces[-1][1] + piece
            else:
                pieces.append((path, piece))
    return [(_font(path, size), run) for path, run in pieces]


def _attaches(char: str) -> bool:
    """Whether a character joins the preceding one: a combining mark, a joiner or a space."""
    return unicodedata.category(char) in {"Mn", "Me", "Cf", "Zs"}


@functools.cache
def _has(path: str | None, char: str) -> bool:
    """Whether a font can draw a character."""
    return _attaches(char) or bool(find_covered(path, char))


@functools.cache
def _font(path: str | None, size: int) -> Font:
    """Open an installed font, or Pillow's font if it is missing or broken."""
    with contextlib.suppress(OSError):
        return open_font(path, size)
    return open_font(None, size)
