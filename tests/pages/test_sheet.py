"""Contact sheets."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tagkin.annotator.suggestions import Kin, PhotoSuggestions, TagSuggestion
from tagkin.errors import InvalidInput, StorageError
from tagkin.pages import contact_sheet
from tagkin.pages._text import fitted
from tagkin.pages.sheet import _COLUMN

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


def test_every_suggestion_has_a_row_and_every_kin_a_square(photo, files, tmp_path):
    sheet = drawn(photo, tmp_path / "sheet.png", thumb=80)
    for file, least in ((files[0], 200 * 160), (files[1], 2 * 80 * 80), (files[3], 80 * 80)):
        with Image.open(file) as image:
            colour = image.getpixel((5, 5))
        near = np.abs(sheet.astype(int) - colour).max(axis=2) <= 3
        assert near.sum() >= least


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
    drawn(odd, tmp_path / "sheet.png", thumb=40)


def test_vanished_photographs_leave_grey_squares(photo, files, tmp_path):
    for file in files:
        Path(file).unlink()
    sheet = drawn(photo, tmp_path / "sheet.png", thumb=80)
    assert (sheet == (214, 214, 218)).all(axis=2).sum() > 200 * 200


def test_no_suggestion_is_said(files, tmp_path):
    drawn(PhotoSuggestions(files[0], ()), tmp_path / "sheet.png")


def test_many_kin_are_counted_not_all_shown(photo, files, tmp_path):
    many = TagSuggestion("sea", 0.7, tuple(Kin(file, 1 / 12) for file in files))
    six = replace(many, kin=many.kin[:6])
    wide, same = (
        drawn(replace(photo, suggestions=(s,)), tmp_path / "s.png", thumb=40) for s in (many, six)
    )
    assert wide.shape == same.shape


def test_a_tiny_thumb_is_refused(photo, tmp_path):
    with pytest.raises(InvalidInput, match="thumb is 3"):
        contact_sheet(photo, tmp_path / "sheet.png", thumb=3)


def test_where_nothing_can_be_written(photo, tmp_path):
    with pytest.raises(StorageError, match="Could not write"):
        contact_sheet(photo, tmp_path)


def test_what_is_said_of_the_kin_fits_its_column():
    said = "these kin: 100 % of support"
    assert fitted(said, 13, _COLUMN - 34) == said
