"""Draw a map of a collection, with every photograph as a dot near similar photographs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from tagkin.arrays import Array, to_numpy
from tagkin.errors import InvalidInput
from tagkin.labels import normalize_tag
from tagkin.pages.files import write_image
from tagkin.pages.layout import lay_out
from tagkin.pages.text import fit_text, length, write
from tagkin.pages.thumbnails import picture

__all__ = ["COLOURS", "draw_map", "lay_out", "most_frequent"]

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
    "#8c5a3c",
)
"""Colours of the highlighted tags, in order; colour-blind people can distinguish most of them."""

_PAPER, _PANEL, _INK, _SOFT, _REST = "#ffffff", "#f6f7f9", "#1d2330", "#626b7d", "#c3c8d1"
SIDE, MARGIN, TITLE, _INSET = 1280, 48, 76, 70  # pixels; the inset keeps dots off the edge
_FINER = 3  # dots are drawn larger, then reduced, for smooth edges
_THUMB = 80


class _Box(NamedTuple):
    left: int
    top: int
    right: int
    bottom: int

    def meets(self, other: _Box, gap: int = 6) -> bool:
        return (
            self.left < other.right + gap
            and other.left < self.right + gap
            and self.top < other.bottom + gap
            and other.top < self.bottom + gap
        )


def draw_map(
    layouts: Mapping[str, Array],
    files: Sequence[str],
    tags: Sequence[Sequence[str]],
    path_png: str | os.PathLike[str],
    *,
    colours_of: Sequence[str] | None = None,
    n_thumbnails: int = 60,
) -> Path:
    """Draw one or more layouts of the same photographs side by side, as a PNG file.

    Parameters
    ----------
    layouts : mapping of a title to an array of shape (n, 2)
        Such as "In visual feature space" and "In the semantic space", each made by `lay_out`.
    files : sequence of n str
    tags : sequence of n sequences of str
        A photograph gets the colour of its rarest coloured tag; without a coloured tag it is grey.
    path_png : path
        Written completely or not at all; an existing file is replaced.
    colours_of : sequence of str, optional
        Up to ten tags to show in colour; by default the nine most frequent tags.
    n_thumbnails : int
        Photographs to show at their positions in each layout; fewer if they would overlap.

    Returns
    -------
    path : Path
    """
    positions = {title: _check_layout(at, len(files), title) for title, at in layouts.items()}
    if not positions or len(tags) != len(files):
        raise InvalidInput(
            f"Found {len(positions)} layouts, {len(files)} files and {len(tags)} lists of tags; "
            "expected at least one layout, and a list of tags for every file."
        )
    shown = list(most_frequent(tags, 9) if colours_of is None else colours_of)
    if len(shown) > len(COLOURS):
        raise InvalidInput(f"Choose at most {len(COLOURS)} tags to colour; found {len(shown)}.")
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


def colour_dots(tags: Sequence[Sequence[str]], shown: Sequence[str]) -> list[str]:
    rows = [{normalize_tag(tag) for tag in row} for row in tags]
    counts = Counter(tag for row in rows for tag in row)
    colour = dict(zip(map(normalize_tag, shown), COLOURS, strict=False))
    own = [[tag for tag in colour if tag in row] for row in rows]
    return [colour[min(row, key=lambda t: counts[t])] if row else _REST for row in own]


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
) -> list[_Box]:
    """Draw thumbnails at their positions, spread out and without overlap; return their boxes."""
    boxes: list[_Box] = []
    draw = ImageDraw.Draw(panel)
    for photo in spread_out(at, most=4 * n):
        if len(boxes) >= n:
            break
        largest = _box_at(at[photo], _THUMB, _THUMB)
        if any(largest.meets(other) for other in boxes):
            continue
        small = Image.fromarray(picture(files[photo], _THUMB))
        small.thumbnail((_THUMB, _THUMB))
        box = _box_at(at[photo], *small.size)
        draw.rectangle([box.left - 3, box.top - 3, box.right + 2, box.bottom + 2], colours[photo])
        panel.paste(small, (box.left, box.top))
        boxes.append(largest)
    return boxes


def _box_at(middle: np.ndarray, width: int, height: int) -> _Box:
    left = int(np.clip(round(float(middle[0]) - width / 2), 6, SIDE - width - 6))
    top = int(np.clip(round(float(middle[1]) - height / 2), 6, SIDE - height - 6))
    return _Box(left, top, left + width, top + height)


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
