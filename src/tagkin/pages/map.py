"""Draw a map of a collection, with every photograph as a dot near similar photographs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from tagkin.arrays import Array, to_numpy
from tagkin.errors import InvalidInput
from tagkin.labels import normalize_tag
from tagkin.pages.layout import lay_out
from tagkin.pages.page_files import write_image
from tagkin.pages.text import fit_text, length, write
from tagkin.pages.thumbnails import picture

__all__ = ["COLOURS", "choose_tags", "draw_map", "lay_out", "most_frequent"]

COLOURS = (
    "#4477aa",
    "#ee6677",
    "#228833",
    "#e0b400",
    "#44b5d6",
    "#aa3377",
    "#ee7733",
    "#6a51c8",
    "#009988",
)
"""Colours of the highlighted tags, in order; colour-blind people can distinguish most of them."""

_PAPER, _PANEL, _INK, _SOFT, _REST = "#ffffff", "#f6f7f9", "#1d2330", "#626b7d", "#c3c8d1"
SIDE, MARGIN, TITLE, _INSET = 1280, 48, 76, 70  # pixels; the inset keeps dots off the edge
_FINER = 3  # dots are drawn larger, then reduced, for smooth edges
_THUMB, _BETWEEN = 80, 6  # side of a thumbnail, and space between two of them


def draw_map(
    layouts: Mapping[str, Array],
    files: Sequence[str],
    tags: Sequence[Sequence[str]],
    path_png: str | os.PathLike[str],
    *,
    n_thumbnails: int = 60,
) -> Path:
    """Draw one or more layouts of the same photographs side by side, as a PNG file.

    Parameters
    ----------
    layouts : mapping of a title to an array of shape (n, 2)
        Such as "In visual feature space" and "In the semantic space", each made by `lay_out`.
    files : sequence of n str
    tags : sequence of n sequences of str
        The nine most frequent tags are coloured. A photograph gets the colour of the rarest of
        its coloured tags; without one it is grey.
    path_png : path
        Written completely or not at all; an existing file is replaced.
    n_thumbnails : int
        Photographs to show at their positions in each layout; fewer if they would overlap.
    """
    positions = {title: _check_layout(at, len(files), title) for title, at in layouts.items()}
    if not positions or len(tags) != len(files):
        raise InvalidInput(
            f"Found {len(positions)} layouts, {len(files)} files and {len(tags)} lists of tags; "
            "expected at least one layout, and a list of tags for every file."
        )
    shown = most_frequent(tags, len(COLOURS))
    colours = colour_dots(tags, shown)
    width = MARGIN + (SIDE + MARGIN) * len(positions)
    legend, rows = _legend_rows(shown, width - 2 * MARGIN)
    height = MARGIN + TITLE + SIDE + 40 + 44 * rows + MARGIN // 2
    image = Image.new("RGB", (width, height), _PAPER)
    draw = ImageDraw.Draw(image)
    for k, (title, at) in enumerate(positions.items()):
        left = MARGIN + k * (SIDE + MARGIN)
        write(draw, (left, MARGIN), fit_text(title, 36, SIDE), 36, _INK)
        panel = _draw_dots(to_pixels(at), colours)
        place_thumbnails(panel, to_pixels(at), files, colours, n_thumbnails)
        image.paste(panel, (left, MARGIN + TITLE))
    for name, colour, x, row in legend:
        y = MARGIN + TITLE + SIDE + 56 + 44 * row
        draw.ellipse([MARGIN + x, y - 9, MARGIN + x + 18, y + 9], fill=colour)
        write(draw, (MARGIN + x + 30, y), name, 24, _SOFT, "lm")
    return write_image(path_png, image)


def most_frequent(tags: Sequence[Sequence[str]], n: int) -> list[str]:
    """Return the n most frequent tags, most frequent first, alphabetical in a tie.

    Spellings that differ only in case are the same tag, shown in its most frequent spelling.
    """
    spellings: dict[str, Counter[str]] = {}
    counts: Counter[str] = Counter()
    for row in tags:
        counts.update({normalize_tag(tag) for tag in row})
        for tag in row:
            spellings.setdefault(normalize_tag(tag), Counter())[tag] += 1
    frequent = sorted(counts, key=lambda tag: (-counts[tag], tag))[:n]
    return [spellings[tag].most_common(1)[0][0] for tag in frequent]


def _check_layout(at: Array, n: int, title: str) -> np.ndarray:
    positions = to_numpy(at).astype(np.float64)
    if positions.shape != (n, 2) or not np.isfinite(positions).all():
        raise InvalidInput(
            f"The layout {title!r} has the shape {positions.shape}; expected finite numbers of the "
            f"shape ({n}, 2), one position per file."
        )
    return positions


def choose_tags(tags: Sequence[Sequence[str]], shown: Sequence[str]) -> list[int]:
    """Return the position of each photograph's rarest tag among the shown tags, or −1."""
    rows = [{normalize_tag(tag) for tag in row} for row in tags]
    counts = Counter(tag for row in rows for tag in row)
    names = [normalize_tag(tag) for tag in shown]
    own = [[k for k, name in enumerate(names) if name in row] for row in rows]
    return [min(row, key=lambda k: counts[names[k]]) if row else -1 for row in own]


def colour_dots(tags: Sequence[Sequence[str]], shown: Sequence[str]) -> list[str]:
    """Return the colour of each photograph."""
    return [(*COLOURS, _REST)[k] for k in choose_tags(tags, shown)]


def to_pixels(at: np.ndarray) -> np.ndarray:
    """Scale positions to fill a panel, because the axes of t-SNE have no natural scale."""
    if not len(at):
        return at
    low, high = at.min(axis=0), at.max(axis=0)
    scale = (SIDE - 2 * _INSET) / np.maximum(high - low, 1e-12)
    return (at - (low + high) / 2) * scale + SIDE / 2


def _draw_dots(at: np.ndarray, colours: Sequence[str]) -> Image.Image:
    panel = Image.new("RGB", (SIDE * _FINER, SIDE * _FINER), _PANEL)
    draw = ImageDraw.Draw(panel)
    r = _FINER * float(np.clip(220 / max(len(at), 1) ** 0.5, 2.5, 9))
    # grey dots first, so they do not hide coloured dots
    for coloured in (False, True):
        for (x, y), colour in zip(at * _FINER, colours, strict=True):
            if (colour != _REST) == coloured:
                draw.ellipse([x - r, y - r, x + r, y + r], colour, _PANEL, _FINER)
    return panel.reduce(_FINER)


def place_thumbnails(
    panel: Image.Image, at: np.ndarray, files: Sequence[str], colours: Sequence[str], n: int
) -> list[tuple[int, int]]:
    """Draw thumbnails at their positions, spread out and without overlap.

    Return the left top corners of squares that hold them.
    """
    corners: list[tuple[int, int]] = []
    draw = ImageDraw.Draw(panel)
    for photo in spread_out(at, most=4 * n):
        if len(corners) >= n:
            break
        x, y = _corner(at[photo], (_THUMB, _THUMB))
        if any(max(abs(x - u), abs(y - v)) < _THUMB + _BETWEEN for u, v in corners):
            continue
        small = Image.fromarray(picture(files[photo], _THUMB))
        small.thumbnail((_THUMB, _THUMB))
        left, top = _corner(at[photo], small.size)
        frame = [left - 3, top - 3, left + small.width + 2, top + small.height + 2]
        draw.rectangle(frame, colours[photo])
        panel.paste(small, (left, top))
        corners.append((x, y))
    return corners


def _corner(middle: np.ndarray, size: tuple[int, int]) -> tuple[int, int]:
    """Return the left top corner of a picture, within the panel."""
    left, top = np.clip(np.round(middle - np.array(size) / 2), 6, SIDE - np.array(size) - 6)
    return int(left), int(top)


def spread_out(at: np.ndarray, most: int) -> list[int]:
    """Order photographs so each is farthest from all earlier photographs."""
    if not len(at):
        return []
    order = [int(np.argmin(((at - at.mean(axis=0)) ** 2).sum(axis=1)))]
    distance = np.full(len(at), np.inf)
    while len(order) < min(most, len(at)):
        distance = np.minimum(distance, ((at - at[order[-1]]) ** 2).sum(axis=1))
        order.append(int(np.argmax(distance)))
    return order


def _legend_rows(shown: Sequence[str], width: int) -> tuple[list[tuple[str, str, float, int]], int]:
    """Return name, colour, position and row of each legend entry, and the number of rows."""
    entries: list[tuple[str, str, float, int]] = []
    x, row = 0.0, 0
    for tag, colour in [*zip(shown, COLOURS, strict=False), ("other tags, or none", _REST)]:
        name = fit_text(tag, 24, 320)
        needed = 30 + length(name, 24) + 44
        if x and x + needed > width:
            x, row = 0.0, row + 1
        entries.append((name, colour, x, row))
        x += needed
    return entries, row + 1
