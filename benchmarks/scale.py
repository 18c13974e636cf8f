"""A million images: streamed from disk with little memory, served one by one.

``python -m benchmarks.scale [--small]`` prints JSON. With ``--small`` everything is a tenth of the
size. Both parts run in processes of their own.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.measuring import Measure, max_resident_bytes
from benchmarks.process import WORK, run_json, say
from benchmarks.synthetic import synthetic_features
from tagkin import SemanticSpace
from tagkin.feature_files import fit_streamed, nearest_streamed, transform_streamed
from tagkin.paper import NeighborVoting

FEATURES, LANDMARKS, N_LABELS = 1280, 2048, 81
ROWS = 10_000


# --- from disk ---------------------------------------------------------------------------


def folder_of(n: int) -> Path:
    """Folder of a collection of n images."""
    return WORK / f"scale-{n}"


def make(n: int) -> dict[str, Any]:
    """Write features (n×1,280, float16) in shards, and sparse labels, unless they exist."""
    folder = folder_of(n)
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    frequency = 1 / np.arange(2, N_LABELS + 2)
    frequency *= 3 / frequency.sum()
    directions = rng.standard_normal((N_LABELS, FEATURES), dtype=np.float32)
    Y = (rng.random((n, N_LABELS), dtype=np.float32) < frequency).astype(np.float32)
    for start in range(0, n, 10 * ROWS):
        path = folder / f"{start:09d}.npy"
        if path.exists():
            continue
        parts = []
        for first in range(start, min(start + 10 * ROWS, n), ROWS):
            noise = np.random.default_rng(first).standard_normal(
                (min(ROWS, n - first), FEATURES), dtype=np.float32
            )
            noise += Y[first : first + ROWS] @ directions
            parts.append(np.maximum(noise, 0).astype(np.float16))
        scratch = path.with_suffix(".new")
        with scratch.open("wb") as file:
            np.save(file, np.concatenate(parts))
        scratch.rename(path)
    scipy.sparse.save_npz(folder / "labels.npz", scipy.sparse.csr_array(Y))
    return {"bytes": sum(path.stat().st_size for path in folder.glob("*.npy"))}


def plain_products(n: int, r: int) -> tuple[float, float]:
    """Time float32 products with as many operations as the fit, 2Ndr + Nr².

    Returns elapsed seconds, and CPU seconds of all cores.
    """
    rng = np.random.default_rng(0)
    X = rng.random((8192, FEATURES), dtype=np.float32)
    S = rng.random((FEATURES, r), dtype=np.float32)
    K = np.empty((8192, r), dtype=np.float32)
    blocks = 8  # all blocks take the same time
    with Measure() as measured:
        for block in range(blocks):
            np.matmul(X, S, out=K)
            if block % 2:  # KᵀK is symmetric: half of its operations are needed
                K.T @ K
    share = n / 8192 / blocks
    return measured.wall_seconds * share, measured.cpu_seconds * share


def stream(n: int) -> dict[str, Any]:
    """Fit, project and search from disk: seconds, and peak resident memory of the process."""
    folder = folder_of(n)
    Y = scipy.sparse.load_npz(folder / "labels.npz")
    checkpoint, out = WORK / f"scale-{n}-checkpoint", WORK / f"scale-{n}-embeddings.npy"
    out.unlink(missing_ok=True)
    space = SemanticSpace(n_landmarks=LANDMARKS, random_state=0)
    result: dict[str, Any] = {"images": n, "features": FEATURES, "landmarks": LANDMARKS}
    with Measure() as fit:
        fit_streamed(space, folder, Y, checkpoint=checkpoint, save_every=20.0)
    result["fit_seconds"], result["fit_cpu_seconds"] = fit.wall_seconds, fit.cpu_seconds
    result["resident_after_fit"] = max_resident_bytes()
    result["product_seconds"], result["product_cpu_seconds"] = plain_products(n, LANDMARKS)
    say(f"fit: {fit.wall_seconds:.1f} s, products {result['product_seconds']:.1f} s")
    with Measure() as projecting:
        transform_streamed(space, folder, out)
    result["transform_seconds"] = projecting.wall_seconds
    queries = np.load(out, mmap_mode="r")[:1000].copy()
    with Measure() as searching:
        nearest_streamed(queries, out, 100)
    result["search_seconds"] = searching.wall_seconds
    result["resident_after_all"] = max_resident_bytes()
    return result


# --- serving -----------------------------------------------------------------------------


def serve(n: int) -> dict[str, Any]:
    """One core: photographs per minute from cached features, and the latency of one."""
    X, Y = synthetic_features(n + 10_000, FEATURES, N_LABELS)
    new, X, Y = X[:10_000], X[10_000:], Y[10_000:]
    space = SemanticSpace(n_landmarks=LANDMARKS, random_state=0).fit(X[:20_000], Y[:20_000])
    model = NeighborVoting(100).fit(space.transform(X), Y)
    start = time.perf_counter()
    model.suggest(space.transform(new))
    taken = time.perf_counter() - start
    say(f"{len(new)} photographs in {taken:.1f} s")
    result: dict[str, Any] = {"images": n, "photographs_per_minute": 60 * len(new) / taken}
    # elapsed time, and CPU time of this process in case the machine is shared
    for clock in (time.perf_counter, time.process_time):
        latencies = []
        for i in range(1000):
            start = clock()
            embedding = space.transform(new[i : i + 1])
            middle = clock()
            model.suggest(embedding)
            latencies.append((middle - start, clock() - middle, clock() - start))
        columns = zip(("transform", "suggest", "both"), np.transpose(latencies), strict=True)
        result[f"milliseconds_{clock.__name__}"] = {
            name: {f"p{p}": 1000 * float(np.percentile(column, p)) for p in (50, 99)}
            for name, column in columns
        }
    return result


# --- all of it ---------------------------------------------------------------------------

PARTS = {"stream": (stream, 1_000_000), "serve": (serve, 100_000)}
HERE = PARTS | {"make": (make, 1_000_000)}


def main() -> None:
    """Run each part in its own process, or one part in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--here", choices=HERE, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        work, images = HERE[options.here]
        # latency is always measured at 100,000 images
        small = options.small and options.here != "serve"
        print(json.dumps(work(images // 10 if small else images)))
        return
    size = ["--small"] if options.small else []
    run_json("-m", "benchmarks.scale", "--here", "make", *size)
    results = {
        part: run_json(
            "-m",
            "benchmarks.scale",
            *("--here", part, *size),
            threads=1 if part == "serve" else None,
        )
        for part in PARTS
    }
    print(json.dumps(results))


if __name__ == "__main__":
    main()
