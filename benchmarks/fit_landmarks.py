"""Fit the space with landmarks, and time plain matrix products with as many operations.

Usage: ``python -m benchmarks.fit_landmarks N D R REPEATS``; prints JSON.
"""

import json
import statistics
import sys
import time

import numpy as np

from benchmarks.measuring import Measure
from benchmarks.synthetic import synthetic_features
from tagkin import SemanticSpace

BLOCK = 8192


def plain_products(X: np.ndarray, r: int) -> float:
    """Seconds of float32 matrix products with 2Ndr + Nr² operations, in blocks of rows."""
    n = len(X)
    S = np.ascontiguousarray(X[:r])
    K = np.ones((BLOCK, r), dtype=np.float32)
    start = time.perf_counter()
    for i in range(0, n, BLOCK):
        np.matmul(X[i : i + BLOCK], S.T, out=K[: min(BLOCK, n - i)])
    other = K.copy()
    # a general product of r×n/2 and n/2×r: 2 (N/2) r² operations
    for i in range(0, n // 2, BLOCK):
        rows = min(BLOCK, n // 2 - i)
        K[:rows].T @ other[:rows]
    return time.perf_counter() - start


def main(n: int, d: int, r: int, repeats: int) -> None:
    """Measure fits and products, alternating."""
    X, Y = synthetic_features(n, d)
    SemanticSpace().fit(X[:100], Y[:100])  # warm-up: libraries load at first use
    fits, cpu, products, peak = [], [], [], 0
    for _ in range(repeats):
        with Measure() as measured:
            SemanticSpace(n_landmarks=r, random_state=0).fit(X, Y)
        fits.append(measured.wall_seconds)
        cpu.append(measured.cpu_seconds)
        peak = max(peak, measured.peak_extra_bytes)
        products.append(plain_products(X, r))
    result = {
        "images": n,
        "features": d,
        "landmarks": r,
        "fit_seconds": statistics.median(fits),
        "cpu_seconds": statistics.median(cpu),
        "product_seconds": statistics.median(products),
        "ratio": statistics.median(f / p for f, p in zip(fits, products, strict=True)),
        "peak_bytes": peak,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
