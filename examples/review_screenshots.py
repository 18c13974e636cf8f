"""The pictures of the review page in the docs: every mode, light and dark, wide and narrow.

``python -m examples.review_screenshots`` learns from the tags on some of a diver's photographs in
``docs/images/photographs`` (``photographs.csv`` there has their labels, author and licence). It
serves the review page of all of them and opens it in a Chromium that is installed, a minute in all.
The pictures go to ``docs/images``.
"""

import csv
import io
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
from urllib.parse import quote

from PIL import Image

from tagkin.catalogue import Catalogue, open_for_scan
from tagkin.server import Access, Desk, Review, Server
from tagkin.server.mapping import write_map

IMAGES = Path("docs/images")
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
WIDE, NARROW = {"width": 1100, "height": 760}, {"width": 390, "height": 800}
MORE_EVENTS = 160  # pixels by which the wide page of a tag is higher
SCALE = 1.3  # pixels of a picture for each pixel of the page
SHOWN = 1440  # most pixels of a picture in the documentation
PHOTOGRAPHS = IMAGES / "photographs"
TAG = "night dive"
DECIDED = ("damselfish", "Bonaire 2019")
LIKELY = 0.6  # confidence of the suggestion whose kin are shown
MODES: dict[str, tuple[str, list[str], str]] = {
    # address, keys to press there, what has to be there then
    "tags": ("/tags", [], "#tags li:nth-child(4) .collage img:nth-child(4)"),
    "tag": ("/tags/{tag}", [], "#grid .tile[aria-pressed=true]"),
    "photograph": ("/photographs/{content}", ["k"], ".evidence:not([hidden]) img"),
    "closer": ("/photographs/{content}", ["z", "k"], "#closer figure:nth-child(2) img"),
    "search": ("/search?words=a+dolphin+under+water", [], "main img"),
    "write": ("/write", [], "#write"),
    "overview": ("/overview", [], "#map .dot"),
    "folder": ("/../folders?path={root}", [], ".strip img"),
}

# those that are in the window have arrived; others are fetched when they are scrolled to
_ALL_SEEN = """() => [...document.images].every((one) => {
  const { top, width } = one.getBoundingClientRect();
  return !width || top > innerHeight || (one.complete && one.naturalWidth);
})"""


def read_labels() -> dict[str, list[str]]:
    """True labels of the photographs, and those of tagged photographs under "tagged:NAME"."""
    with (PHOTOGRAPHS / "photographs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    labels = {row["file"]: row["labels"].split("; ") for row in rows}
    return labels | {f"tagged:{row['file']}": labels[row["file"]] for row in rows if row["tagged"]}


def learned(home: Path, labels: dict[str, list[str]]) -> Catalogue:
    """A catalogue of the photographs with a model, suggestions, a map and a few decisions."""
    root = home / "Pictures"
    root.mkdir()
    lines = []
    for photograph in sorted(PHOTOGRAPHS.glob("*.jpg")):
        shutil.copy(photograph, root)
        tags = labels.get(f"tagged:{photograph.name}", [])
        lines.append(json.dumps({"file_name": photograph.name, "tags": tags}))
    (root / "metadata.jsonl").write_text("\n".join(lines), encoding="utf-8")
    catalogue = open_for_scan(root, home / "catalogue.sqlite", command="review")
    catalogue.scan()
    catalogue.model.refit()
    write_map(catalogue, *catalogue.model.load())
    for name in DECIDED:
        rows = catalogue.database.rows(
            "SELECT s.content, s.tag, p.path FROM suggestions s JOIN tags t ON t.id = s.tag "
            "JOIN photographs p ON p.content = s.content "
            "WHERE t.name = ? ORDER BY s.confidence DESC LIMIT 6",
            (name,),
        )
        right = {content for content, _, path in rows if name in labels[Path(path).name]}
        accepted = [(content, tag) for content, tag, _ in rows if content in right]
        rejected = [(content, tag) for content, tag, _ in rows if content not in right]
        catalogue.decisions.decide_pairs(accepted, rejected)
    return catalogue


def with_kin(catalogue: Catalogue, labels: dict[str, list[str]]) -> int:
    """A photograph with some suggestions, the first of which is right and likely and shows kin."""
    rows = catalogue.database.rows(
        "SELECT c.id, p.path FROM contents c JOIN photographs p ON p.content = c.id "
        "WHERE c.n_suggested BETWEEN 4 AND 9 ORDER BY c.id"
    )
    found = []
    for content, path in rows:
        first = catalogue.suggestions.for_photograph(content)[0]
        if first.confidence >= LIKELY and first.tag in labels[Path(path).name]:
            found.append((len(first.proving_kin()), int(content)))
    if not found or max(found)[0] == 0:
        raise LookupError("no likely suggestion shows kin")
    return max(found)[1]


@contextmanager
def served(catalogue: Catalogue, home: Path) -> Iterator[str]:
    """A running review; its address."""
    review = Review(catalogue, home / "cache", fits=False)
    server = Server(Desk(review), Access(), port=0)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield server.address
    server.stop()
    thread.join(timeout=10)
    review.close()


def taken(browser: Any, address: str, scheme: str, size: dict[str, int], names: dict) -> Iterator:
    """Every mode as a window of that size shows it."""
    context = browser.new_context(
        viewport=size, color_scheme=scheme, reduced_motion="reduce", device_scale_factor=SCALE
    )
    page = context.new_page()
    page.goto(address)
    base = page.url.rsplit("/", 1)[0]  # with the secret part of the path
    for mode, (path, keys, there) in MODES.items():
        higher = MORE_EVENTS if mode == "tag" and size is WIDE else 0
        page.set_viewport_size(size | {"height": size["height"] + higher})
        page.goto(base + path.format(**names))
        for key in keys:
            page.keyboard.press(key)
        if mode == "tag":
            mark_wrong(page, names["right"])
        page.locator(there).first.wait_for()
        page.wait_for_function(_ALL_SEEN)
        page.evaluate(  # the folder was a temporary one
            "for (const one of document.querySelectorAll('.head .folder')) "
            "one.textContent = '~/Pictures';"
            "const others = '.path li:not(:last-child), .places li:nth-child(n + 4)';"
            "for (const one of document.querySelectorAll(others)) one.remove()"
        )
        yield mode, Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    context.close()


def mark_wrong(page: Any, right: set[str]) -> None:
    """Do what a person does: mark what does not show the tag, and below the line what does."""
    read = "all => all.map(one => [one.title, one.closest('.below') !== null])"
    for name, is_below in page.eval_on_selector_all("#grid .tile", read):
        if is_below == (name in right):
            page.locator(f"#grid .tile[title='{name}']").click()
    page.evaluate("scrollTo(0, 0)")
    page.mouse.move(0, 0)


def keep(picture: Image.Image, name: str) -> None:
    """Write a picture, no wider than it is shown."""
    width = min(SHOWN, picture.width)
    picture = picture.resize(
        (width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS
    )
    target = IMAGES / f"{name}.webp"
    picture.save(target, quality=78, method=6)
    print(f"{target}  {target.stat().st_size / 1e3:.0f} KB")


def side_by_side(pictures: list[Image.Image], gap: int = 24) -> Image.Image:
    """Narrow windows in a row."""
    width = sum(one.width + gap for one in pictures) - gap
    row = Image.new("RGB", (width, pictures[0].height), "#808489")
    left = 0
    for one in pictures:
        row.paste(one, (left, 0))
        left += one.width + gap
    return row


def main() -> None:
    """Make all of them."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sys.exit("Playwright is missing; `make setup` installs it.")
    installed = next(filter(None, map(shutil.which, BROWSERS)), None)
    if installed is None:
        sys.exit(f"No browser found; install one of {', '.join(BROWSERS)}.")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        home = Path(folder)
        os.environ["TAGKIN_CACHE"] = str(home / "cache")
        os.environ["TAGKIN_CATALOGUES"] = str(home / "data")
        os.environ["XDG_PICTURES_DIR"] = str(home / "Pictures")
        labels = read_labels()
        catalogue = learned(home, labels)
        names = {
            "tag": catalogue.database.value("SELECT id FROM tags WHERE name = ?", (TAG,)),
            "right": {name for name, own in labels.items() if TAG in own},
            "content": with_kin(catalogue, labels),
            "root": quote(str(home / "Pictures"), safe=""),
        }
        with served(catalogue, home) as address:
            browser = driver.chromium.launch(executable_path=installed, args=["--no-sandbox"])
            for scheme in ("light", "dark"):
                for mode, picture in taken(browser, address, scheme, WIDE, names):
                    keep(picture, f"review-{mode}-{scheme}")
                narrow = dict(taken(browser, address, scheme, NARROW, names))
                row = [narrow[mode] for mode in ("tags", "tag", "photograph", "search")]
                keep(side_by_side(row), f"review-narrow-{scheme}")
            browser.close()


if __name__ == "__main__":
    main()
