"""How frequent labels are in new images, compared with the images they were learned from."""

from __future__ import annotations

import numpy as np

from tagkin.arrays import logit

__all__ = ["frequency_levels"]

_ROUNDS = 5  # few, so the shares of labels stay spread out
_STEP = 0.05  # between neighbouring shares, as a logarithm


def frequency_levels(counts: np.ndarray, n: int) -> np.ndarray:
    """Return how much less frequent labels are in new images, as log-odds (D,), at most 0.

    Chance decides which of many rare labels are on some of n images. On other images they are
    rarer: labels on 2 to 4 of 20 photographs of COCO were half as frequent on 800 others. How many
    labels are on 1, 2, 3 … images tells by how much (empirical Bayes),

        lₜ = min(0, logit E[p | rₜ] − logit(rₜ / n)),

    where rₜ is the number of images with label t, binomial with n and p, given that it is not 0.
    The distribution of p over all labels starts out uniform in log p, and a few rounds of
    expectation maximisation fit it to the counts. No label is expected more often than it was seen.

    Parameters
    ----------
    counts : int array of shape (D,)
        Number of images with each label. A label on no image or all images has a level of 0.
    n : int
        Number of images.
    """
    counts = np.asarray(counts)
    levels, seen = np.zeros(len(counts)), (counts > 0) & (counts < n)
    if not seen.any():
        return levels
    r, place, n_labels = np.unique(counts[seen], return_inverse=True, return_counts=True)
    low, high = np.log(0.1 / n), np.log(1 - 0.5 / n)
    p = np.exp(np.linspace(low, high, int((high - low) / _STEP) + 2))
    log_likelihood = r[:, None] * np.log(p) + (n - r)[:, None] * np.log1p(-p)
    log_likelihood -= np.log(-np.expm1(n * np.log1p(-p)))  # given that the count is not 0
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    weights = np.full(len(p), 1 / len(p))
    for _ in range(_ROUNDS):
        weights = n_labels @ _posterior(likelihood, weights) / n_labels.sum()
    expected = _posterior(likelihood, weights) @ p
    level = np.minimum(logit(expected) - logit(r / n), 0)
    levels[seen] = level[place]
    return levels


def _posterior(likelihood: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the probability of each share, given a count; rows sum to 1."""
    joint = likelihood * weights
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))
