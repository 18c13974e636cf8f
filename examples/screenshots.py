"""The pictures in the documentation that show what ``make demo`` wrote.

``python -m examples.screenshots`` opens ``build/demo/report.html`` in a Chromium or Chrome that is
installed, in light and dark, and makes ``build/demo/kin.png`` smaller. All go to ``docs/images``.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

DEMO = Path("build/demo")
IMAGES = Path("docs/images")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SCHEMES = {"dark": 0, "light": 1}  # as Chromium numbers them
TOP, LONG = (1280, 900), (1280, 2940)  # what a window shows at first; much of the page
WIDTH = {"kin.png": 800, "report.png": 870}
N_COLOURS = 96  # keeps each picture under 200 KB


def photograph(browser: str, scheme: str, size: tuple[int, int], target: Path) -> None:
    """The report as a window of that size shows it."""
    with tempfile.TemporaryDirectory() as folder:
        taken = Path(folder) / "page.png"
        command = [
            browser,
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
            f"--user-data-dir={folder}/profile",
            f"--window-size={size[0]},{size[1]}",
            f"--screenshot={taken}",
            (DEMO / "report.html").resolve().as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)  # noqa: S603
        reduce(taken, target)


def reduce(source: Path, target: Path) -> None:
    """A picture for a page: no wider than it is shown, with a palette."""
    with Image.open(source) as image:
        small = image.convert("RGB")
        width = min(WIDTH.get(target.name, small.width), small.width)
        small = small.resize((width, round(small.height * width / small.width)))
        small.quantize(N_COLOURS).save(target, optimize=True)
    print(f"{target}  {target.stat().st_size / 1e3:.0f} KB")


def main() -> None:
    """Make all of them."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"No browser found; install one of {', '.join(BROWSERS)}.")
    if not (DEMO / "report.html").exists():
        sys.exit(f"{DEMO} has no report; run `make demo` first.")
    for scheme in SCHEMES:
        photograph(browser, scheme, TOP, IMAGES / f"report-{scheme}.png")
    photograph(browser, "light", LONG, IMAGES / "report.png")
    reduce(DEMO / "kin.png", IMAGES / "kin.png")


if __name__ == "__main__":
    main()
