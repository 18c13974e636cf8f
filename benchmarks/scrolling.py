"""How smooth a grid of 2,000 photographs scrolls: frames of a headless Chromium.

``python -m benchmarks.scrolling [PHOTOGRAPHS]`` prints JSON. It needs Playwright and a Chromium
that is installed. Photographs are scanned, and served as `tagkin review` does, with thumbnails that
were made before. The results of a search are scrolled from the first to the last at 2,400 pixels
per second: first while parts of the list and pictures are fetched, then again with all of it there.
A frame is dropped where the next one comes after more than 1.5 times 1/60 second. On a machine
that is busy otherwise frames are late whatever the page does: CPU time of the page's main thread
says what the page itself takes. Frames alone would praise a page that shows nothing: at every frame
those photographs in the window are counted whose picture has not arrived.
"""

import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.process import environment, say
from tagkin.catalogue import Catalogue, open_for_scan
from tagkin.server import Access, Desk, Review, Server
from tagkin.server.thumbnail_cache import SIZES

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WINDOW = {"width": 1280, "height": 900}
SIZE, PIXELS_PER_SECOND, PATIENCE = (640, 480), 2400, 600_000

_RECORD = """() => {
  const frames = [];
  const grid = document.querySelector("#grid");
  const columns = getComputedStyle(grid).gridTemplateColumns.split(" ").length;
  const gap = parseFloat(getComputedStyle(grid).rowGap);
  const row = grid.firstElementChild.offsetHeight + gap;
  const above = grid.offsetTop;
  const seen = { shown: 0, blank: 0 };
  let last = null;
  window.recording = true;
  const frame = (now) => {
    if (last !== null) frames.push(now - last);
    last = now;
    const first = Math.max(0, Math.floor((scrollY - above) / row)) * columns;
    const end = Math.ceil((scrollY + innerHeight - above) / row) * columns;
    for (let i = first; i < end; i += 1) {
      const item = grid.children[i];
      if (!item && !grid.dataset.next) break;
      seen.shown += 1;
      if (!item?.querySelector("img").complete) seen.blank += 1;
    }
    if (window.recording) requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  window.frames_seen = frames;
  window.pictures_seen = seen;
}"""
# time and not frames decides how far it is: a slow machine drops frames, and scrolls as fast
_SCROLL = """(speed) => new Promise((resolve) => {
  const start = performance.now();
  const step = (now) => {
    const end = document.body.scrollHeight - innerHeight;
    const top = ((now - start) / 1000) * speed;
    scrollTo({ top, behavior: "instant" });
    if (top < end || document.querySelector("#grid").dataset.next) requestAnimationFrame(step);
    else resolve();
  };
  requestAnimationFrame(step);
})"""


def make_folder(root: Path, n: int) -> None:
    """Photographs that differ, with as much detail as takes a decoder its time."""
    rng = np.random.default_rng(0)
    for number in range(n):
        small = rng.integers(0, 255, (30, 40, 3), np.uint8)
        picture = Image.fromarray(small).resize(SIZE, Image.Resampling.BICUBIC)
        folder = root / f"{number // 500:02}"
        folder.mkdir(parents=True, exist_ok=True)
        picture.save(folder / f"IMG_{number:05}.jpg", quality=85)


@contextmanager
def served(catalogue: Catalogue, cache: Path) -> Iterator[str]:
    """A running review; its address."""
    review = Review(catalogue, cache, fits=False)
    contents = [content for (content,) in catalogue.database.rows("SELECT id FROM contents")]
    for one in catalogue.photographs.files_of(contents).values():
        review.thumbnails.picture(catalogue.absolute(one.path), one.digest, SIZES[0])
    server = Server(Desk(review), Access(), port=0)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server.address
    finally:
        server.stop()
        thread.join(timeout=10)
        review.close()


def scrolled(page: Any) -> dict[str, float]:
    """Frames while the whole grid goes by, in milliseconds."""
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = main_thread(session)
    page.evaluate(_RECORD)
    page.evaluate(_SCROLL, PIXELS_PER_SECOND)
    page.evaluate("window.recording = false")
    seconds = main_thread(session) - before
    session.detach()
    frames = np.array(page.evaluate("window.frames_seen"))
    seen = page.evaluate("window.pictures_seen")
    return {
        "main_thread_seconds": seconds,
        "frames": len(frames),
        "seconds": float(frames.sum() / 1000),
        "median_ms": float(np.median(frames)),
        "p95_ms": float(np.quantile(frames, 0.95)),
        "p99_ms": float(np.quantile(frames, 0.99)),
        "longest_ms": float(frames.max()),
        "dropped_share": float(np.mean(frames > 1.5 * 1000 / 60)),
        "blank_share": seen["blank"] / seen["shown"],
    }


def main_thread(session: Any) -> float:
    """CPU seconds that the page's main thread has taken, whatever else the machine was at."""
    found = session.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in found if one["name"] == "TaskDuration"))


def measure(n: int = 2000) -> dict[str, Any]:
    """The first and the second way down a grid of n photographs."""
    from playwright.sync_api import sync_playwright

    installed = next(filter(None, map(shutil.which, BROWSERS)), None)
    if installed is None:
        sys.exit(f"No browser found; install one of {', '.join(BROWSERS)}.")
    with tempfile.TemporaryDirectory() as home, sync_playwright() as driver:
        say(f"making {n:,} photographs and their thumbnails")
        make_folder(Path(home, "photographs"), n)
        catalogue = open_for_scan(Path(home, "photographs"), Path(home, "catalogue.sqlite"))
        catalogue.scan()
        with served(catalogue, Path(home, "cache")) as address:
            browser = driver.chromium.launch(executable_path=installed, args=["--no-sandbox"])
            page = browser.new_page(viewport=WINDOW)
            page.set_default_timeout(PATIENCE)
            page.goto(address)
            page.goto(address.partition("/?")[0] + "/search?untagged=true")
            page.locator("#grid .tile").first.wait_for()
            found: dict[str, Any] = {
                "photographs": n,
                "browser": browser.version,
                "pixels_per_second": PIXELS_PER_SECOND,
            }
            for when in ("first", "again"):
                found[when] = scrolled(page)
                say(f"{when}: {found[when]}")
            found["shown"] = page.locator("#grid .tile").count()
            found["load"] = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
            browser.close()
    return found | {"environment": environment()}


if __name__ == "__main__":
    print(json.dumps(measure(*map(int, sys.argv[1:]))))
