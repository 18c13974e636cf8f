"""Learning from 10,000 photographs with 500 tags, and spaces of thousands of tags.

``python -m benchmarks.learning`` prints JSON. `Annotator.fit` is given features (1,280 for each
photograph) that were extracted before, and does all the rest: series, the space,
votes and read-out, names, confidences. The tags are synthetic, without times and with times of
events of two hours, and, where ../shared/data (or
TAGKIN_DATA) has them, those of COCO's photographs, whose 256 features are turned to 1,280 by an
orthogonal matrix, which changes no cosine. Each runs in its own process, on all threads. How fast
the machine multiplies is measured before and after each: virtual machines of one name differ, and
so do the hours of one.

Spaces are fitted with 500 to 5,000 tags, against plain products of the same sizes: those of the
kernel columns, of their Gram matrix, and with the tags' weights.
"""

import json
import statistics
import sys
import time
from typing import Any

import numpy as np

from benchmarks.measuring import Measure
from benchmarks.process import DATA, run_json, say
from benchmarks.synthetic import synthetic_features
from tagkin import Annotator, SemanticSpace
from tagkin.collection.times import Moments
from tagkin.features import Extraction

N, D, N_TAGS = 10_000, 1280, 500
EVENTS, EVERY, HOURS = 500, 3 * 86_400.0, 2.0  # of the photographs with times
MANY_TAGS, LANDMARKS, REPEATS = (500, 1000, 2000, 5000), 2048, 3
SIDE = 4096  # of the matrices whose products tell how fast the machine is


def coco() -> tuple[np.ndarray, np.ndarray]:
    """Features and tags of 10,000 training photographs of COCO that have tags."""
    stored = np.load(DATA / "coco.npz")
    rng = np.random.default_rng(0)
    tagged = np.flatnonzero(stored["has_tags"] & ~stored["is_test"])
    chosen = np.sort(rng.choice(tagged, N, replace=False))
    features = stored["features"][chosen].astype(np.float32) * stored["scale"]
    turned, _ = np.linalg.qr(rng.standard_normal((D, features.shape[1])))
    place = np.full(len(stored["has_tags"]), -1)
    place[chosen] = np.arange(N)
    rows = place[stored["tag_rows"]]
    Y = np.zeros((N, len(stored["tag_names"])), dtype=np.float32)
    Y[rows[rows >= 0], stored["tag_cols"][rows >= 0]] = 1
    return features @ turned.astype(np.float32).T, Y


def dated_moments() -> Moments:
    """Times of events, one in three days; no places and no folders."""
    rng = np.random.default_rng(0)
    times = EVERY * rng.integers(EVENTS, size=N) + rng.uniform(0, 3600 * HOURS, N)
    return Moments(times, np.full((N, 2), np.nan), np.full(N, ""))


def product_rate() -> float:
    """Float32 operations a second in products of matrices on all threads, the median of five."""
    A, taken = np.random.default_rng(0).random((SIDE, SIDE), dtype=np.float32), []
    for _ in range(6):
        start = time.perf_counter()
        _ = A @ A
        taken.append(time.perf_counter() - start)
    return 2 * SIDE**3 / statistics.median(taken[1:])  # the first one gets its memory


def learn(collection: str) -> None:
    """Print what learning from a collection takes."""
    X, Y = coco() if collection == "coco" else synthetic_features(N, D, n_labels=N_TAGS)
    tags = [[f"tag {t}" for t in np.flatnonzero(row)] for row in Y]

    def seen(n: int) -> Extraction:
        files, digests = [f"{i:05}b.jpg" for i in range(n)], [f"{i:064x}" for i in range(n)]
        return Extraction(files, X[:n], digests, [], n, 0)

    moments = dated_moments() if collection == "synthetic, with times" else None
    Annotator(cache=False).fit(seen(100), tags[:100])  # warm-up: libraries load at first use
    rates = [product_rate()]
    with Measure() as measured:
        annotator = Annotator(cache=False).fit(seen(N), tags, moments=moments)
    rates.append(product_rate())
    n_tags = len(annotator.vocabulary_.names_)
    kept = ("cpu_seconds", "wall_seconds", "stolen_share", "peak_extra_bytes")
    taken = {name: measured.as_dict()[name] for name in kept}
    taken["operations_per_second"] = statistics.mean(rates)
    print(json.dumps({"photographs": N, "tags": n_tags, **taken}))


def many_tags(n_tags: int) -> None:
    """Print how long a space of so many tags takes, and plain products of the same sizes."""
    X, Y = synthetic_features(N, D, n_labels=n_tags)
    space = SemanticSpace(n_landmarks=LANDMARKS, random_state=0)
    space.fit(X[: 2 * LANDMARKS], Y[: 2 * LANDMARKS])  # warm-up
    rng = np.random.default_rng(0)
    K = rng.random((N, LANDMARKS), dtype=np.float32)
    weights = rng.random((LANDMARKS, n_tags))
    taken: dict[str, list[float]] = {"fit": [], "products": []}
    for _ in range(REPEATS):
        start = time.perf_counter()
        space.fit(X, Y)
        taken["fit"].append(time.perf_counter() - start)
        start = time.perf_counter()
        _ = X @ X[:LANDMARKS].T
        gram = (K.T @ K).astype(np.float64)
        _ = gram @ weights  # as much work as solving with a triangle, twice
        _ = weights.T @ weights
        taken["products"].append(time.perf_counter() - start)
    fit, products = (statistics.median(taken[what]) for what in ("fit", "products"))
    print(json.dumps({"tags": n_tags, "fit_seconds": fit, "product_seconds": products}))


def measure() -> dict[str, Any]:
    """Measure all of it."""
    collections = ["synthetic", "synthetic, with times"]
    collections += ["coco"] if (DATA / "coco.npz").exists() else []
    found: dict[str, Any] = {"features": D, "landmarks": LANDMARKS, "fit": {}, "many_tags": []}
    for collection in collections:
        rows = [run_json("-m", "benchmarks.learning", "learn", collection) for _ in range(REPEATS)]
        row = sorted(rows, key=lambda row: row["wall_seconds"])[REPEATS // 2]
        found["fit"][collection] = row
        say(
            f"{collection}: {row['wall_seconds']:.1f} s, {row['cpu_seconds']:.1f} s of CPU, "
            f"host's share {row['stolen_share']:.0%}, "
            f"products at {row['operations_per_second'] / 1e9:.0f} GFLOP/s"
        )
    for n_tags in MANY_TAGS:
        row = run_json("-m", "benchmarks.learning", "tags", str(n_tags))
        found["many_tags"].append(row)
        say(f"{n_tags:,} tags: {row['fit_seconds']:.2f} s, products {row['product_seconds']:.2f} s")
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["learn"]:
        learn(sys.argv[2])
    elif sys.argv[1:2] == ["tags"]:
        many_tags(int(sys.argv[2]))
    else:
        print(json.dumps(measure()))
