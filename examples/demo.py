"""Learn from a partly tagged folder, suggest tags for the rest, and show the review page.

``make demo`` paints a small folder of scenes with noisy tags: some are missing, some are wrong, and
a quarter of the pictures has none. ``make demo PHOTOS=dir`` reads your own tagged folder instead,
and writes nothing into it. No download is needed.
"""

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

import tagkin
from examples.round_trip import round_trip
from tagkin.annotator import Annotator, Quality
from tagkin.annotator.quality import MEASURES
from tagkin.catalogue import Catalogue, open_for_scan
from tagkin.collection import Collection
from tagkin.features import default_cache_folder
from tagkin.scenes import make_scenes
from tagkin.server import Access, Desk, Review, Server

OUTPUT = Path("build/demo")
N_SCENES, N_UNTAGGED = 240, 60
N_SHOWN = 5  # photographs in the terminal


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar for each step, if the output is a terminal."""
    bars: dict[str, tqdm] = {}

    def step(what: str, done: int, total: int) -> None:
        if what not in bars:
            bars[what] = tqdm(total=total, desc=f"  {what}", leave=False, disable=None)
        bars[what].update(done - bars[what].n)

    yield step
    for bar in bars.values():
        bar.close()


def paint(folder: Path) -> dict[str, set[str]]:
    """Paint scenes; return the true labels of each file."""
    make_scenes(folder, n=N_SCENES, n_untagged=N_UNTAGGED, seed=0)
    lines = (folder / "metadata.jsonl").read_text(encoding="utf-8").splitlines()
    root = folder.absolute()  # as a catalogue names files
    return {str(root / row["file_name"]): set(row["labels"]) for row in map(json.loads, lines)}


def show_quality(quality: Quality) -> None:
    """Print metrics of visual neighbours and of neighbours in the space, with bars."""
    print(f"\nHow good is it? {quality.how}, in percent:")
    for group in MEASURES:
        print(f"\n  {group.title:<38}{'visual':>8}{'space':>8}")
        for key, name in group.names.items():
            visual, space = 100 * quality.visual[key], 100 * quality.semantic[key]
            bar = "█" * round(visual / 4) + "▒" * max(0, round(space / 4) - round(visual / 4))
            print(f"  {name:<38}{visual:>8.1f}{space:>8.1f}  {bar}")


def show_suggestions(
    annotator: Annotator, collection: Collection, truth: dict[str, set[str]]
) -> None:
    """Print suggestions for a few photographs."""
    print("\nSome of the suggestions:\n")
    untagged = collection.untagged()
    chosen = Collection(untagged.files[:N_SHOWN], untagged.tags[:N_SHOWN])
    for photo in annotator.suggest(chosen):
        marks = [
            f"{one.tag} {one.confidence:.0%}"
            + ("" if photo.file not in truth else " ✓" if one.tag in truth[photo.file] else " ✗")
            for one in photo.suggestions
        ]
        print(f"  {Path(photo.file).name:<18} {', '.join(marks) or '(no suggestion)'}")


def show_review(catalogue: Catalogue) -> None:
    """Serve the review page until Enter; without a terminal, say how to open it."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(f"To review it: tagkin review --catalogue {catalogue.path}")
        return
    review = Review(catalogue, default_cache_folder())
    server = Server(Desk(review), Access())
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    print(f"Open the review page:\n\n  {server.address}\n\nPress Enter to stop.")
    try:
        input()
    except (EOFError, KeyboardInterrupt):
        print()
    server.stop()
    thread.join(timeout=10)
    review.close()


def main(folder: str = "") -> None:
    """Read or paint a folder, learn, measure, suggest, and show the review page."""
    start = time.perf_counter()
    what = f"reads {folder}" if folder else f"paints {N_SCENES} small scenes"
    print(f"This demo {what}, learns from the tags, suggests tags for the rest and measures them.")
    if not folder:
        print("It writes some tags into sidecars, undoes that, and ends with the review page.")
        print("All of it takes about 20 seconds on two cores, and stays in build/demo.\n")
    shutil.rmtree(OUTPUT / "catalogue", ignore_errors=True)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    truth = {} if folder else paint(OUTPUT / "photos")
    root = Path(folder) if folder else OUTPUT / "photos"
    (OUTPUT / "catalogue").mkdir()
    with progress() as step, open_for_scan(root, OUTPUT / "catalogue" / "demo.sqlite") as catalogue:
        catalogue.scan(progress=step)
        print("Learning ...")
        catalogue.model.refit(progress=step)
        annotator, _ = catalogue.model.load()
        photographs = catalogue.photographs.with_tags()
        collection = Collection([p.file for p in photographs], [p.tags for p in photographs])
        print(f"  Learned from {collection.n_tagged:,} of {len(collection):,} photographs.")
        show_quality(annotator.cross_validate(collection, progress=step))
        show_suggestions(annotator, collection, truth)
        if truth:
            round_trip(catalogue, step)
        print(f"\nDone in {time.perf_counter() - start:.0f} s.")
        show_review(catalogue)


if __name__ == "__main__":
    os.environ.setdefault("TAGKIN_CACHE", str(OUTPUT / "cache"))
    try:
        main(*sys.argv[1:])
    except tagkin.errors.TagkinError as error:
        sys.exit(f"tagkin: {error}")
