"""Exact search against scikit-learn's brute force and FAISS's flat index, alternating.

``python -m benchmarks.search`` prints JSON: CPU seconds of each repeat in one thread, which do not
depend on other load on the machine, seconds of tagkin and FAISS with all cores, and the agreement
of results. Vectors have unit length, so that
Euclidean neighbours, which scikit-learn finds fastest, equal cosine neighbours.
"""

import json
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from benchmarks.process import say
from benchmarks.synthetic import synthetic_features
from tagkin.neighbors import ExactNeighbors

QUERIES, POINTS, DIMENSION, K, REPEATS = 10_000, 100_000, 81, 200, 3


def by_tagkin(queries: np.ndarray, points: np.ndarray) -> np.ndarray:
    """`tagkin.neighbors.ExactNeighbors`."""
    return np.asarray(ExactNeighbors().fit(points).kneighbors(queries, K).indices)


def by_faiss(queries: np.ndarray, points: np.ndarray) -> np.ndarray:
    """FAISS's flat index."""
    import faiss

    index = faiss.IndexFlatIP(DIMENSION)
    index.add(points)
    return index.search(queries, K)[1]


def by_scikit_learn(queries: np.ndarray, points: np.ndarray) -> np.ndarray:
    """scikit-learn's brute force."""
    search = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(points)
    return search.kneighbors(queries, return_distance=False)


PROGRAMS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "tagkin": by_tagkin,
    "FAISS IndexFlatIP": by_faiss,
    "scikit-learn brute": by_scikit_learn,
}


def measure() -> dict[str, Any]:
    """CPU seconds of every library, alternating, and the recall of their results by tagkin's."""
    X, _ = synthetic_features(QUERIES + POINTS, DIMENSION)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    queries, points = X[:QUERIES], X[QUERIES:]
    seconds: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    found = {}
    for _ in range(REPEATS):
        for name, program in PROGRAMS.items():
            start = time.process_time()
            found[name] = program(queries, points)
            seconds[name].append(time.process_time() - start)
            say(f"{name}: {seconds[name][-1]:.1f} s")
    return {
        "queries": QUERIES,
        "points": POINTS,
        "dimension": DIMENSION,
        "k": K,
        "seconds": seconds,
        "all_cores": all_cores(queries, points),
        "agreement": {name: recall(found["tagkin"], found[name]) for name in PROGRAMS},
    }


def all_cores(queries: np.ndarray, points: np.ndarray) -> dict[str, list[float]]:
    """Seconds of tagkin and FAISS's flat index with all cores, alternating."""
    programs = {name: PROGRAMS[name] for name in ("tagkin", "FAISS IndexFlatIP")}
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    with threadpool_limits(os.cpu_count()):
        for _ in range(REPEATS):
            for name, program in programs.items():
                start = time.perf_counter()
                program(queries, points)
                seconds[name].append(time.perf_counter() - start)
    return seconds


def recall(found: np.ndarray, exact: np.ndarray) -> float:
    """Share of the exact neighbours (n×k) that are found."""
    pairs = zip(found.tolist(), exact.tolist(), strict=True)
    return float(np.mean([len(set(row) & set(truth)) / len(truth) for row, truth in pairs]))


if __name__ == "__main__":
    import faiss  # noqa: F401  (loaded first, so that its threads are limited, too)

    with threadpool_limits(1):
        print(json.dumps(measure()))
