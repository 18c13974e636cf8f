"""Names and tags that fit, whatever signs they hold."""

import pytest
from PIL import Image, ImageDraw

from tagkin.pages._text import fitted, font_for, name_of, printable, write

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
    found = fitted(text, 20, 100)
    assert font_for(found, 20).getlength(found) <= 100


def test_short_text_is_left_alone():
    assert fitted("beach", 20, 200) == "beach"


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_can_be_written(text):
    image = Image.new("RGB", (200, 40), "white")
    write(ImageDraw.Draw(image), (4, 4), text, 18, "black")


def test_latin_is_written_in_the_first_font_of_all():
    assert font_for("beach", 18) is font_for("boat", 18)
