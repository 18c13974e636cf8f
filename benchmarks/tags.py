"""Denoising, χ² view, space and projection of COCO's tagged images, end to end.

``python -m benchmarks.tags`` prints JSON: seconds of each step, and peak memory. Without COCO's
features, synthetic ones of the same size are used.
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
from tagkin import SemanticSpace, TagDenoiser, Vocabulary
from tagkin.space.views import Chi2View

FOLDER = Path(os.environ.get("TAGKIN_DATA", ROOT.parent / "shared" / "data"))


def collection() -> tuple[np.ndarray, scipy.sparse.csr_array]:
    """Features (38,262 × 256) and tags (38,262 × 527)."""
    path = FOLDER / "coco.npz"
    if not path.exists():
        X, Y = synthetic_features(38_262, 256, n_labels=527)
        return X, scipy.sparse.csr_array(Y)
    data = np.load(path)
    tagged = data["has_tags"]
    tags = scipy.sparse.csr_array(
        (np.ones(len(data["tag_rows"]), np.float32), (data["tag_rows"], data["tag_cols"])),
        shape=(len(tagged), len(data["tag_names"])),
    )
    return data["features"][tagged].astype(np.float32) * data["scale"], tags[tagged]


def measure() -> dict[str, Any]:
    """Seconds of each step, and peak memory of the process."""
    X, tags = collection()
    seconds = {}
    start = time.perf_counter()
    denoised = TagDenoiser(blend=1.0).fit_transform(X, tags)
    seconds["denoising"] = time.perf_counter() - start
    say(f"denoised: {seconds}")
    start = time.perf_counter()
    space = SemanticSpace(n_landmarks=2048, text_view=Chi2View(random_state=0), random_state=0)
    space.fit(X, denoised)
    seconds["χ² view and space"] = time.perf_counter() - start
    start = time.perf_counter()
    space.transform(X)
    seconds["projection"] = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"images": len(X), "seconds": seconds, "peak_bytes": peak, "vocabulary": vocabulary()}


def vocabulary() -> float:
    """Seconds for a label matrix of 100,000 images × 5,000 tags, three per image."""
    drawn = np.random.default_rng(0).integers(0, 5000, (100_000, 3))
    lists = [[f"tag {tag}" for tag in row] for row in drawn]
    start = time.perf_counter()
    Vocabulary().fit_transform(lists)
    return time.perf_counter() - start


if __name__ == "__main__":
    print(json.dumps(measure()))
