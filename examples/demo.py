"""Learn from a partly tagged collection of photographs, and suggest tags for the rest.

``make demo`` paints a small collection of scenes with noisy tags: some are missing, some are
wrong, and a quarter of the pictures has none. ``make demo PHOTOS=dir`` uses your own tagged folder
instead. Both write one page, ``build/demo/report.html``. Then the surest suggestions are accepted
and written into sidecars of a copy, and all is taken back. No download is needed.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from tqdm import tqdm

import tagkin
from examples.round_trip import round_trip
from examples.scenes import make_scenes
from tagkin.annotator import Annotator, PhotoSuggestions, Quality
from tagkin.annotator.quality import MEASURES
from tagkin.collection import Collection, read_collection, sidecar_names
from tagkin.pages import Report, comparisons_of, write_report

OUTPUT = Path("build/demo")
N_SHOWN = 120  # photographs on the page


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


def painted(folder: Path) -> tuple[Collection, dict[str, set[str]]]:
    """A collection of scenes, and the true labels of each."""
    if not (folder / "metadata.jsonl").exists():
        print("Painting 1,000 scenes with noisy tags ...")
        make_scenes(folder, n=1000, n_untagged=250, seed=0)
    lines = (folder / "metadata.jsonl").read_text(encoding="utf-8").splitlines()
    truth = {str(folder / row["file_name"]): set(row["labels"]) for row in map(json.loads, lines)}
    return read_collection([folder]), truth


def show_quality(quality: Quality) -> None:
    """Print metrics of visual neighbours and of neighbours in the space, with bars."""
    each = quality.tags_per_photograph
    print(f"\nMeasured: {quality.how}. They have {each:.1f} tags on average. In percent:")
    for group in MEASURES:
        print(f"\n  {group.title:<38}{'visual':>8}{'space':>8}")
        for key, name in group.names.items():
            visual, space = 100 * quality.visual[key], 100 * quality.semantic[key]
            bar = "█" * round(visual / 4) + "▒" * max(0, round(space / 4) - round(visual / 4))
            print(f"  {name:<38}{visual:>8.1f}{space:>8.1f}  {bar}")
    gain = 100 * (quality.semantic["MAP"] - quality.visual["MAP"])
    if gain > 0:
        print(f"\n  The semantic space gains {gain:.1f} points of MAP over visual neighbours.\n")
    else:
        print("\n  Too few tags yet for the semantic space to beat visual neighbours.\n")
    print(f"  {'precision wanted':<18}{'reached':>8}{'suggestions':>13}{'per photograph':>16}")
    for one in quality.operating_points:
        reached = f"{one.precision:.0%}" if one.n_suggestions else "–"
        found = f"{one.n_suggestions:>13,}{one.per_photograph:>16.1f}"
        print(f"  {one.wanted:<18.0%}{reached:>8}{found}")


def show_some(photographs: list[PhotoSuggestions], truth: dict[str, set[str]]) -> None:
    """Print suggestions for a few photographs."""
    print("\nSome of the suggestions:\n")
    for photo in photographs[:6]:
        marks = [
            f"{one.tag} {one.confidence:.0%}"
            + ("" if photo.file not in truth else " ✓" if one.tag in truth[photo.file] else " ✗")
            for one in photo.suggestions
        ]
        print(f"  {Path(photo.file).name:<18} {', '.join(marks) or '(no suggestion)'}")


def report_of(
    quality: Quality,
    collection: Collection,
    photographs: list[PhotoSuggestions],
    truth: dict[str, set[str]],
    annotator: Annotator,
) -> Report:
    """The contents of the page."""
    n_suggestions = sum(len(photo.suggestions) for photo in photographs)
    order = np.random.default_rng(0).permutation(len(photographs))[:N_SHOWN]
    return Report(
        title="Suggested tags",
        facts=[
            ("photographs", f"{len(collection):,}"),
            ("tagged", f"{collection.n_tagged:,}"),
            ("tags learned", f"{len(annotator.vocabulary_.names_):,}"),
            ("suggestions", f"{n_suggestions:,}"),
        ],
        notes=[f"Learned from {collection.source}. Quality: {quality.how}."],
        comparisons=comparisons_of(quality),
        reliability=quality.reliability,
        photographs=[photographs[i] for i in sorted(order)],
        truth=truth or None,
        labels=quality.labels,
        findings=annotator.audit(12),
        failures=[*collection.failures, *annotator.read_features(collection).failures],
    )


def main(folder: str = "") -> None:
    """Read or paint a collection, learn, suggest, evaluate, and write the page."""
    start = time.perf_counter()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    if folder:
        collection, truth = read_collection([folder]), dict[str, set[str]]()
    else:
        collection, truth = painted(OUTPUT / "photos")
    untagged = collection.untagged()
    print(
        f"{len(collection):,} photographs, {collection.n_tagged:,} of them tagged "
        f"(from {collection.source})."
    )
    print("Learning from the tags ...")
    with progress() as step:
        annotator = Annotator().fit(collection, progress=step)
        tagkin.save(annotator, OUTPUT / "model", overwrite=True)
        annotator = tagkin.load(OUTPUT / "model")
        print(*(f"  {fact}" for fact in annotator.describe()[:1]), sep="\n")
        shown = untagged if len(untagged) else collection
        photographs = annotator.suggest(shown, progress=step)
        quality = measured(annotator, collection, untagged, truth, step)
    show_quality(quality)
    show_some([photo for photo in photographs if photo.suggestions], truth)
    page = write_report(
        report_of(quality, collection, photographs, truth, annotator), OUTPUT / "report.html"
    )
    with progress() as step:
        round_trip(annotator, list(collection.files), tag_files_of(collection), OUTPUT, step)
    print(f"\nDone in {time.perf_counter() - start:.0f} s. Open")
    print(f"  {page}  photographs with their suggestions and kin, metrics per tag")


def tag_files_of(collection: Collection) -> list[str]:
    """The files beside photographs that hold their tags."""
    beside = [
        os.path.join(os.path.dirname(file), name)
        for file in collection.files
        for name in sidecar_names(os.path.basename(file))
    ]
    return [file for file in {collection.tag_file, *beside} if os.path.isfile(file)]


def measured(
    annotator: Annotator,
    collection: Collection,
    untagged: Collection,
    truth: dict[str, set[str]],
    step: Callable[[str, int, int], None],
) -> Quality:
    """Evaluate against the true labels if they are known, else by cross-validation."""
    if truth:
        there = Collection(untagged.files, [sorted(truth[file]) for file in untagged.files])
        return annotator.evaluate(there, progress=step)
    return annotator.cross_validate(collection, progress=step)


if __name__ == "__main__":
    os.environ.setdefault("TAGKIN_CACHE", str(OUTPUT / "cache"))
    try:
        main(*sys.argv[1:])
    except tagkin.errors.TagkinError as error:
        sys.exit(f"tagkin: {error}")
