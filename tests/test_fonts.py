"""Fonts are found by the characters that they have."""

import os

import pytest
from fontTools.ttLib import TTCollection, TTFont

from tagkin.fonts import find_covered, fonts_for, installed

from .fonts import write_font

CJK = "夕焼け한"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A person without fonts; what a test installs is gone afterwards."""
    for name in ("XDG_DATA_HOME", "HOME", "LOCALAPPDATA", "WINDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("XDG_DATA_DIRS", str(tmp_path / "share"))
    installed.cache_clear()
    fonts_for.cache_clear()
    yield tmp_path
    installed.cache_clear()
    fonts_for.cache_clear()


@pytest.fixture
def install(monkeypatch):
    """Have these font files installed, and no others."""

    def install(*paths):
        monkeypatch.setattr("tagkin.fonts.installed", lambda: tuple(map(str, paths)))
        fonts_for.cache_clear()

    yield install
    fonts_for.cache_clear()


def test_a_font_has_the_characters_that_it_says(tmp_path):
    path = str(write_font(tmp_path / "a.ttf", CJK + "𠮷"))
    assert find_covered(path, CJK + "𠮷" + "aé海🏖\U0010ffff\ud800") == set(CJK + "𠮷")
    assert find_covered(None, "sea 夕") == set("sea ")


def test_so_do_the_fonts_of_this_machine():
    """Compare with another reader of fonts; matplotlib's fonts are everywhere."""
    matplotlib = pytest.importorskip("matplotlib")
    folder = os.path.join(matplotlib.get_data_path(), "fonts", "ttf")
    names = ("DejaVuSans.ttf", "cmr10.ttf", "STIXGeneral.ttf")
    collections = [path for path in installed() if path.endswith(".ttc")][:1]
    for path in [os.path.join(folder, name) for name in names] + collections:
        font = TTCollection(path).fonts[0] if path.endswith(".ttc") else TTFont(path)
        known = {chr(code) for code, name in font.getBestCmap().items() if name != ".notdef"}
        characters = {chr(c) for c in range(0x21, 0x20000, 7)} | set(sorted(known)[:300])
        characters = {char for char in characters if not char.isspace()}
        assert find_covered(path, characters) == characters & known, path


def test_files_that_are_no_fonts_have_nothing(tmp_path):
    whole = write_font(tmp_path / "whole.ttf", CJK).read_bytes()
    path = tmp_path / "odd.ttf"
    for content in (b"", b"ttcf", b"no font at all", *(whole[:k] for k in range(0, 300, 7))):
        path.write_bytes(content)
        assert not find_covered(str(path), "夕")
    assert not find_covered(str(tmp_path / "gone.ttf"), "夕")


def test_letters_of_europe_are_there_where_nothing_is_installed(home):
    pytest.importorskip("matplotlib")
    assert any(os.path.basename(path) == "DejaVuSans.ttf" for path in installed())
    assert len(fonts_for(frozenset("éßłж"))) == 1


def test_few_fonts_are_chosen_and_the_fullest_first(tmp_path, install):
    one, two, both = (
        str(write_font(tmp_path / f"{k}.ttf", characters))
        for k, characters in enumerate(("夕", "焼", "夕焼"))
    )
    install(one, two, both)
    assert fonts_for(frozenset("夕焼")) == (both,)
    install(one, two)
    assert set(fonts_for(frozenset("夕焼"))) == {one, two}


def test_fonts_are_found_where_they_are_installed(home):
    plain = write_font(home / "HOME" / ".fonts" / "deep" / "A-Regular.ttf", "\U0010fffc")
    write_font(home / "HOME" / "Library" / "Fonts" / "A-Bold.TTF", "\U0010fffc")
    (home / "HOME" / ".fonts" / "readme.txt").write_text("no font")
    ours = [os.path.basename(path) for path in installed() if path.startswith(str(home))]
    assert ours == ["A-Regular.ttf", "A-Bold.TTF"]
    assert fonts_for(frozenset("\U0010fffc")) == (str(plain),)


@pytest.mark.parametrize(
    ("text", "package"),
    [("夕焼け", "fonts-noto-cjk"), ("한", "fonts-noto-cjk"), ("🏖", "fonts-symbola"), ("ꦲ", "core")],
)
def test_a_warning_names_the_font_to_install(install, text, package):
    install()
    with pytest.warns(UserWarning, match=package) as warned:
        assert fonts_for(frozenset(text)) == ()
    assert len(warned) == 1
    assert fonts_for(frozenset()) == ()
