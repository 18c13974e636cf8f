"""Draw a contact sheet: one photograph, its suggested tags, and their kin.

Pillow draws it, because it consists of photographs; templates draw charts.
"""

from __future__ import annotations

import os
from pathlib import Path

from PIL import Image, ImageDraw, ImageOps

from tagkin.annotator.suggestions import Kin, PhotoSuggestions, TagSuggestion
from tagkin.errors import InvalidInput
from tagkin.pages.page_files import write_image
from tagkin.pages.text import fit_text, name_of, write
from tagkin.pages.thumbnails import picture, square
from tagkin.wording import percent

__all__ = ["contact_sheet"]

PAPER, INK, SOFT, _TRACK, _ACCENT = "#ffffff", "#1d2330", "#626b7d", "#e6e9ef", "#2b5fb3"
_KIN, GAP, COLUMN = 6, 14, 210  # kin per row; space between them; width of tag and bar
MARGIN, _TAG_LINES = 32, 6
CAPTION = (
    "Kin are the most similar photographs with the tag; the percentage below each is its share of "
    "their support."
)


def contact_sheet(
    photo: PhotoSuggestions, path_png: str | os.PathLike[str], *, thumb: int = 160
) -> Path:
    """Draw a photograph's suggestions and their kin as a PNG file.

    The photograph is at the left with its tags. Every suggestion has a row with the tag, its
    confidence, and up to six of its kin, the most similar photographs with the tag, each with its
    share of the support of all kin.

    Parameters
    ----------
    photo : PhotoSuggestions
    path_png : path
        Written completely or not at all; an existing file is replaced.
    thumb : int
        Side of a kin's square in pixels; the photograph is three times larger.
    """
    if thumb < 40:
        raise InvalidInput(f"thumb must be at least 40 pixels; found {thumb}.")
    left = 3 * thumb
    row = thumb + 48
    n_kin = max((min(len(s.kin), _KIN) for s in photo.suggestions), default=0)
    columns = COLUMN + max(n_kin, 1) * (thumb + GAP)
    large = ImageOps.contain(Image.fromarray(picture(photo.file, left)), (left, left))
    tags = _lines_of_tags(photo.tags, left)
    height = max(large.height + 64 + 26 * len(tags), row * max(1, len(photo.suggestions)))
    caption = 40 if n_kin else 0
    size = (3 * MARGIN + left + columns, 2 * MARGIN + height + caption)
    sheet = Image.new("RGB", size, PAPER)
    draw = ImageDraw.Draw(sheet)
    sheet.paste(large, (MARGIN, MARGIN))
    below = MARGIN + large.height + 14
    write(draw, (MARGIN, below), fit_text(name_of(photo.file, 48), 18, left), 18, INK)
    for k, line in enumerate(tags):
        write(draw, (MARGIN, below + 32 + 26 * k), line, 16, SOFT)
    for k, suggestion in enumerate(photo.suggestions):
        _draw_row(sheet, draw, suggestion, 2 * MARGIN + left, MARGIN + k * row, thumb)
    if n_kin:
        write(
            draw,
            (MARGIN, size[1] - MARGIN),
            fit_text(CAPTION, 14, size[0] - 2 * MARGIN),
            14,
            SOFT,
            "lm",
        )
    if not photo.suggestions:
        write(draw, (2 * MARGIN + left, MARGIN), "No suggestion", 20, SOFT)
    return write_image(path_png, sheet)


def _lines_of_tags(tags: tuple[str, ...], width: int) -> list[str]:
    """Return the photograph's tags in lines that fit; count the tags that do not fit."""
    lines: list[str] = []
    for number, tag in enumerate(tags):
        longer = f"{lines[-1]}  ·  {tag}" if lines else tag
        if lines and fit_text(longer, 16, width) == longer:
            lines[-1] = longer
        elif len(lines) == _TAG_LINES:
            lines[-1] = fit_text(f"and {len(tags) - number} more: {lines[-1]}", 16, width)
            break
        else:
            lines.append(fit_text(tag, 16, width))
    return lines


def _draw_row(
    sheet: Image.Image,
    draw: ImageDraw.ImageDraw,
    suggestion: TagSuggestion,
    x: int,
    y: int,
    thumb: int,
) -> None:
    width = COLUMN - 34
    middle = y + thumb // 2
    write(draw, (x, middle - 34), fit_text(suggestion.tag, 24, width), 24, INK)
    _bar(draw, (x, middle + 6), width, 10, suggestion.confidence)
    write(draw, (x, middle + 26), f"{percent(suggestion.confidence)} confidence", 15, SOFT)
    if drawn := suggestion.kin[:_KIN]:
        support = f"these kin: {percent(sum(kin.share for kin in drawn))} of support"
        write(draw, (x, middle + 48), fit_text(support, 13, width), 13, SOFT)
    for k, kin in enumerate(suggestion.kin[:_KIN]):
        _draw_kin(sheet, draw, kin, x + COLUMN + k * (thumb + GAP), y, thumb)
    if not suggestion.kin:
        write(draw, (x + COLUMN, middle), "no kin shown", 15, SOFT, "lm")


def _draw_kin(
    sheet: Image.Image, draw: ImageDraw.ImageDraw, kin: Kin, x: int, y: int, thumb: int
) -> None:
    sheet.paste(Image.fromarray(square(kin.file, thumb)), (x, y))
    _bar(draw, (x, y + thumb + 3), thumb, 4, kin.share)
    write(draw, (x + thumb, y + thumb + 11), percent(kin.share), 13, INK, "ra")
    name = fit_text(name_of(kin.file, 22), 12, thumb - 44)
    write(draw, (x, y + thumb + 12), name, 12, SOFT)


def _bar(
    draw: ImageDraw.ImageDraw, at: tuple[int, int], width: int, height: int, share: float
) -> None:
    x, y = at
    filled = round(width * min(max(share, 0.0), 1.0))
    draw.rectangle([x, y, x + width - 1, y + height - 1], fill=_TRACK)
    if filled:
        draw.rectangle([x, y, x + filled - 1, y + height - 1], fill=_ACCENT)
