"""What each backbone brings on photographs, and what it costs.

    python -m experiments.backbones            # the built-in backbones
    python -m experiments.backbones efficientnet-lite0-whole PATH.onnx

Photographs and expert labels are those of `photos` in the folder TAGKIN_DATA, or in ../shared/data.
Of its 1,000 training photographs some are drawn to learn from and the others are held out; its test
photographs are not looked at. Intervals are a paired bootstrap over the photographs held out.
Features are kept in build/backbones.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse

from experiments.bootstrap import compare, resample_weights, weighted_map
from experiments.datasets import load_photos
from tagkin import RidgeTransfer, SemanticSpace, TagProp
from tagkin.arrays import to_numpy
from tagkin.evaluation import mean_average_precision
from tagkin.features import BACKBONES, Backbone, FeatureCache, extract, get_backbone
from tagkin.images import decode, read_bytes
from tagkin.transfer import KinReadout

ROOT = Path(__file__).parent.parent
FOLDER = Path(os.environ.get("TAGKIN_DATA", ROOT.parent / "shared" / "data")) / "photos"
METHODS = ("TagProp", "kernel ridge", "KinReadout")
SIZES, DRAWS, RESAMPLES, TIMED = (100, 600), 12, 200, 30


def scores(X: np.ndarray, Y: scipy.sparse.csr_array, known: np.ndarray, new: np.ndarray) -> list:
    """Scores of new photographs by each of the methods, in one space.

    Parameters
    ----------
    X, Y : arrays of shape (N, d) and (N, D)
    known, new : rows to learn from, and to score

    Returns
    -------
    scores : three arrays of shape (len(new), D)
    """
    space = SemanticSpace().fit(X[known], Y[known])
    old, embeddings = space.transform(X[known]), space.transform(X[new])
    methods = (
        TagProp(n_neighbors=100, weights="distance", sigmoids=False).fit(old, Y[known]),
        RidgeTransfer.of_space(space),
        KinReadout().fit(old, Y[known]),
    )
    return [to_numpy(method.decision_function(embeddings)) for method in methods]


def measured(
    X: np.ndarray, Y: scipy.sparse.csr_array, train: np.ndarray, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """MAP of each method (3,) and in each resample (3, RESAMPLES), means over the draws."""
    values, resampled = np.zeros(3), np.zeros((3, RESAMPLES))
    for draw in range(DRAWS):
        order = np.random.default_rng(draw).permutation(train)
        known, new = np.sort(order[:size]), np.sort(order[size:])
        weights = resample_weights(len(new), RESAMPLES, draw)
        for k, found in enumerate(scores(X, Y, known, new)):
            values[k] += mean_average_precision(Y[new], found) / DRAWS
            resampled[k] += weighted_map(Y[new], found, weights) / DRAWS
    return values, resampled


def milliseconds(backbone: Backbone, files: list[Path]) -> float:
    """Processor time per photograph, decoded and seen one by one."""
    seen = 0.0
    for number, file in enumerate(files[: TIMED + 1]):
        start = time.process_time()
        pixels = decode(read_bytes(file), min_side=backbone.min_side)
        backbone(backbone.prepare(pixels)[None])
        seen += (time.process_time() - start) if number else 0.0  # the first one warms up
    return 1000 * seen / min(TIMED, len(files) - 1)


def main(names: list[str]) -> None:
    """Print a table in Markdown for each number of photographs to learn from."""
    data = load_photos(FOLDER)
    files = [FOLDER / file for file in data.files or ()]
    Y = scipy.sparse.csr_array(data.labels)
    features, cost = {}, {}
    with FeatureCache(ROOT / "build" / "backbones") as cache:
        for name in names:
            backbone = get_backbone(name)
            features[name] = extract(files, backbone, cache=cache).features
            cost[name] = milliseconds(backbone, files)
    for size in SIZES:
        print(f"\nlearned from {size}, MAP on the other {len(data.train) - size}:\n")
        print("| setting | " + " | ".join(METHODS) + " | ms |\n|---|" + "---:|" * 4)
        first = None
        for name in names:
            found = measured(features[name], Y, np.asarray(data.train), size)
            first = first or found
            cells = []
            for k in range(3):
                gain = compare(found[1][k], first[1][k], found[0][k], first[0][k])
                less = f"{100 * gain.value:+.1f}, {100 * gain.low:+.1f} to {100 * gain.high:+.1f}"
                cells.append(f"{100 * found[0][k]:.1f} ({less})".replace("-", "−"))
            print(f"| `{name}` | {' | '.join(cells)} | {cost[name]:.0f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(BACKBONES))
