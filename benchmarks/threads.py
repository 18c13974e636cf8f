"""What threads of BLAS cost on an idle machine and on a busy one: ``python -m benchmarks.threads``.

Prints JSON: seconds and CPU seconds of learning from photographs (`Annotator.fit`; their features
are there already) and of one space with landmarks, with one thread of BLAS, with all cores for
every product as BLAS would have it, and with as many as a product keeps busy, which is what
tagkin does. All of it in turn, each in a process of its own; then once more beside a busy loop on
every core. Photographs and tags come from ../shared/data/photos (or TAGKIN_DATA), or are made.
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

from benchmarks.data import made_features
from benchmarks.process import ROOT, machine, run_json, say
from tagkin import Annotator, SemanticSpace
from tagkin.arrays import threads
from tagkin.features import Extraction, extract

DATA = Path(os.environ.get("TAGKIN_DATA", ROOT.parent / "shared" / "data"))
CORES = len(os.sched_getaffinity(0))
N_PHOTOGRAPHS = 300
SPACE = (20_000, 1280, 1024)  # images, features, landmarks
REPEATS = {"idle": 2, "busy": 1}
CASES = {"one": 1, "all": CORES, "policy": CORES}  # what is in the environment


def collection(file: Path) -> dict[str, Any]:
    """Store features and tags of the photographs in a file; returns what they are."""
    folder = DATA / "photos"
    if (folder / "metadata.jsonl").exists():
        lines = (folder / "metadata.jsonl").read_text().splitlines()[:N_PHOTOGRAPHS]
        rows = [json.loads(line) for line in lines]
        features = extract([folder / row["file_name"] for row in rows], "efficientnet-lite0")
        X, tags = features.features, [row["tags"] for row in rows]
    else:
        X, Y = made_features(N_PHOTOGRAPHS, 1280, n_labels=150)
        tags = [[f"tag {t}" for t in np.flatnonzero(row)] for row in Y]
    np.savez(file, X=X, tags=json.dumps(tags))
    return {"photographs": len(X), "features": X.shape[1]}


def learn(file: str) -> None:
    """What `tagkin train` does when it has seen the photographs."""
    stored = np.load(file)
    X, tags = stored["X"], json.loads(str(stored["tags"]))
    files = [f"{i:04}.jpg" for i in range(len(X))]
    digests = [f"{i:064x}" for i in range(len(X))]
    seen = Extraction(files, X, digests, [], len(X), 0)
    Annotator(cache=False).fit(seen, tags)


def measure_one(work: str, case: str, file: str) -> dict[str, float]:
    """Seconds of one piece of work in this process, whose environment says how many threads."""
    if case == "all":
        threads.ENOUGH = 1  # multiplications: no product is too small for all threads
    X, Y = made_features(*SPACE[:2]) if work == "space" else made_features(100, 16)
    SemanticSpace().fit(X[:100], Y[:100])  # libraries load at first use
    wall, cpu = time.perf_counter(), time.process_time()
    if work == "space":
        SemanticSpace(n_landmarks=SPACE[2], random_state=0).fit(X, Y)
    else:
        learn(file)
    return {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}


@contextlib.contextmanager
def load(machine_is: str) -> Iterator[None]:
    """A busy loop on every core, where the machine is to be busy."""
    n_loops = CORES if machine_is == "busy" else 0
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n_loops)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def measure() -> dict[str, Any]:
    """Everything in turn."""
    found: dict[str, Any] = {"machine": machine(), "cores": CORES, "space": SPACE, "runs": []}
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
