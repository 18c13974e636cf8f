"""The review as a process of its own, in a real browser: killed in the middle, and with many."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.catalogue import make_folder, put_everything
from tagkin.catalogue import open_for_scan
from tests.fork_server import Start

from .window import NARROW, Window, make_catalogue

N_MANY = int(os.environ.get("TAGKIN_BROWSER_PHOTOGRAPHS", "400"))  # 100000 takes minutes


N_SCROLLED = min(2000, N_MANY // 2)


class Process:
    """``tagkin review``, as a person starts it."""

    def __init__(self, start: Start, catalogue: Path, home: Path):
        command = ["-m", "tagkin", "review", "--no-browser", "--json"]
        self.process = start(
            [*command, "--port", "0", "--catalogue", str(catalogue)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=home,
        )
        assert self.process.stdout is not None
        self.address: str = json.loads(self.process.stdout.readline())["address"]

    def end(self, signum: int = signal.SIGINT) -> None:
        self.process.send_signal(signum)
        self.process.communicate(timeout=120)


@contextmanager
def process(start: Start, catalogue: Path, home: Path) -> Iterator[Process]:
    started = Process(start, catalogue, home)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.end(signal.SIGKILL)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_killed_in_the_middle(chrome: Any, forked: Start, tmp_path: Path) -> None:
    path = tmp_path / "catalogue.sqlite"
    make_catalogue(tmp_path / "photos", path, 70).close()
    with process(forked, path, tmp_path) as first:
        window = Window(chrome, first.address)
        page = window.page
        page.locator("#tags a", has_text="beach").click()
        page.locator("#grid .tile").nth(2).click()
        window.press("Enter")
        window.shows("beach: 59 accepted, 1 rejected.")
        first.end(signal.SIGKILL)
        page.locator("#grid .tile").nth(1).click()
        window.press("Enter")
        window.shows("The review does not answer")  # what was marked is still there
        assert page.locator("#grid .tile[aria-pressed=true]").count() == 1
        window.close()
    with process(forked, path, tmp_path) as second:
        window = Window(chrome, second.address)
        page = window.open("/overview")
        assert "59 accepted, 1 rejected" in page.locator(".facts").inner_text()
        window.press("u")
        window.shows("Undone 60 decisions: beach.")
        page.locator(".facts", has_text="0 accepted, 0 rejected").wait_for()
        window.close()
        assert window.faults == []
        second.end()


def test_many_photographs(chrome: Any, forked: Start, tmp_path: Path) -> None:
    """Every mode opens; a long grid is scrolled through, and grows without moving."""
    path = tmp_path / "catalogue.sqlite"
    make_folder(tmp_path / "photos", N_MANY)
    with open_for_scan(tmp_path / "photos", path) as catalogue:
        catalogue.scan()
        put_everything(catalogue)
    with process(forked, path, tmp_path) as running:
        window = Window(chrome, running.address)
        page = window.open("/question")
        page.locator("#grid .tile").first.wait_for()
        window.press("Enter")
        window.shows("accepted")
        for mode, there in {
            "/events": "#grid .tile, #photograph",
            "/doubtful": "#doubts > li",
            "/overview": "#quality",
            "/search?untagged=true": "#grid .tile",
        }.items():
            window.open(mode).locator(there).first.wait_for()
        # none of these files can be decoded, which a long path says
        page.locator("#fit", has_text="could be read").wait_for()
        first = page.locator("#grid .tile").first.bounding_box()
        # counted once: all may be there between one look and the next
        while (before := page.locator("#grid .tile").count()) < N_SCROLLED:
            page.evaluate("scrollTo(0, document.body.scrollHeight)")
            page.wait_for_function(
                "n => document.querySelectorAll('#grid .tile').length > n", arg=before
            )
        page.evaluate("scrollTo(0, 0)")
        assert page.locator("#grid .tile").first.bounding_box() == first
        window.resize(NARROW)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
        window.close()
        assert window.faults == []
