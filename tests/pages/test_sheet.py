"""Contact sheets."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from tagkin.annotator.suggestions import Kin, PhotoSuggestions, TagSuggestion
from tagkin.errors import InvalidInput, StorageError
from tagkin.pages import contact_sheet

# private: the geometry of the picture, without which nobody knows where on it to look
from tagkin.pages.sheet import CAPTION, COLUMN, GAP, INK, MARGIN, PAPER, SOFT
from tagkin.pages.text import fit_text, write

ACCENT = (0x2B, 0x5F, 0xB3)


def drawn(photo, path, **options):
    with Image.open(contact_sheet(photo, path, **options)) as image:
        assert image.format == "PNG"
        return np.asarray(image.convert("RGB"))


def lengths_of_bars(sheet):
    """Runs of the accent colour, by the place of their upper left corner."""
    accent = (sheet == ACCENT).all(axis=2)
    starts = accent & ~np.roll(accent, 1, axis=0) & ~np.roll(accent, 1, axis=1)
    return [int(np.argmin(np.append(accent[y, x:], False))) for y, x in np.argwhere(starts)]


def says(sheet, at, text, size, colour, anchor="la"):
    """Whether a text stands at a place of the sheet, pixel by pixel."""
    alone = Image.new("RGB", (sheet.shape[1], sheet.shape[0]), PAPER)
    write(ImageDraw.Draw(alone), at, text, size, colour, anchor)
    ink = (np.asarray(alone) != 255).any(axis=2)
    assert ink.any()
    return (np.asarray(alone)[ink] == sheet[ink]).all()


def is_photograph(pixels, file):
    with Image.open(file) as image:
        return np.abs(pixels.astype(int) - image.getpixel((5, 5))).max() <= 3


def kin_square(sheet, row, k, thumb=80):
    """The pixels where the kth kin of a row is to be seen."""
    x = 2 * MARGIN + 3 * thumb + COLUMN + k * (thumb + GAP)
    y = MARGIN + row * (thumb + 48)
    return sheet[y : y + thumb, x : x + thumb]


def test_every_suggestion_has_a_row_and_every_kin_a_square(photo, files, tmp_path):
    sheet = drawn(photo, tmp_path / "sheet.png", thumb=80)
    assert is_photograph(sheet[MARGIN : MARGIN + 200, MARGIN : MARGIN + 160], files[0])
    for row, suggestion in enumerate(photo.suggestions):
        x, middle = 2 * MARGIN + 240, MARGIN + row * 128 + 40
        assert says(sheet, (x, middle - 34), suggestion.tag, 24, INK)
        sure = f"{100 * suggestion.confidence:.0f} % confidence"
        assert says(sheet, (x, middle + 26), sure, 15, SOFT)
        for k, kin in enumerate(suggestion.kin):
            assert is_photograph(kin_square(sheet, row, k), kin.file)
    assert (kin_square(sheet, 1, 1) == 255).all(), "the second suggestion has one kin"


def test_the_sheet_says_what_kin_are(photo, tmp_path):
    sheet = drawn(photo, tmp_path / "sheet.png", thumb=160)
    height, width = sheet.shape[:2]
    said = fit_text(CAPTION, 14, width - 2 * MARGIN)
    assert said == CAPTION
    assert says(sheet, (MARGIN, height - MARGIN), said, 14, SOFT, "lm")


def test_bars_are_as_long_as_they_say(photo, tmp_path):
    sheet = drawn(photo, tmp_path / "sheet.png", thumb=80)
    # confidence .9 and .5 of 176 pixels; shares of 80 pixels
    assert sorted(lengths_of_bars(sheet)) == sorted([158, 88, 40, 24, 16, 40])


def test_more_suggestions_make_a_taller_sheet(photo, tmp_path):
    more = replace(photo, suggestions=photo.suggestions * 4)
    few, many = (drawn(p, tmp_path / "sheet.png", thumb=80) for p in (photo, more))
    assert many.shape[0] > few.shape[0]
    assert many.shape[1] == few.shape[1]


def test_the_same_photograph_gives_the_same_bytes(photo, tmp_path):
    first = contact_sheet(photo, tmp_path / "a.png").read_bytes()
    assert contact_sheet(photo, tmp_path / "b.png").read_bytes() == first


@pytest.mark.parametrize("tag", ["夕焼け", "закат", "x" * 300, "\ud800", "a\nb", "", "🏖️"])
def test_any_tag_can_be_drawn(photo, tag, tmp_path):
    odd = replace(photo, suggestions=(TagSuggestion(tag, 1.0, ()),), tags=(tag,) * 60)
    sheet = drawn(odd, tmp_path / "sheet.png", thumb=40)
    width = COLUMN - 34
    column = sheet[:, 2 * MARGIN + 120 : 2 * MARGIN + 120 + width]
    # a full bar between the tag, where there is one to see, and its confidence
    (top,) = set(np.flatnonzero((column == ACCENT).all(axis=(1, 2)))[:1])
    assert lengths_of_bars(sheet) == [width]
    assert (column[:top] != 255).any() == bool(tag)
    assert (sheet[:, 2 * MARGIN + 120 + width : 2 * MARGIN + 120 + COLUMN] == 255).all()


def test_vanished_photographs_leave_grey_squares(photo, files, tmp_path):
    for file in files:
        Path(file).unlink()
    sheet = drawn(photo, tmp_path / "sheet.png", thumb=80)
    assert (sheet == (214, 214, 218)).all(axis=2).sum() > 200 * 200


def test_no_suggestion_is_said(files, tmp_path):
    sheet = drawn(PhotoSuggestions(files[0], ()), tmp_path / "sheet.png")
    assert says(sheet, (2 * MARGIN + 480, MARGIN), "No suggestion", 20, SOFT)
    assert lengths_of_bars(sheet) == []


def test_many_kin_are_counted_not_all_shown(photo, files, tmp_path):
    many = TagSuggestion("sea", 0.7, tuple(Kin(file, 1 / 12) for file in files))
    six = replace(many, kin=many.kin[:6])
    wide, same = (
        drawn(replace(photo, suggestions=(s,)), tmp_path / "s.png", thumb=40) for s in (many, six)
    )
    assert wide.shape == same.shape
    for k in range(6):
        assert is_photograph(kin_square(wide, 0, k, thumb=40), files[k])
    said = fit_text("these kin: 50 % of support", 13, COLUMN - 34)
    assert says(wide, (2 * MARGIN + 120, MARGIN + 20 + 48), said, 13, SOFT)


def test_a_tiny_thumb_is_refused(photo, tmp_path):
    with pytest.raises(InvalidInput, match="found 3"):
        contact_sheet(photo, tmp_path / "sheet.png", thumb=3)


def test_where_nothing_can_be_written(photo, tmp_path):
    with pytest.raises(StorageError, match="Could not write"):
        contact_sheet(photo, tmp_path)


def test_what_is_said_of_the_kin_fits_its_column():
    said = "these kin: 100 % of support"
    assert fit_text(said, 13, COLUMN - 34) == said
