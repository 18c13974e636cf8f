"""Find installed fonts that have the characters of a text."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import unicodedata
import warnings
from collections.abc import Iterable
from pathlib import Path

from PIL import ImageFont
from platformdirs import site_data_dir, user_data_dir

from tagkin.errors import MissingExtra

__all__ = ["find_covered", "fonts_for", "installed", "open_font"]

_SUFFIXES = {".ttf", ".ttc", ".otf", ".otc"}
# Words in the names of fonts that are not plain and upright.
_LESS_PLAIN = re.compile(
    "black|bold|condensed|italic|lastresort|light|medium|mono|oblique|serif|thin"
)
_CJK = {"BOPOMOFO", "CJK", "HANGUL", "HIRAGANA", "IDEOGRAPHIC", "KATAKANA"}
_NO_CHARACTER = "\U0010fffd"  # for private use, so fonts draw the box for missing characters


@functools.cache
def fonts_for(characters: frozenset[str]) -> tuple[str, ...]:
    """Choose as few installed fonts as possible that have the characters between them.

    The font with most of the characters comes first. A warning names a font to install for
    characters that no font has.
    """
    missing, chosen = set(characters), []
    available = {path: find_covered(path, missing) for path in installed()} if missing else {}
    while best := max(available, key=lambda path: len(available[path] & missing), default=None):
        if not available[best] & missing:
            break
        missing -= available[best]
        chosen.append(best)
    for remedy in sorted({_remedy(char) for char in missing}):
        warnings.warn(f"Some characters are drawn as boxes: {remedy}", UserWarning, stacklevel=2)
    return tuple(chosen)


def _remedy(char: str) -> str:
    script = unicodedata.name(char, "").partition(" ")[0]
    if script in _CJK:
        which, such = "Chinese, Japanese and Korean", "Noto Sans CJK (fonts-noto-cjk"
    elif unicodedata.category(char) == "So":
        which, such = "emoji and symbols", "Symbola (fonts-symbola"
    else:
        which, such = f"letters such as {char}", "Noto Sans (fonts-noto-core"
    return f"no installed font has {which}. Install one, such as {such} on Debian and Ubuntu)."


def find_covered(path: str | None, characters: Iterable[str]) -> set[str]:
    """Return the characters that a font has, always including spaces.

    A file that is not a font, or has only bitmaps, covers nothing. None is Pillow's own font.
    """
    try:
        font = open_font(path, 16).font_variant(layout_engine=ImageFont.Layout.BASIC)
    except OSError:
        return set()
    box = bytes(font.getmask(_NO_CHARACTER))
    return {char for char in characters if char.isspace() or bytes(font.getmask(char)) != box}


def open_font(path: str | None, size: int) -> ImageFont.FreeTypeFont:
    """Open a font file, or the font that comes with Pillow if the path is None."""
    font = ImageFont.truetype(path, size) if path else ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise MissingExtra("Text on pictures needs a Pillow that is built with FreeType.")
    return font


@functools.cache
def installed() -> tuple[str, ...]:
    """List the font files of this machine, plain upright fonts first."""
    paths = (path for folder in _folders() for path in folder.rglob("*"))
    fonts = {str(path) for path in paths if path.suffix.lower() in _SUFFIXES}
    # Pillow's own font has ASCII only; matplotlib's has all of Europe
    if matplotlib := importlib.util.find_spec("matplotlib"):
        inside = (Path(p, "mpl-data") for p in matplotlib.submodule_search_locations or ())
        fonts |= {str(path) for part in inside for path in part.rglob("DejaVuSans.ttf")}
    return tuple(sorted(fonts, key=_preference))


def _preference(path: str) -> tuple[int, str, str]:
    name = os.path.basename(path).lower()
    return len(_LESS_PLAIN.findall(name)), name, path


def _folders() -> list[Path]:
    """List the font folders of Linux, macOS and Windows, for all users and for this user."""
    home, data = os.path.expanduser("~"), user_data_dir()
    return [
        *(Path(folder, "fonts") for folder in site_data_dir(multipath=True).split(os.pathsep)),
        Path(data, "fonts"),
        Path(data, "Microsoft", "Windows", "Fonts"),
        Path(home, ".fonts"),
        Path(home, "Library", "Fonts"),
        Path("/run/current-system/sw/share/X11/fonts"),
        Path("/Library/Fonts"),
        Path("/System/Library/Fonts"),
        Path(os.environ.get("WINDIR", "/Windows"), "Fonts"),
    ]
