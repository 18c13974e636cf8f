"""Probabilities from scores if most labels are rare, with parameters shared by all labels.

A label's scores are summarised in at most 128 groups of neighbouring ranks. Everything else is
computed from these tables (D, G), whatever the number of images.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from tagkin.arrays import Array, row_blocks
from tagkin.arrays.labels import count_below, read_scores

__all__ = ["Prior", "ScoreTable", "newton_step", "summarize"]

_GROUPS = 128
_LARGEST = 0.5  # most that `newton_step` changes a slope or intercept, because it checks no loss
_LINK = np.array([1.0, 0.0])  # slope and intercept that leave the link unchanged


@dataclass(frozen=True)
class ScoreTable:
    """Images of each label in groups by score, highest first: arrays of shape (D, G).

    A group may be empty; images with equal scores are in one group.
    """

    lowest: np.ndarray  # lowest score of the group
    mean: np.ndarray  # mean score
    count: np.ndarray  # number of images
    positives: np.ndarray  # number of images with the label


@dataclass(frozen=True)
class Prior:
    """The normal prior of the sigmoids of all labels."""

    mean: np.ndarray = field(default_factory=_LINK.copy)  # (2,)
    precision: np.ndarray = field(default_factory=lambda: np.eye(2))

    @classmethod
    def of(cls, sigmoids: np.ndarray, curvature: np.ndarray) -> Prior:
        """Return the most likely prior of sigmoids (D, 2) with curvature (D, 2, 2)."""
        n_labels = len(sigmoids)
        # one more label, at the link with unit variance, regularises a vocabulary of one label
        mean = (sigmoids.sum(axis=0) + _LINK) / (n_labels + 1)
        offset = sigmoids - mean
        (a, b), (_, c) = curvature.transpose(1, 2, 0)
        scaled = np.stack([c, -b, -b, a], axis=1) / (a * c - b * b)[:, None]
        spread = offset.T @ offset + scaled.sum(axis=0).reshape(2, 2)  # of the inverses
        covariance = (spread + np.eye(2)) / (n_labels + 1)
        return cls(mean, np.linalg.inv(covariance))

    def added(
        self, gradient: np.ndarray, curvature: np.ndarray, sigmoids: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Add the prior to the gradient (D, 2) and Hessian (D, 2, 2) of a loss."""
        return gradient + (sigmoids - self.mean) @ self.precision, curvature + self.precision


def summarize(S: Array, labels: csr_array) -> ScoreTable:
    """Group every label's images by rank: one by one at the top, wider further down."""
    n, n_labels = S.shape
    # positives are at the top: group sizes grow with the rank
    ends = np.unique(np.ceil(np.geomspace(1, n, _GROUPS)).astype(np.intp))
    tables = np.empty((4, n_labels, len(ends)))
    by_label = csr_array(labels.T)
    for columns in row_blocks(n_labels, 40 * n + 64 * labels.nnz // n_labels):
        scores = np.ascontiguousarray(read_scores(S, slice(None), columns=columns, finite=True).T)
        tables[:, columns] = _summarize_rows(scores, by_label[columns], ends)
    return ScoreTable(*tables)


def _summarize_rows(scores: np.ndarray, positives: csr_array, ends: np.ndarray) -> np.ndarray:
    """Return the four tables for a block of labels; rows are labels."""
    n_rows, n = scores.shape
    shape = n_rows, len(ends)
    ascending = np.sort(scores, axis=1)
    lowest = ascending[:, n - ends]
    row = np.repeat(np.arange(n_rows), len(ends))
    # a group ends where its lowest score does, not between equal scores
    start = count_below(ascending, row, lowest.ravel()).reshape(shape)
    count = np.diff(n - start, axis=1, prepend=0)
    sums = np.zeros((n_rows, n + 1))
    np.cumsum(ascending, axis=1, dtype=np.float64, out=sums[:, 1:])
    total = np.diff(sums[:, -1:] - np.take_along_axis(sums, start, axis=1), axis=1, prepend=0)
    highest = np.take_along_axis(ascending, np.minimum(start + np.maximum(count, 1), n) - 1, axis=1)
    mean = np.clip(total / np.maximum(count, 1), lowest, highest)  # exact for equal scores

    row = np.repeat(np.arange(n_rows), np.diff(positives.indptr))
    reached = count_below(lowest[:, ::-1], row, scores[row, positives.indices], or_equal=True)
    group = row * len(ends) + len(ends) - reached
    n_positives = np.bincount(group, minlength=n_rows * len(ends)).reshape(shape)
    return np.stack([lowest, mean, count, n_positives])


def newton_step(sigmoids: np.ndarray, gradient: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """Return sigmoids (D, 2) after a bounded Newton step; slopes stay at 0 or above.

    `gradient` (D, 2) and `curvature` (D, 2, 2) are the gradient and the Hessian of the loss.
    """
    step = _newton_direction(sigmoids, gradient, curvature)
    step *= np.minimum(1, _LARGEST / np.maximum(np.abs(step).max(axis=1), 1e-12))[:, None]
    new = sigmoids - step
    new[:, 0] = np.maximum(new[:, 0], 0)
    return new


def _newton_direction(
    sigmoids: np.ndarray, gradient: np.ndarray, curvature: np.ndarray
) -> np.ndarray:
    """Return the step that Newton's method subtracts from the sigmoids, (D, 2)."""
    (a, b), (_, c) = curvature.transpose(1, 2, 0)
    g, h = gradient.T
    step = np.stack([c * g - b * h, a * h - b * g], axis=1) / (a * c - b * b)[:, None]
    held = (sigmoids[:, 0] == 0) & (g > 0)
    step[held, 0] = 0
    step[held, 1] = h[held] / c[held]
    return step
