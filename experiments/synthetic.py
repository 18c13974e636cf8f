"""A small synthetic dataset with the interface of the real ones, for the smoke test."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from experiments.datasets import Dataset

__all__ = ["synthetic_dataset"]

_WORDS = ("dog", "cat", "car", "bus", "tree", "boat", "horse", "chair", "bird", "train")


def synthetic_dataset(n: int = 400, d: int = 24, seed: int = 0) -> Dataset:
    """Features mix one direction per label with noise; tags miss some labels and add others."""
    rng = np.random.default_rng(seed)
    D = len(_WORDS)
    chances = np.linspace(0.4, 0.12, D)
    labels = rng.random((n, D)) < chances
    X = np.maximum(labels @ rng.standard_normal((D, d)) + 1.5 * rng.standard_normal((n, d)), 0)
    tags = (labels & (rng.random((n, D)) < 0.6)) | (rng.random((n, D)) < 0.05)
    rows = rng.permutation(n)
    return Dataset(
        name="synthetic",
        files=None,
        features=X.astype(np.float32),
        labels=scipy.sparse.csr_array(labels, dtype=np.float32),
        label_names=list(_WORDS),
        tags=scipy.sparse.csr_array(tags, dtype=np.float32),
        tag_names=list(_WORDS),
        train=np.sort(rows[: 3 * n // 4]),
        test=np.sort(rows[3 * n // 4 :]),
    )
