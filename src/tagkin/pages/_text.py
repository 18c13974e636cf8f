"""Text on pictures: fonts that have the signs, names that fit."""

from __future__ import annotations

import functools
import unicodedata
from pathlib import PurePath

from PIL import Image, ImageDraw, ImageFont

__all__ = ["fitted", "font_for", "name_of", "printable", "write"]

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

# Looked for by name, where the system keeps its fonts, for signs that Pillow's own has not.
_FALLBACKS = (
    "DejaVuSans.ttf",
    "NotoSans-Regular.ttf",
    "NotoSansCJK-Regular.ttc",
    "Arial Unicode.ttf",
    "arialuni.ttf",
    "msyh.ttc",
    "PingFang.ttc",
    "wqy-microhei.ttc",
    "unifont.ttf",
)


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


@functools.cache
def _fonts(size: int) -> tuple[Font, ...]:
    found: list[Font] = [ImageFont.load_default(size)]
    for name in _FALLBACKS:
        try:
            found.append(ImageFont.truetype(name, size))
        except OSError:
            continue
    return tuple(found)


@functools.cache
def _has(font: Font, sign: str) -> bool:
    """Whether a font has its own shape for a sign, not the box that stands for all it lacks."""
    if sign.isspace():
        return True
    return _drawn(font, sign) != _drawn(font, "\U0010fffd")


@functools.cache
def _drawn(font: Font, sign: str) -> bytes:
    image = Image.new("L", (64, 64))
    ImageDraw.Draw(image).text((8, 8), sign, fill=255, font=font)
    return image.tobytes()


def font_for(text: str, size: int) -> Font:
    """The first font that has most of the signs of a text."""
    fonts = _fonts(size)
    return max(fonts, key=lambda font: (sum(_has(font, s) for s in text), -fonts.index(font)))


def fitted(text: str, size: int, width: float) -> str:
    """The text, its end left out where it would be wider than `width` pixels."""
    text = printable(text).replace("\n", " ")
    font = font_for(text, size)
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "…") > width:
        text = text[:-1]
    return text.rstrip() + "…"


def write(
    draw: ImageDraw.ImageDraw,
    at: tuple[float, float],
    text: str,
    size: int,
    colour: str,
    anchor: str = "la",
) -> None:
    """Write one line in a font that has its signs."""
    text = printable(text).replace("\n", " ")
    draw.text(at, text, fill=colour, font=font_for(text, size), anchor=anchor)
