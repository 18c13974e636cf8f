"""Images of some kinds, with tags that are those of their kind."""

import numpy as np

from tagkin import SemanticSpace

SPACE = SemanticSpace(n_landmarks=1024)  # all images here are landmarks


def kinds(n=600, n_kinds=12, noise=0.5, seed=0):
    """Images of some kinds, three tags each, and their features."""
    rng = np.random.default_rng(seed)
    of = rng.integers(0, n_kinds, n)
    X = rng.standard_normal((n_kinds, 16))[of] + noise * rng.standard_normal((n, 16))
    Y = np.zeros((n, n_kinds))
    for step in (0, 1, 3):
        Y[np.arange(n), (of + step) % n_kinds] = 1
    return X, Y
