"""From choosing a folder to an undone write, and the end, in a real browser."""

from pathlib import Path
from typing import Any

import pytest

from tagkin.scenes import make_scenes
from tagkin.server import presence

from .browser import Running
from .first_way import StartWindow
from .window import NARROW, WIDE


def test_from_a_folder_to_an_undone_write(
    chrome: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "PATIENCE", 0.5)
    pictures = tmp_path / "Pictures" / "2024"
    make_scenes(pictures, 60, 30)
    monkeypatch.setenv("XDG_PICTURES_DIR", str(pictures.parent))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    running = Running(None, ends_when_left=True)
    window = StartWindow(chrome, running.server.first_address)
    page = window.page
    window.is_accessible()
    window.resize(WIDE)
    window.look_at_folder("2024")
    window.is_accessible()
    window.resize(WIDE)
    window.use_folder()
    page.locator("#tags a").first.wait_for()  # when tagkin has learned
    window.tag_and_write("holiday")
    sidecars = list(pictures.glob("*.xmp"))
    assert sidecars
    window.undo_write()
    assert not list(pictures.glob("*.xmp"))
    page.get_by_role("link", name="Collections").click()
    page.locator("#recent button", has_text="2024").wait_for()
    window.resize(NARROW)
    window.is_accessible()
    assert not running.server.was_left
    page.close()  # the last one
    running.stop_when_left()
    assert running.server.was_left
    assert window.faults == []
    window.close()
    running.desk.close()


def test_quit_says_that_it_is_over(chrome: Any) -> None:
    running = Running(None)
    window = StartWindow(chrome, running.server.first_address)
    window.page.get_by_role("button", name="Quit").click()
    window.page.get_by_text("tagkin has ended.").wait_for()
    window.page.close()
    running.stop()
    assert window.faults == []
    window.close()
