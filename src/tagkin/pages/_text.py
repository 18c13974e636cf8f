"""Text on pictures: fonts that have the characters, names that fit."""

from __future__ import annotations

import contextlib
import functools
import re
import unicodedata
from bisect import bisect_right
from pathlib import PurePath

from PIL import ImageDraw, ImageFont

from tagkin.fonts import covered, fonts_for, open_font

__all__ = ["fitted", "length", "name_of", "printable", "runs", "write"]

Font = ImageFont.FreeTypeFont

_VARIANTS = dict.fromkeys(range(0xFE00, 0xFE10))  # which picture of a character; fonts have one


def printable(text: str) -> str:
    """The text with a mark in place of signs that have no shape: controls, halves of pairs."""
    odd = {"Cc", "Cs", "Cn"}
    return "".join("\ufffd" if unicodedata.category(sign) in odd else sign for sign in text)


def name_of(file: str, length: int = 26) -> str:
    """A photograph's file name without its folders, its middle left out where it is long."""
    name = printable(PurePath(file).name or file)
    if len(name) <= length:
        return name
    tail = (length - 1) // 2
    return f"{name[: length - 1 - tail]}…{name[-tail:]}"


def fitted(text: str, size: int, width: float) -> str:
    """The text, its end left out where it would be wider than `width` pixels."""
    text = _in_one_line(text)
    if length(text, size) <= width:
        return text
    # by halves: to measure every shorter text of one that is long would take seconds
    n_fitting = bisect_right(range(len(text)), width, key=lambda n: length(text[:n] + "…", size))
    return text[: max(n_fitting - 1, 0)].rstrip() + "…"


def length(text: str, size: int) -> float:
    """How many pixels wide a line is."""
    return sum(font.getlength(run) for font, run in runs(text, size))


def write(
    draw: ImageDraw.ImageDraw,
    at: tuple[float, float],
    text: str,
    size: int,
    colour: str,
    anchor: str = "la",
) -> None:
    """Write one line, every character in a font that has it.

    `anchor` says what lies at `at`, as Pillow has it: the left end, the middle or the right end
    (l, m, r), and the top of the line, the middle of the line or the top of its letters (a, m, t).
    """
    pieces = runs(_in_one_line(text), size)
    widths = [font.getlength(run) for font, run in pieces]
    ascent, descent = _font(None, size).getmetrics()
    highest = min((font.getbbox(run, anchor="ls")[1] for font, run in pieces), default=0)
    x = at[0] - {"l": 0, "m": 0.5, "r": 1}[anchor[0]] * sum(widths)
    # one base line, whatever the heights of the fonts
    y = at[1] + {"a": ascent, "m": (ascent - descent) / 2, "t": -highest}[anchor[1]]
    for (font, run), width in zip(pieces, widths, strict=True):
        draw.text((x, y), run, fill=colour, font=font, anchor="ls")
        x += width


def _in_one_line(text: str) -> str:
    """The text with letters and their marks as one character, which more fonts have."""
    return printable(unicodedata.normalize("NFC", text).replace("\n", " "))


# --- fonts -------------------------------------------------------------------------------


def runs(text: str, size: int) -> list[tuple[Font, str]]:
    """The text in pieces, each with a font that has its characters where one is installed.

    A word is in one font where one has all of it.
    """
    text = text.translate(_VARIANTS)
    paths = (None, *fonts_for(frozenset(char for char in text if not _has(None, char))))
    found: list[tuple[str | None, str]] = []
    for word in re.findall(r"\S+|\s+", text):
        whole = any(all(_has(path, char) for char in word) for path in paths)
        for piece in (word,) if whole else word:
            path = next((p for p in paths if all(_has(p, char) for char in piece)), None)
            if found and (found[-1][0] == path or _leans(piece[0])):
                found[-1] = found[-1][0], found[-1][1] + piece
            else:
                found.append((path, piece))
    return [(_font(path, size), run) for path, run in found]


def _leans(char: str) -> bool:
    """Whether it is drawn with what stands before it: marks on letters, joiners, spaces."""
    return unicodedata.category(char) in {"Mn", "Me", "Cf", "Zs"}


@functools.cache
def _has(path: str | None, char: str) -> bool:
    """Whether a font can draw a character."""
    return _leans(char) or bool(covered(path, char))


@functools.cache
def _font(path: str | None, size: int) -> Font:
    """An installed font, or the one that comes with Pillow, also in place of a broken one."""
    with contextlib.suppress(OSError):
        return open_font(path, size)
    return open_font(None, size)
