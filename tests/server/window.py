"""A real browser: Chromium from the system, driven by Playwright, and what a person sees in it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tagkin.catalogue import Catalogue, open_for_scan
from tests.catalogue.suggested import new_suggestion, store

# the first draws the same pages with a fifth less of the processor's time
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
WIDE, NARROW = (1280, 900), (360, 740)
TAGS = ("beach", "boat", "bridge", "city")

FLAGS = [
    "--no-sandbox",
    # pixels are drawn once: without a GPU, its place would be taken by an emulation of one
    "--disable-gpu",
    # What nobody sees here: for every window, the list below the address bar is a page of its own,
    # with a process that takes a second. The others Playwright names; this list replaces its list.
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,"
    "AimEnabled,DestroyProfileOnBrowserClose,HttpsUpgrades,LensOverlay,MediaRouter,"
    "OptimizationHints,PaintHolding,ThirdPartyStoragePartitioning",
]

# What goes away by itself stays, such as a message after five seconds, however late a test looks;
# what the page looks at every other second, it looks at.
PATIENT = """
const later = window.setTimeout;
window.setTimeout = (call, ms, ...given) =>
  later(call, ms >= 1000 && ms !== 2000 ? 1e9 : ms, ...given);
"""

LISTEN = """() => {
  window.heard = false;
  addEventListener("keydown", () => (window.heard = true), { once: true, capture: true });
}"""


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A browser; the tests are skipped where there is none."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright, which drives a browser, is not installed"
    )
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium-headless-shell)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Window:
    """A window on a review; whatever its console says is a fault."""

    def __init__(self, browser: Any, address: str):
        self.context = browser.new_context(reduced_motion="reduce")
        self.context.set_default_timeout(120_000)  # a busy machine is no fault
        self.context.add_init_script(PATIENT)
        self.faults: list[str] = []
        self.page = self.tab()
        self.resize(WIDE)
        self.page.goto(address)
        self.page.wait_for_url("**/tags")
        self.base = self.page.url.removesuffix("/tags")

    def tab(self) -> Any:
        """Another one of the same person."""
        page = self.context.new_page()
        page.on("console", lambda message: self.faults.append(message.text))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("dialog", self._complain)
        return page

    def _complain(self, dialog: Any) -> None:
        self.faults.append(dialog.message)
        dialog.dismiss()

    def resize(self, size: tuple[int, int]) -> None:
        """Show as much as a window of so many pixels, width and height."""
        width, height = size
        self.page.set_viewport_size({"width": width, "height": height})

    def start_again(self) -> None:
        """Forget everything but who the person is; what is shown stays till another is opened."""
        self.page, *others = self.context.pages
        for other in others:
            other.close()
        self.page.evaluate("localStorage.clear(), sessionStorage.clear()")
        self.page.emulate_media(color_scheme="light", reduced_motion="reduce")
        self.resize(WIDE)
        self.faults.clear()

    def open(self, path: str) -> Any:
        self.page.goto(self.base + path)
        return self.page

    def press(self, *keys: str) -> None:
        """Press keys. One that a busy browser loses is pressed again."""
        for key in keys:
            self.page.wait_for_load_state()  # or a page that was gone to does not hear it yet
            self.page.evaluate(LISTEN)
            self.page.keyboard.press(key)
            if self._has_missed_key():
                self.page.keyboard.press(key)

    def _has_missed_key(self) -> bool:
        from playwright.sync_api import Error

        try:
            return self.page.evaluate("window.heard === false")
        except Error:  # the key led to another page
            return False

    def shows(self, text: str) -> None:
        """Wait until the page shows a message."""
        self.page.locator("#message.shown", has_text=text).wait_for()

    def is_accessible(self, part: str | None = None) -> None:
        """Check a page, or all of a part, with axe-core in light and dark. It fits on a phone."""
        axe = pytest.importorskip(
            "axe_core_python.sync_playwright", reason="axe-core is not installed"
        )
        self.page.evaluate(axe.Axe().axe_script)
        # in the dark, colours are others, and nothing else
        for scheme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
            self.page.emulate_media(color_scheme=scheme)
            report = self.page.evaluate(
                "([part, rules]) => axe.run(part ?? document, rules)",
                [part, {"resultTypes": ["violations"]} | rules],
            )
            assert report["passes"]
            faults = [(fault["id"], fault["nodes"][0]["html"]) for fault in report["violations"]]
            assert faults == [], scheme
        self.resize(NARROW)
        assert self.page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]

    def settle(self) -> None:
        """Let the page handle the answers that it has got: one more request goes there and back."""
        self.page.evaluate("() => fetch('api/v1/state').then((answer) => answer.text())")

    def focused(self, what: str = "id") -> str | None:
        return self.page.evaluate(f"document.activeElement.getAttribute({what!r})")

    def close(self) -> None:
        self.context.close()


def make_photographs(folder: Path, n: int) -> None:
    """Pictures with a gradient each, in three folders; they differ."""
    ramp = np.linspace(0, 1, 96)[None, :, None]
    rng = np.random.default_rng(0)
    for i in range(n):
        place = folder / f"20{20 + i % 3}"
        place.mkdir(parents=True, exist_ok=True)
        first, second = rng.integers(40, 220, (2, 3))
        pixels = np.broadcast_to(first * (1 - ramp) + second * ramp, (64, 96, 3))
        Image.fromarray(pixels.astype(np.uint8)).save(place / f"IMG_{i:04}.jpg", quality=60)


def make_catalogue(root: Path, path: Path, n: int) -> Catalogue:
    """Every photograph has a suggestion of each tag, the surest first in their order; doubts."""
    make_photographs(root, n)
    (root / "broken.jpg").write_bytes(b"\xff\xd8 no picture \xff\xd9")
    catalogue = open_for_scan(root, path, command="review")
    catalogue.scan()
    contents = [c for (c,) in catalogue.database.rows("SELECT id FROM contents ORDER BY id")]
    with catalogue.database.run("suggest", model="f" * 64) as run:
        kin = [(contents[0], 0.6), (contents[1], 0.4)]
        by_name = [(contents[0], 0.06), (contents[1], 0.04)], 0.8, 0.1
        parts = {"city": by_name}  # its name says most of it
        each = [
            (
                content,
                [new_suggestion(tag, 0.99 - 0.4 * i / n, *parts.get(tag, (kin,))) for tag in TAGS],
            )
            for i, content in enumerate(contents)
        ]
        store(catalogue, run.id, each)
        with catalogue.database.transaction():
            for content in contents[10:40]:
                catalogue.database.execute(
                    "INSERT INTO doubts SELECT ?, id, ?, 'missing', 0.5 + ? / 1000.0, x'' "
                    "FROM tags WHERE name = 'city'",
                    (content, run.id, content),
                )
    return catalogue
