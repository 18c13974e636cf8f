"""The pictures in the documentation that show a report, in light and dark.

``python -m examples.screenshots`` opens what ``make demo`` wrote, ``build/demo/report.html``, in
a Chromium or Chrome that is installed, and writes ``docs/images/report-light.png`` and
``report-dark.png``.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

REPORT = Path("build/demo/report.html")
IMAGES = Path("docs/images")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SCHEMES = {"dark": 0, "light": 1}  # as Chromium numbers them
SIZE = (1280, 900)
N_COLOURS = 128  # keeps each picture under 200 KB


def photograph(browser: str, page: Path, scheme: str, target: Path) -> None:
    """What a page looks like, as a PNG with a palette."""
    with tempfile.TemporaryDirectory() as folder:
        taken = Path(folder) / "page.png"
        command = [
            browser,
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
            f"--user-data-dir={folder}/profile",
            f"--window-size={SIZE[0]},{SIZE[1]}",
            f"--screenshot={taken}",
            page.resolve().as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)  # noqa: S603
        with Image.open(taken) as image:
            image.convert("RGB").quantize(N_COLOURS).save(target, optimize=True)


def main() -> None:
    """Photograph the report of the demo in both colour schemes."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"No browser found; install one of {', '.join(BROWSERS)}.")
    if not REPORT.exists():
        sys.exit(f"{REPORT} is not there; run `make demo` first.")
    for scheme in SCHEMES:
        target = IMAGES / f"report-{scheme}.png"
        photograph(browser, REPORT, scheme, target)
        print(f"{target}  {target.stat().st_size / 1e3:.0f} KB")


if __name__ == "__main__":
    main()
