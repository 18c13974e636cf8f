"""How much each of two scores counts, per label: learned from images that were held out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from tagkin.arrays import expit, row_blocks

__all__ = ["Mixture", "fit_mixture"]

_ROUNDS = 40
_MOVED = 1e-3
_LARGEST = 0.5  # of a step
_OFFSET = 1e-2  # a slight pull of offsets to 0, for labels on hardly any image


class Mixture(NamedTuple):
    """f = oₜ + aₜ u + bₜ v for two logits u and v of each label."""

    first: np.ndarray
    """a (D,), not below 0."""
    second: np.ndarray
    """b (D,), not below 0."""
    offset: np.ndarray
    """o (D,)."""

    def __call__(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Joined logits (n×D)."""
        return self.offset + self.first * u + self.second * v


def fit_mixture(
    u: np.ndarray, v: np.ndarray, labels: scipy.sparse.csr_array, shrinkage: float = 30.0
) -> Mixture:
    """The mixture of logits u and v (N×D) under which the labels (N×D) are most likely.

    Each label has weights of its own, drawn to those that all have in common: the loss is
    Σ log(1 + exp(∓f)) + s/2 Σₜ [(aₜ − ā)² + (bₜ − b̄)²]. A label on few images has too little
    to say against s, and keeps to the common weights.
    """
    sums = _Likelihood(u, v, labels)
    common = np.full(2, 0.5)
    theta = np.column_stack([np.tile(common, (labels.shape[1], 1)), np.zeros(labels.shape[1])])
    pull = np.array([shrinkage, shrinkage, _OFFSET])
    for _ in range(_ROUNDS):
        gradient, hessian = sums.at(theta)
        gradient += pull * (theta - np.append(common, 0.0))
        step = np.linalg.solve(hessian + np.diag(pull), gradient[..., None])[..., 0]
        # Newton's step, kept short where the loss is flat and it would go far
        step *= np.minimum(1, _LARGEST / np.maximum(np.abs(step).max(axis=1), 1e-12))[:, None]
        theta -= step
        # given the labels' own weights, the best common ones are their mean
        known = theta[sums.learned, :2]
        mean = known.mean(axis=0) if len(known) else common
        moved = max(np.abs(step).max(initial=0), np.abs(mean - common).max())
        common = mean
        if moved < _MOVED:
            break
    theta[~sums.learned] = [*common, 0.0]
    return Mixture(np.maximum(theta[:, 0], 0), np.maximum(theta[:, 1], 0), theta[:, 2])


class _Likelihood:
    """Sums over the images of the logistic loss's derivatives, for all labels at once."""

    def __init__(self, u: np.ndarray, v: np.ndarray, labels: scipy.sparse.csr_array):
        self.u, self.v = (np.asarray(part, dtype=np.float32) for part in (u, v))
        self.labels = labels.tocsr()
        self._of_all: np.ndarray | None = None
        n, d = labels.shape
        n_present = np.bincount(self.labels.indices, minlength=d)
        self.learned = (n_present > 0) & (n_present < n)

    def at(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient (D×3) and Hessian (D×3×3) at the weights and offsets (D×3)."""
        n, d = self.labels.shape
        gradient, hessian = np.zeros((d, 3)), np.zeros((d, 3, 3))
        a, b, o = theta.T.astype(np.float32)
        for rows in row_blocks(n, 32 * d):
            u, v = self.u[rows], self.v[rows]
            p = expit(a * u + b * v + o)
            error, bend = p - self._present(rows), p * (1 - p)
            by_u, by_v = bend * u, bend * v
            gradient += np.column_stack([_dots(error, u), _dots(error, v), error.sum(axis=0)])
            sums = [_dots(by_u, u), _dots(by_u, v), by_u.sum(axis=0)]
            sums += [_dots(by_v, v), by_v.sum(axis=0), bend.sum(axis=0)]
            hessian += np.stack(sums, axis=1)[:, [[0, 1, 2], [1, 3, 4], [2, 4, 5]]]
        gradient[~self.learned], hessian[~self.learned] = 0, 0
        return gradient, hessian

    def _present(self, rows: slice) -> np.ndarray:
        """Labels of some images, dense; made once where one block holds all images."""
        if rows.stop - rows.start < self.labels.shape[0]:
            return self.labels[rows].toarray()
        if self._of_all is None:
            self._of_all = self.labels.toarray()
        return self._of_all


def _dots(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Inner products of the columns, shape (D,)."""
    return np.einsum("nd,nd->d", x, y)
