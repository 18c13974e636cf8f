"""From choosing a folder to an undone write, and the end, in a real browser."""

from pathlib import Path
from typing import Any

import pytest

from tagkin.scenes import make_scenes
from tagkin.server import presence

from .browser import Running
from .window import NARROW, WIDE, Window


class StartWindow(Window):
    """A window on a start page."""

    def __init__(self, browser: Any, address: str):
        self.context = browser.new_context(reduced_motion="reduce")
        self.context.set_default_timeout(120_000)
        self.faults: list[str] = []
        self.page = self.tab()
        self.resize(WIDE)
        self.page.goto(address)
        self.page.wait_for_url("**/start")


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
    page.get_by_role("link", name="Choose a folder").click()
    page.locator(".folders a", has_text="2024").click()
    page.locator(".strip img").first.wait_for()
    page.wait_for_function("() => document.querySelector('.strip img').naturalWidth > 0")
    window.is_accessible()
    window.resize(WIDE)
    page.get_by_role("button", name="Use this folder").click()
    page.wait_for_url("**/1/tags")
    page.locator("#tags a").first.wait_for()  # when tagkin has learned
    page.locator("nav a", has_text="photograph").click()
    page.locator("#tag").fill("holiday")
    page.locator("#tag").press("Enter")
    page.locator("#carried .name", has_text="holiday").wait_for()
    page.locator("nav a", has_text="Write").click()
    page.locator("#write").click()
    page.get_by_role("button", name="Undo").first.wait_for()
    sidecars = list(pictures.glob("*.xmp"))
    assert sidecars
    page.locator("#job [data-undo-write]").click()
    page.locator(".outcome", has_text="Undid").wait_for()
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
