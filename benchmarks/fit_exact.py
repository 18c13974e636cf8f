"""Fit tagkin's exact space and write the result in the format of the peers' scripts.

Usage: ``python -m benchmarks.fit_exact N OUTPUT.npz [float64]``, from float32 features without it.
"""

import sys
from typing import Any

import numpy as np

from benchmarks.against_peers import DIMENSION, N_COMPONENTS, REGULARIZATION
from benchmarks.peers.measure import Measure
from benchmarks.synthetic import synthetic_features
from tagkin import SemanticSpace


def main(n: int, target: str, dtype: str = "float32") -> None:
    """Measure one fit on n images."""
    X, Y = synthetic_features(n, DIMENSION)
    X = X.astype(dtype)
    space = SemanticSpace(REGULARIZATION, n_landmarks=n, n_components=N_COMPONENTS, scaling="none")
    space.fit(X[:100], Y[:100])  # warm-up: libraries load at first use
    with Measure() as measured:
        space.fit(X, Y)
    answer: dict[str, Any] = {
        "projection": space.transform(X),
        "correlations": space.correlations_,
        **measured.as_dict(),
    }
    np.savez(target, **answer)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
