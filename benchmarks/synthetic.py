"""Synthetic collections of any size: non-negative features, like a network's, and labels."""

import numpy as np


def synthetic_features(n: int, d: int, n_labels: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Features (n×d, float32) that depend on labels (n×n_labels, 3 per image), and the labels.

    As in real vocabularies, few labels are frequent and many are rare, and some are easier to
    recognise than others.
    """
    rng = np.random.default_rng(0)
    frequency = 1 / np.arange(2, n_labels + 2)
    frequency *= 3 / frequency.sum()
    Y = (rng.random((n, n_labels), dtype=np.float32) < frequency).astype(np.float32)
    directions = rng.standard_normal((n_labels, d), dtype=np.float32)
    directions *= rng.uniform(0.2, 1, size=(n_labels, 1)).astype(np.float32)
    X = rng.standard_normal((n, d), dtype=np.float32)
    for start in range(0, n, 10_000):
        rows = slice(start, start + 10_000)
        X[rows] = np.maximum(X[rows] + Y[rows] @ directions, 0)
    return X, Y
