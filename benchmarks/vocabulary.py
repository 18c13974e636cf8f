"""Very many images with very many tags, in little memory.

``python -m benchmarks.vocabulary [OUT.json] [--images N] [--tags D] [--memory GB]`` learns from N
synthetic images with d = 256 features and about 10 of D tags each, suggests tags for 1,000 further
images, and prints or writes JSON. The process may have so much memory for its data and no more:
what does not fit ends in an error. By default, 100,000 images with 20,000 tags in 4 GB.
"""

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.peers.measure import max_resident_bytes
from benchmarks.process import environment, say
from tagkin import FeatureAnnotator

N_FEATURES, N_TAGS, N_NEW = 256, 10, 1000
GB = 10**9


def collection(n: int, n_labels: int, seed: int = 0) -> tuple[np.ndarray, scipy.sparse.csr_array]:
    """Features (n×256, float32) and tags (n×D), sparse: few tags are on many images, most on few.

    A tag is seen in a direction of its own, some more clearly than others.
    """
    frequency = 1 / np.arange(2, n_labels + 2)
    of_tags = np.random.default_rng(0)  # the same tags whatever the images
    directions = of_tags.standard_normal((n_labels, N_FEATURES), dtype=np.float32)
    directions *= of_tags.uniform(0.2, 1, (n_labels, 1)).astype(np.float32)
    rng = np.random.default_rng(seed + 1)
    drawn = rng.choice(n_labels, size=(n, N_TAGS), p=frequency / frequency.sum())
    rows = np.repeat(np.arange(n), N_TAGS)
    Y = scipy.sparse.csr_array(
        (np.ones(drawn.size, dtype=np.float32), (rows, drawn.ravel())), shape=(n, n_labels)
    )
    Y.data[:] = 1  # a tag drawn twice is on the image once
    X = rng.standard_normal((n, N_FEATURES), dtype=np.float32)
    for start in range(0, n, 10_000):
        some = slice(start, start + 10_000)
        X[some] = np.maximum(X[some] + Y[some] @ directions, 0)
    return X, Y


def limit_memory(gigabytes: float) -> None:
    """Let this process have so much memory for its data."""
    n_bytes = int(gigabytes * GB)
    resource.setrlimit(resource.RLIMIT_DATA, (n_bytes, n_bytes))


def measured(n: int, n_labels: int, gigabytes: float) -> dict[str, Any]:
    """Learn and suggest under a limit."""
    limit_memory(gigabytes)
    X, Y = collection(n, n_labels)
    begun, cpu = time.perf_counter(), time.process_time()
    last = ["", 0]

    def told(what: str, done: int, of: int) -> None:
        if [what, done] != last:
            peak = max_resident_bytes() / GB
            say(
                f"{what} {done} of {of}: {time.perf_counter() - begun:.0f} s, {peak:.2f} GB at most"
            )
            last[:] = [what, done]

    annotator = FeatureAnnotator().fit(X, Y, progress=told)
    fitted, fit_cpu = time.perf_counter() - begun, time.process_time() - cpu
    say(f"learned in {fitted:.0f} s, {max_resident_bytes() / GB:.2f} GB at most")
    new, truth = collection(N_NEW, n_labels, seed=1)
    begun = time.perf_counter()
    suggested = annotator.suggest(new, threshold=0.5)
    seconds = time.perf_counter() - begun
    given = [(i, one) for i, row in enumerate(suggested) for one in row]
    right = [bool(truth[i, one.label]) for i, one in given]
    return {
        "images": n,
        "tags": n_labels,
        "tags_in_all": int(Y.nnz),
        "limit": gigabytes,
        "peak": max_resident_bytes() / GB,
        "fit_seconds": fitted,
        "fit_cpu_seconds": fit_cpu,
        "held_out_images": annotator.calibrator_.n_images,
        "suggested_images": N_NEW,
        "suggest_seconds": seconds,
        "suggestions": len(given),
        "expected_right": float(np.mean([one.confidence for _, one in given])) if given else None,
        "right": float(np.mean(right)) if given else None,
        "environment": environment(),
    }


def main() -> None:
    """Measure, and print or write the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vocabulary", description=__doc__)
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--tags", type=int, default=20_000)
    parser.add_argument("--memory", type=float, default=4.0, help="GB")
    asked = parser.parse_args()
    found = json.dumps(measured(asked.images, asked.tags, asked.memory), indent=2)
    if asked.out is None:
        print(found)
    else:
        asked.out.write_text(found + "\n")


if __name__ == "__main__":
    main()
