"""What a person waits for: short commands in a process of their own, and one photograph.

``python -m benchmarks.commands`` prints JSON, some minutes of work. Commands run as those of an
installed package do, with their bytecode at hand, and are told by the clock and by the processor's
time; medians. A collection has 300 photographs. An annotator has 100,000: it learned from 6,000 and
got the rest by `Annotator.partial_fit`. Photographs come from ../shared/data/photos (or
TAGKIN_DATA), or are synthetic; features of the larger collection are synthetic.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.features import synthetic_photographs
from benchmarks.process import DATA, run_json, say
from benchmarks.synthetic import synthetic_features
from tagkin import Annotator, load
from tagkin.features import Extraction, FeatureCache

SMALL, LARGE, LEARNED, N_TAGS = 300, 100_000, 6_000, 80
REPEATS, SUGGESTED = 5, 40
FRESH = "fresh"  # before a command whose photograph is not in the cache


def photographs(folder: Path) -> Path:
    """300 photographs with tags in a folder of their own, and one that is new beside it."""
    photos, stored = folder / "photos", DATA / "photos" / "metadata.jsonl"
    if stored.exists():
        photos.mkdir()
        lines = stored.read_text().splitlines()
        for line in lines[:SMALL]:
            shutil.copy(stored.parent / json.loads(line)["file_name"], photos)
        (photos / "metadata.jsonl").write_text("\n".join(lines[:SMALL]) + "\n")
        shutil.copy(stored.parent / json.loads(lines[-1])["file_name"], folder / "new.jpg")
        return photos
    files = synthetic_photographs(photos, SMALL + 1, (256, 256))
    Path(files.pop()).rename(folder / "new.jpg")
    _, Y = synthetic_features(SMALL, 2, n_labels=150)
    rows = [
        {"file_name": Path(file).name, "tags": [f"tag {t}" for t in np.flatnonzero(tags)]}
        for file, tags in zip(files, Y, strict=True)
    ]
    (photos / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return photos


def build_large(folder: str) -> None:
    """Save an annotator of 100,000 photographs, and print what that takes."""
    X, Y = synthetic_features(LARGE, 1280, n_labels=N_TAGS)
    tags = [[f"tag {t}" for t in np.flatnonzero(row)] or ["tag 0"] for row in Y]
    files = [f"{i // 1000:03}/{i:06}.jpg" for i in range(LARGE)]
    digests = [f"{i:064x}" for i in range(LARGE)]

    def seen(part: slice) -> Extraction:
        n = len(files[part])
        return Extraction(files[part], X[part], digests[part], [], n, 0)

    first, others = slice(0, LEARNED), slice(LEARNED, LARGE)
    annotator = Annotator(cache=False).fit(seen(first), tags[first])
    annotator.partial_fit(seen(others), tags[others])
    saved = annotator.save(Path(folder, "large"))
    print(json.dumps({"bytes": sum(file.stat().st_size for file in saved.iterdir())}))


def resident(model: str, photograph: str, cache: str) -> None:
    """Print how long an annotator takes to load, and to suggest for one cached photograph."""
    start, cpu = time.perf_counter(), time.process_time()
    annotator = load(model)
    loaded = time.perf_counter() - start, time.process_time() - cpu
    annotator.cache = FeatureCache(cache)
    annotator.suggest([photograph])
    taken = []
    for _ in range(SUGGESTED):
        start, cpu = time.perf_counter(), time.process_time()
        annotator.suggest([photograph])
        taken.append((time.perf_counter() - start, time.process_time() - cpu))
    seconds, of_cpu = (statistics.median(part) for part in zip(*taken, strict=True))
    print(
        json.dumps(
            {
                "load_seconds": loaded[0],
                "load_cpu_seconds": loaded[1],
                "seconds": seconds,
                "cpu_seconds": of_cpu,
            }
        )
    )


def run(arguments: list[str | Path], folder: Path) -> tuple[float, float]:
    """Seconds of ``tagkin ARGUMENTS`` in a new process, by the clock and of the processor.

    Before a command that is to look at its photograph, the cache loses it.
    """
    environment = dict(os.environ) | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["TAGKIN_CACHE"] = str(folder / "cache")
    if arguments[0] == FRESH:
        environment["TAGKIN_CACHE"] = str(folder / "fresh-cache")
        shutil.rmtree(folder / "fresh-cache", ignore_errors=True)
        arguments = arguments[1:]
    before, start = os.times(), time.perf_counter()
    command = [sys.executable, "-m", "tagkin", *map(str, arguments)]
    subprocess.run(
        command, env=environment, check=True, capture_output=True, stdin=subprocess.DEVNULL
    )
    seconds, after = time.perf_counter() - start, os.times()
    cpu = after.children_user + after.children_system
    return seconds, cpu - before.children_user - before.children_system


def cold(folder: Path, photos: Path) -> dict[str, Any]:
    """Median seconds of commands in processes of their own, by what they do."""
    new = folder / "new.jpg"
    catalogue: list[str | Path] = ["--catalogue", folder / "small.sqlite"]
    run(["train", photos, *catalogue], folder)  # scans, and reads the photographs
    similar: list[str | Path] = ["find", "--like", new, *catalogue]
    commands: dict[str, list[str | Path]] = {
        "help": ["--help"],
        "status": ["status", *catalogue],
        "find --like": similar,
        "find --like, not read before": [FRESH, *similar],
        "train": ["train", *catalogue],
    }
    found = {}
    for name, arguments in commands.items():
        run(arguments, folder)  # what lies on disk is in memory from here on
        taken = [run(arguments, folder) for _ in range(REPEATS)]
        seconds, cpu = (statistics.median(part) for part in zip(*taken, strict=True))
        found[name] = {"seconds": seconds, "cpu_seconds": cpu}
        say(f"{name}: {seconds:.2f} s, {cpu:.2f} s of CPU")
    return found


def measure() -> dict[str, Any]:
    """Measure all of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        photos = photographs(folder)
        say("an annotator of 100,000 photographs")
        found: dict[str, Any] = {
            "photographs": SMALL,
            "large": LARGE,
            "saved": run_json("-m", "benchmarks.commands", "build", folder),
            "cold": cold(folder, photos),
        }
        models = {"small": folder / "small.model", "large": folder / "large"}
        arguments = folder / "new.jpg", folder / "cache"
        for size, model in models.items():
            one = run_json("-m", "benchmarks.commands", "resident", model, *arguments)
            found.setdefault("resident", {})[size] = one
            say(f"resident, {size}: {json.dumps(one)}")
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["build"]:
        build_large(sys.argv[2])
    elif sys.argv[1:2] == ["resident"]:
        resident(*sys.argv[2:])
    else:
        print(json.dumps(measure()))
