"""Whether a weight for each of two joined backbones brings anything: docs/models.md.

    python -m experiments.backbone_weights            # ten minutes on one core

The photographs are those of `experiments.backbones`, and so are the draws and intervals.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from experiments.backbones import FOLDER, METHODS, ROOT, SIZES, measured
from experiments.bootstrap import compare
from experiments.datasets import load_photos
from tagkin.features import FeatureCache, extract, get_backbone

PARTS = ("efficientnet-lite0-whole", "efficientnet-lite2-whole")
WEIGHTS = (1.0, 0.0, 0.5, 0.7, 1.4, 2.0, np.inf)
"""Of the second backbone, the first having 1; equal weights come first."""


def join(first: np.ndarray, second: np.ndarray, weight: float) -> np.ndarray:
    """Join features (n, d) and (n, e), each of unit length, the second multiplied by a weight."""
    angle = np.arctan(weight)
    parts = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in (first, second)]
    return np.hstack([np.cos(angle) * parts[0], np.sin(angle) * parts[1]]).astype(np.float32)


def main() -> None:
    """Print MAP and its difference from equal weights, for each weight."""
    data = load_photos(FOLDER)
    files = [FOLDER / (data.files or ())[i] for i in data.train]
    Y = scipy.sparse.csr_array(data.labels)[data.train]
    with FeatureCache(ROOT / "build" / "backbones") as cache:
        first, second = (extract(files, get_backbone(n), cache=cache).features for n in PARTS)
    method = METHODS.index("KinReadout")
    for size in SIZES:
        equal = None
        for weight in WEIGHTS:
            values, resampled = measured(
                join(first, second, weight), Y, np.arange(len(files)), size
            )
            value, resamples = values[method], resampled[method]
            equal = equal or (resamples, value)
            gain = compare(resamples, equal[0], value, equal[1])
            cells = f"{100 * gain.value:+.1f} ({100 * gain.low:+.1f} to {100 * gain.high:+.1f})"
            print(f"| {weight} | {size} | {100 * value:.1f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
