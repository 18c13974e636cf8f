"""Fonts are found by the characters that they have."""

import os
import struct
import warnings

import pytest
from fontTools.ttLib import TTCollection, TTFont

from tagkin import fonts
from tagkin.fonts import choose, fonts_for, has_glyph, installed

from .fonts import write_font

CJK = "夕焼け한"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A machine without fonts; what a test installs is gone afterwards."""
    for name in ("XDG_DATA_HOME", "HOME", "LOCALAPPDATA", "WINDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("XDG_DATA_DIRS", str(tmp_path / "share"))
    monkeypatch.setattr(fonts, "_FOLDERS", ())
    fonts.forget_fonts()
    yield tmp_path
    fonts.forget_fonts()


def test_a_font_has_the_characters_that_it_says(tmp_path):
    path = str(write_font(tmp_path / "a.ttf", CJK + "𠮷"))
    assert all(has_glyph(path, char) for char in CJK + "𠮷")
    assert not any(has_glyph(path, char) for char in "aé海🏖\U0010ffff\ud800")


def test_so_do_the_fonts_of_this_machine():
    """Against another reader of fonts; those that come with matplotlib are everywhere."""
    matplotlib = pytest.importorskip("matplotlib")
    folder = os.path.join(matplotlib.get_data_path(), "fonts", "ttf")
    some = [
        os.path.join(folder, name) for name in ("DejaVuSans.ttf", "cmr10.ttf", "STIXGeneral.ttf")
    ]
    collections = [path for path in installed() if path.endswith(".ttc")][:1]
    for path in some + collections:
        font = TTCollection(path).fonts[0] if path.endswith(".ttc") else TTFont(path)
        shapes = font.getBestCmap()
        codes = [c for c in range(0x20, 0x20000, 7) if not 0xD800 <= c < 0xE000]
        for code in codes + list(shapes)[:300]:
            assert has_glyph(path, chr(code)) == (shapes.get(code, ".notdef") != ".notdef"), path


def test_files_that_are_no_fonts_have_nothing(tmp_path):
    whole = write_font(tmp_path / "whole.ttf", CJK).read_bytes()
    path = tmp_path / "odd.ttf"
    for content in (b"", b"ttcf", b"no font at all", b"ttcf" + struct.pack(">III", 0, 1, 1 << 31)):
        path.write_bytes(content)
        fonts.forget_fonts()
        assert not has_glyph(str(path), "夕")
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        fonts.forget_fonts()
        has_glyph(str(path), "夕")
    assert not has_glyph(str(tmp_path / "gone.ttf"), "夕")


def test_pictures_of_one_size_are_not_for_us(tmp_path):
    path = write_font(tmp_path / "colour.ttf", CJK)
    path.write_bytes(path.read_bytes().replace(b"OS/2", b"CBDT"))
    assert not has_glyph(str(path), "夕")


def test_letters_of_europe_are_there_where_nothing_is_installed(home):
    pytest.importorskip("matplotlib")
    (path,) = fonts_for("éßłж")
    assert os.path.basename(path) == "DejaVuSans.ttf"


def test_few_fonts_are_chosen_and_the_fullest_first(tmp_path):
    one, two, both = (
        str(write_font(tmp_path / f"{k}.ttf", characters))
        for k, characters in enumerate(("夕", "焼", "夕焼"))
    )
    assert choose("夕焼", [one, two, both]) == [both]
    assert choose("夕焼け", [one, two, both]) == [both]
    assert choose("夕焼", [one, two]) == [one, two]
    assert choose("け", [one, two]) == []
    assert choose("夕", []) == []


def test_fonts_are_found_where_they_are_installed(home):
    plain = write_font(home / "XDG_DATA_HOME" / "fonts" / "deep" / "A-Regular.ttf", "夕")
    write_font(home / "share" / "fonts" / "A-Bold.TTF", "夕")
    (home / "share" / "fonts" / "readme.txt").write_text("no font")
    ours = [os.path.basename(path) for path in installed() if path.startswith(str(home))]
    assert ours == ["A-Regular.ttf", "A-Bold.TTF"]
    assert fonts_for("夕") == (str(plain),)


@pytest.mark.parametrize(
    ("text", "package"),
    [("夕焼け", "fonts-noto-cjk"), ("한", "fonts-noto-cjk"), ("🏖", "fonts-symbola"), ("ꦲ", "core")],
)
def test_what_no_font_has_is_said_once_with_what_to_install(home, text, package):
    with pytest.warns(UserWarning, match=package) as said:
        assert fonts_for(text) == ()
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fonts_for(text)
        fonts_for(text + text[-1:])
        assert fonts_for("") == ()
