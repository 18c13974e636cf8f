"""TagProp on Corel5k's published neighbourhoods, 2PKNN, and the metrics.

``python -m benchmarks.transfer`` prints JSON.
"""

import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.process import ROOT, say
from benchmarks.synthetic import synthetic_features
from tagkin.evaluation import evaluate
from tagkin.transfer import TagProp, TwoPassKNN

FOLDER = Path(os.environ.get("TAGKIN_DATA", ROOT.parent / "shared" / "data"))

# The original program (C, two threads), as reported for a similar machine: loss and seconds.
ORIGINAL = {"rank": (1.5288, 5.1), "rank and sigmoids": (0.4094, 46.9)}


def peak_bytes() -> int:
    """Peak memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def tagprop() -> list[dict[str, Any]]:
    """Loss and time of both settings; empty if the data is missing."""
    path = FOLDER / "corel5k_tagprop.npz"
    if not path.exists():
        return []
    data = np.load(path)
    neighbors = data["neighbors"].astype(np.int64)
    labels = np.unpackbits(data["labels"], axis=1)[:, : int(data["n_labels"])]
    rows = []
    for setting, (loss, seconds) in ORIGINAL.items():
        model = TagProp(sigmoids=setting != "rank", monotone=False)
        times = []
        for _ in range(3):
            start = time.perf_counter()
            model.fit_neighbors(neighbors, np.zeros(neighbors.shape), labels)
            times.append(time.perf_counter() - start)
        rows.append(
            {
                "setting": setting,
                "loss": model.loss_,
                "seconds": float(np.median(times)),
                "original_loss": loss,
                "original_seconds": seconds,
            }
        )
        say(f"TagProp, {setting}: {rows[-1]}")
    return rows


def two_passes() -> dict[str, Any]:
    """5,000 queries against 80,000 images with 80 labels."""
    X, Y = synthetic_features(85_000, 81)
    model = TwoPassKNN(5).fit(X[5000:], Y[5000:])
    start = time.perf_counter()
    found = model.kneighbors(X[:5000])
    middle = time.perf_counter()
    model.score_neighbors(*found)
    say(f"2PKNN: {middle - start:.1f} s for the first pass")
    return {"first_pass": middle - start, "second_pass": time.perf_counter() - middle}


def measures() -> dict[str, Any]:
    """`evaluate` on 35,000 images × 5,000 labels."""
    rng = np.random.default_rng(0)
    Y = scipy.sparse.random_array((35_000, 5000), density=0.001, rng=rng, format="csr")
    Y.data[:] = 1
    S = rng.random((35_000, 5000), dtype=np.float32)
    before = peak_bytes()
    start = time.perf_counter()
    evaluate(Y, S)
    seconds = time.perf_counter() - start
    say(f"evaluate: {seconds:.1f} s")
    return {"seconds": seconds, "peak_bytes": peak_bytes() - before, "score_bytes": S.nbytes}


if __name__ == "__main__":
    # the metrics come last: their peak memory is the highest
    print(json.dumps({"tagprop": tagprop(), "two_passes": two_passes(), "measures": measures()}))
