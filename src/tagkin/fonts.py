"""Fonts of this machine that have given characters, for pictures with text on them."""

from __future__ import annotations

import functools
import importlib.util
import os
import struct
import unicodedata
import warnings
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

__all__ = ["choose", "fonts_for", "forget_fonts", "has_glyph", "installed"]

_SUFFIXES = {".ttf", ".ttc", ".otf", ".otc"}
# Words in the names of fonts that are not the plain upright one.
_LESS_PLAIN = (
    "black",
    "bold",
    "condensed",
    "italic",
    "lastresort",
    "light",
    "medium",
    "mono",
    "oblique",
    "serif",
    "thin",
)
_FOLDERS = (
    "/run/current-system/sw/share/X11/fonts",
    "/Library/Fonts",
    "/System/Library/Fonts",
)
_CJK = {"BOPOMOFO", "CJK", "HANGUL", "HIRAGANA", "IDEOGRAPHIC", "KATAKANA"}
_OUTLINES, _BITMAPS = {b"glyf", b"CFF ", b"CFF2"}, {b"CBDT", b"sbix"}


def fonts_for(characters: Iterable[str]) -> tuple[str, ...]:
    """Installed fonts that have the characters between them, as few as possible.

    For characters that no font has, a warning names a font to install, once.

    Parameters
    ----------
    characters : iterable of str
        Those that the font at hand lacks.

    Returns
    -------
    paths : tuple of str
        The font with most of them first.
    """
    return _fonts_for(frozenset(characters))


@functools.cache
def _fonts_for(characters: frozenset[str]) -> tuple[str, ...]:
    if not characters:
        return ()
    chosen = choose(characters, installed())
    for char in sorted(characters):
        if not any(has_glyph(path, char) for path in chosen):
            _say_missing(_remedy(char))
    return tuple(chosen)


def choose(characters: Iterable[str], paths: Sequence[str]) -> list[str]:
    """Of these fonts, the one that has most of the characters, then one for the rest, and so on."""
    missing, chosen = set(characters), []
    while missing and paths:
        best = max(paths, key=lambda path: sum(has_glyph(path, char) for char in missing))
        found = {char for char in missing if has_glyph(best, char)}
        if not found:
            break
        missing -= found
        chosen.append(best)
    return chosen


@functools.cache
def _say_missing(remedy: str) -> None:
    warnings.warn(f"Some characters are drawn as boxes: {remedy}", UserWarning, stacklevel=5)


def _remedy(char: str) -> str:
    script = unicodedata.name(char, "").partition(" ")[0]
    if script in _CJK:
        which, such = "Chinese, Japanese and Korean", "Noto Sans CJK (fonts-noto-cjk"
    elif unicodedata.category(char) == "So":
        which, such = "emoji and symbols", "Symbola (fonts-symbola"
    else:
        which, such = f"letters such as {char}", "Noto Sans (fonts-noto-core"
    return f"no installed font has {which}. Install one, such as {such} on Debian and Ubuntu)."


def forget_fonts() -> None:
    """Read fonts anew when they are next needed: some were installed, replaced or removed."""
    for cached in (installed, _fonts_for, _say_missing, _character_map):
        # a name that stands for something else for a while has nothing to forget
        getattr(cached, "cache_clear", lambda: None)()


# --- what is installed -------------------------------------------------------------------


@functools.cache
def installed() -> tuple[str, ...]:
    """Font files of this machine, the plain upright ones first."""
    found = {str(path) for folder in _folders() for path in _files(folder)}
    # Pillow's own font has ASCII only: where nothing is installed, matplotlib's has all of Europe
    if matplotlib := importlib.util.find_spec("matplotlib"):
        inside = (Path(p, "mpl-data") for p in matplotlib.submodule_search_locations or ())
        found |= {str(path) for part in inside for path in part.rglob("DejaVuSans.ttf")}
    return tuple(sorted(found, key=_preference))


def _preference(path: str) -> tuple[int, str, str]:
    name = os.path.basename(path).lower()
    return sum(word in name for word in _LESS_PLAIN), name, path


def _files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in names if Path(name).suffix.lower() in _SUFFIXES)


def _folders() -> list[Path]:
    """Where Linux, macOS and Windows keep fonts, for everyone and for one person."""
    home = Path(os.path.expanduser("~"))
    shared = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    folders = [
        Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share", "fonts"),
        home / ".fonts",
        *(Path(folder, "fonts") for folder in shared.split(os.pathsep)),
        home / "Library/Fonts",
        *map(Path, _FOLDERS),
    ]
    if "LOCALAPPDATA" in os.environ:
        folders.append(Path(os.environ["LOCALAPPDATA"], "Microsoft", "Windows", "Fonts"))
    if "WINDIR" in os.environ:
        folders.append(Path(os.environ["WINDIR"], "Fonts"))
    return folders


# --- what a font has ---------------------------------------------------------------------


def has_glyph(path: str, char: str) -> bool:
    """Whether a font draws a character; of a collection of fonts, whether its first one does."""
    table = _character_map(path)
    if not table:
        return False
    lookup = _in_groups if struct.unpack_from(">H", table)[0] == 12 else _in_segments
    try:
        return lookup(table, ord(char))
    except struct.error:  # a table that ends too early
        return False


@functools.cache
def _character_map(path: str) -> bytes:
    """The part of a font file that maps characters to shapes; empty where there is none."""
    try:
        with open(path, "rb") as file:
            start = 0
            if file.read(4) == b"ttcf":
                file.seek(12)
                (start,) = struct.unpack(">I", file.read(4))
            file.seek(start + 4)
            (n_tables,) = struct.unpack(">H", file.read(2))
            file.seek(start + 12)
            tables = {}
            for _ in range(n_tables):
                tag, _, offset, length = struct.unpack(">4sIII", file.read(16))
                tables[tag] = offset, length
            # pictures of fixed sizes, such as colour emoji, cannot be drawn at others
            if not _OUTLINES & set(tables) or _BITMAPS & set(tables) or b"cmap" not in tables:
                return b""
            file.seek(tables[b"cmap"][0])
            return _unicode_part(file.read(tables[b"cmap"][1]))
    except (OSError, struct.error):
        return b""


def _unicode_part(table: bytes) -> bytes:
    """Of the maps of a font, one from Unicode: all of it, or its first 65,536 characters."""
    (n_maps,) = struct.unpack_from(">H", table, 2)
    found = {}
    for k in range(n_maps):
        platform, encoding, offset = struct.unpack_from(">HHI", table, 4 + 8 * k)
        (form,) = struct.unpack_from(">H", table, offset)
        if form in {4, 12} and (platform == 0 or (platform == 3 and encoding in {1, 10})):
            found[form] = table[offset:]
    return found.get(12) or found.get(4) or b""


def _in_groups(table: bytes, code: int) -> bool:
    """Of format 12: groups of three 32-bit numbers, first and last character, first shape."""
    (n,) = struct.unpack_from(">I", table, 12)
    k = bisect_left(range(n), code, key=lambda k: struct.unpack_from(">I", table, 20 + 12 * k)[0])
    if k == n:
        return False
    first, _, shape = struct.unpack_from(">III", table, 16 + 12 * k)
    return bool(first <= code and shape + code - first)


def _in_segments(table: bytes, code: int) -> bool:
    """Of format 4: ends, starts, shifts and offsets of segments, 16-bit numbers in four rows."""
    if code > 0xFFFF:
        return False
    n = struct.unpack_from(">H", table, 6)[0] // 2
    k = bisect_left(range(n), code, key=lambda k: struct.unpack_from(">H", table, 14 + 2 * k)[0])
    if k == n:
        return False
    starts, shifts, offsets = (16 + 2 * n * row + 2 * k for row in (1, 2, 3))
    (start,) = struct.unpack_from(">H", table, starts)
    if code < start:
        return False
    (shift,) = struct.unpack_from(">H", table, shifts)
    (offset,) = struct.unpack_from(">H", table, offsets)
    if not offset:
        return bool((code + shift) & 0xFFFF)
    # counted from where the offset itself stands
    (shape,) = struct.unpack_from(">H", table, offsets + offset + 2 * (code - start))
    return bool(shape and (shape + shift) & 0xFFFF)
