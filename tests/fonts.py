"""A font for tests: filled squares for some characters, nothing for all others."""

from pathlib import Path

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

FAMILY = "Squares"


def write_font(path: Path, characters: str, family: str = FAMILY) -> Path:
    """A TrueType font that has these characters and no others."""
    pen = TTGlyphPen(None)
    pen.moveTo((100, 0))
    for corner in ((100, 800), (900, 800), (900, 0)):
        pen.lineTo(corner)
    pen.closePath()
    square, nothing = pen.glyph(), TTGlyphPen(None).glyph()
    font = FontBuilder(1000)
    font.setupGlyphOrder([".notdef", "square"])
    font.setupCharacterMap(dict.fromkeys(map(ord, characters), "square"))
    font.setupGlyf({".notdef": nothing, "square": square})
    font.setupHorizontalMetrics({".notdef": (1000, 0), "square": (1000, 100)})
    font.setupHorizontalHeader(ascent=900, descent=-100)
    font.setupNameTable({"familyName": family, "styleName": "Regular"})
    font.setupOS2()
    font.setupPost()
    path.parent.mkdir(parents=True, exist_ok=True)
    font.save(path)
    return path
