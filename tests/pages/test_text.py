"""Names and tags that fit, whatever signs they hold."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from tagkin.fonts import fonts_for
from tagkin.pages.text import fit_text, length, name_of, printable, runs, write

from ..fonts import write_font

HOSTILE = [
    "",
    " ",
    "a\nb",
    "\x00\x07",
    "\ud800",
    "夕焼け",
    "небо",
    "עברית",
    "🏖️",
    "e\u0301",
    "\u202egpj",
]


def test_a_long_name_loses_its_middle():
    assert name_of("/a/b/short.jpg") == "short.jpg"
    name = name_of("/a/b/" + "x" * 80 + "-0042.jpeg", 20)
    assert len(name) == 20
    assert name.endswith("0042.jpeg")
    assert "…" in name


def test_a_name_without_a_name_is_shown_as_it_is():
    assert name_of("/") == "/"
    assert name_of("") == ""


def test_signs_without_a_shape_get_a_mark():
    assert printable("a\x00b\ud800c") == "a\ufffdb\ufffdc"
    assert printable("夕焼け 🏖") == "夕焼け 🏖"


@pytest.mark.parametrize("text", [*HOSTILE, "x" * 500])
def test_text_fits(text):
    found = fit_text(text, 20, 100)
    assert length(found, 20) <= 100


@pytest.mark.parametrize("width", [5, 30, 100, 170])
def test_as_much_is_left_as_fits(width):
    text = "a beach, with boats and 夕焼け"
    short = text
    while short and length(short + "…", 20) > width:
        short = short[:-1]
    assert fit_text(text, 20, width) == short.rstrip() + "…"


def test_short_text_is_left_alone():
    assert fit_text("beach", 20, 200) == "beach"


def test_a_line_break_is_a_space():
    assert fit_text("a\nb", 20, 200) == "a b"


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_can_be_written(text):
    image = Image.new("L", (200, 40), "white")
    write(ImageDraw.Draw(image), (4, 4), text, 18, "black")
    ink = np.asarray(image) < 128
    assert ink.any() == bool(text.strip())
    columns = np.flatnonzero(ink.any(axis=0))
    assert not len(columns) or 2 <= columns[0] <= columns[-1] <= 6 + length(
        fit_text(text, 18, 500), 18
    )


def test_latin_is_written_in_one_font():
    ((font, text),) = runs("beach with boats", 18)
    assert (text, runs("boat", 18)[0][0]) == ("beach with boats", font)


@pytest.fixture
def squares(tmp_path, monkeypatch):
    """A font with three characters, and no other, installed on this machine."""
    path = write_font(tmp_path / "fonts" / "Squares.ttf", "夕焼け")
    monkeypatch.setattr("tagkin.fonts.installed", lambda: (str(path),))
    fonts_for.cache_clear()
    yield path
    fonts_for.cache_clear()


def pixels(text: str, anchor: str = "la", at: tuple[int, int] = (60, 40)) -> np.ndarray:
    image = Image.new("L", (200, 80), "white")
    write(ImageDraw.Draw(image), at, text, 20, "black", anchor)
    return np.asarray(image) < 128


def test_characters_are_drawn_in_an_installed_font_that_has_them(squares):
    found = runs("sea 夕焼 け!", 20)
    assert [text for _, text in found] == ["sea ", "夕焼 け", "!"]
    assert found[0][0] is found[2][0]
    assert length("夕", 20) == 20
    # two filled squares of 16 pixels and a gap, not two hollow ones
    drawn = pixels("夕焼")
    assert drawn.sum() == pytest.approx(2 * 16 * 16, rel=0.15)


def test_a_word_is_in_one_font_where_one_has_all_of_it(squares):
    write_font(squares, "夕焼けab")
    fonts_for.cache_clear()
    assert [text for _, text in runs("sea a夕b ab 夕c", 20)] == ["sea ", "a夕b ", "ab ", "夕", "c"]


def test_fonts_stand_on_one_line(squares):
    bottom = [np.flatnonzero(pixels(text).any(axis=1))[-1] for text in ("夕", "H", "H夕H")]
    assert max(bottom) - min(bottom) <= 1


def test_text_lies_where_its_anchor_says(squares):
    for text in ("夕焼け", "boat", "boat 夕"):
        rows = {a: np.flatnonzero(pixels(text, f"l{a}").any(axis=1)) for a in "amt"}
        columns = {a: np.flatnonzero(pixels(text, f"{a}a", (100, 4)).any(axis=0)) for a in "lmr"}
        assert rows["t"][0] == pytest.approx(40, abs=1)
        assert rows["a"][0] > rows["t"][0] - 1 > rows["m"][0]
        assert columns["l"][0] == pytest.approx(100, abs=3)
        assert columns["r"][-1] == pytest.approx(100, abs=3)
        assert columns["m"].mean() == pytest.approx(100, abs=4)


def test_a_letter_and_its_mark_are_drawn_as_one_character():
    assert (pixels("e\u0301") == pixels("é")).all()


def test_which_picture_of_a_character_is_not_drawn(squares):
    assert (pixels("夕\ufe0f") == pixels("夕")).all()


def test_a_font_that_cannot_be_opened_is_passed_over(squares, monkeypatch):
    assert fonts_for(frozenset("夕")) == (str(squares),)
    squares.write_bytes(b"broken since")
    box = pixels("夕")
    monkeypatch.setattr("tagkin.fonts.installed", tuple)
    fonts_for.cache_clear()
    assert (box == pixels("夕")).all(), "as where no font is installed"
    assert box.any()


def test_japanese_is_no_row_of_boxes_where_a_font_is_installed():
    if not fonts_for(frozenset("夕焼け")):
        pytest.skip("no font with Japanese is installed on this machine")
    one, other = pixels("夕"), pixels("焼")
    assert one.any()
    assert (one != other).any()
