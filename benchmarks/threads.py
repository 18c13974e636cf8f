"""BLAS threads on an idle machine and on a busy one: ``python -m benchmarks.threads``.

Prints JSON: seconds and CPU seconds of learning from photographs (`Annotator.fit`, with features
already extracted) and of fitting one space with landmarks. Each runs with one BLAS thread; with
all cores for every product, BLAS's default; and with as many threads as a product can use, which
is what tagkin does. Runs alternate, each in its own process; then all are repeated with a busy
loop on every core. Photographs and tags come from ../shared/data/photos (or TAGKIN_DATA), or are
synthetic.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.process import ROOT, environment, machine, run_json, say
from benchmarks.synthetic import synthetic_features
from tagkin import Annotator, SemanticSpace
from tagkin.arrays import threads
from tagkin.features import Extraction, extract

DATA = Path(os.environ.get("TAGKIN_DATA", ROOT.parent / "shared" / "data"))
CORES = len(os.sched_getaffinity(0))
N_PHOTOGRAPHS = 300
SPACE = (20_000, 1280, 1024)  # images, features, landmarks
REPEATS = {"idle": 2, "busy": 1}
CASES = {"one": 1, "all": CORES, "policy": CORES}  # threads in the environment


def collection(file: Path) -> dict[str, Any]:
    """Store features and tags of the photographs in a file, and return their numbers."""
    folder = DATA / "photos"
    if (folder / "metadata.jsonl").exists():
        lines = (folder / "metadata.jsonl").read_text().splitlines()[:N_PHOTOGRAPHS]
        rows = [json.loads(line) for line in lines]
        features = extract([folder / row["file_name"] for row in rows], "efficientnet-lite0")
        X, tags = features.features, [row["tags"] for row in rows]
    else:
        X, Y = synthetic_features(N_PHOTOGRAPHS, 1280, n_labels=150)
        tags = [[f"tag {t}" for t in np.flatnonzero(row)] for row in Y]
    np.savez(file, X=X, tags=json.dumps(tags))
    return {"photographs": len(X), "features": X.shape[1]}


def learn(file: str) -> None:
    """The work of `tagkin train` after feature extraction."""
    stored = np.load(file)
    X, tags = stored["X"], json.loads(str(stored["tags"]))
    files = [f"{i:04}.jpg" for i in range(len(X))]
    digests = [f"{i:064x}" for i in range(len(X))]
    seen = Extraction(files, X, digests, [], len(X), 0)
    Annotator(cache=False).fit(seen, tags)


def measure_one(work: str, case: str, file: str) -> dict[str, float]:
    """Seconds of one job in this process; its environment sets the number of threads."""
    if case == "all":
        threads.ENOUGH = 1  # multiplications: all threads even for the smallest product
    X, Y = synthetic_features(*SPACE[:2]) if work == "space" else synthetic_features(100, 16)
    SemanticSpace().fit(X[:100], Y[:100])  # warm-up: libraries load at first use
    wall, cpu = time.perf_counter(), time.process_time()
    if work == "space":
        SemanticSpace(n_landmarks=SPACE[2], random_state=0).fit(X, Y)
    else:
        learn(file)
    return {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}


@contextlib.contextmanager
def load(machine_is: str) -> Iterator[None]:
    """Run a busy loop on every core if the machine is to be busy."""
    n_loops = CORES if machine_is == "busy" else 0
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n_loops)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def measure() -> dict[str, Any]:
    """Measure all cases, alternating."""
    found: dict[str, Any] = {
        "environment": environment(),
        "machine": machine(),
        "cores": CORES,
        "space": SPACE,
        "runs": [],
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "collection.npz")
        found |= collection(file)
        for machine_is, repeats in REPEATS.items():
            for repeat in range(repeats):
                for work in ("learning", "space"):
                    for case, n_threads in CASES.items():
                        arguments = ("-m", "benchmarks.threads", work, case, file)
                        with load(machine_is):
                            row = run_json(*arguments, threads=n_threads)
                        what = {"machine": machine_is, "work": work, "case": case}
                        found["runs"].append(what | {"repeat": repeat} | row)
                        say(f"{machine_is}, {work}, {case}: {row['seconds']:.1f} s")
    return found


if __name__ == "__main__":
    print(json.dumps(measure_one(*sys.argv[1:]) if len(sys.argv) > 1 else measure()))
