"""How much each of two scores counts, per label: learned from images that were held out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from tagkin.arrays import expit

__all__ = ["Mixture", "fit_mixture"]

_ROUNDS = 40
_MOVED = 1e-3
_LARGEST = 0.5  # of a step
_NEAR = 0.01  # so far from where derivatives were computed a parabola does
_CACHED = 2**17  # pairs of images and labels that a core's cache holds
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

    def spread(self, columns: np.ndarray, n_labels: int) -> Mixture:
        """One of D = `n_labels` labels, of which these columns have the weights learned here.

        The others have the mean weights of those, and no offset.
        """
        first, second = (np.full(n_labels, float(part.mean())) for part in self[:2])
        offset = np.zeros(n_labels)
        first[columns], second[columns], offset[columns] = self
        return Mixture(first, second, offset)


def fit_mixture(
    u: np.ndarray,
    v: np.ndarray,
    labels: scipy.sparse.csr_array,
    shrinkage: float = 30.0,
    start: Mixture | None = None,
) -> Mixture:
    """The mixture of logits u and v (N×D) under which the labels (N×D) are most likely.

    Each label has weights of its own, drawn to those that all have in common: the loss is
    Σ log(1 + exp(∓f)) + s/2 Σₜ [(aₜ − ā)² + (bₜ − b̄)²]. A label on few images has too little
    to say against s, and keeps to the common weights. From `start`, where one is near, it takes
    fewer rounds to the same.
    """
    sums = _Likelihood(u, v, labels)
    common = np.full(2, 0.5)
    theta = np.column_stack([np.tile(common, (labels.shape[1], 1)), np.zeros(labels.shape[1])])
    if start is not None:
        theta = np.column_stack(start)
        common = theta[:, :2].mean(axis=0)
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
    """Sums over the images of the logistic loss's derivatives, for each label."""

    def __init__(self, u: np.ndarray, v: np.ndarray, labels: scipy.sparse.csr_array):
        # label after label, so that some of them can be looked at alone
        self.u, self.v = (np.ascontiguousarray(part.T, dtype=np.float32) for part in (u, v))
        n, d = labels.shape
        there = labels.tocoo()
        n_present = np.bincount(there.col, minlength=d)
        self.learned = (n_present > 0) & (n_present < n)
        values = (part[there.col, there.row] for part in (self.u, self.v))
        of_present = [np.bincount(there.col, there.data * some, d) for some in values]
        of_present.append(np.bincount(there.col, there.data, d))
        self._of_present = np.stack(of_present, axis=1)
        self._seen = np.full((d, 3), np.inf)  # where derivatives were last computed
        self._gradient, self._hessian = np.zeros((d, 3)), np.zeros((d, 3, 3))

    def at(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient (D×3) and Hessian (D×3×3) at the weights and offsets (D×3).

        Of labels that have hardly moved since, by what was found before: a parabola.
        """
        moved = np.abs(theta - self._seen).max(axis=1) > _NEAR
        far = np.flatnonzero(moved & self.learned)
        step = max(1, _CACHED // self.u.shape[1])
        for some in (far[start : start + step] for start in range(0, len(far), step)):
            self._gradient[some], self._hessian[some] = self._computed(some, theta[some])
        self._seen[far] = theta[far]
        since = np.where(self.learned[:, None], theta - self._seen, 0)
        return self._gradient + np.einsum("tab,tb->ta", self._hessian, since), self._hessian

    def _computed(self, some: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of some labels, from all images."""
        u, v = self.u[some], self.v[some]
        a, b, o = theta.T.astype(np.float32)[:, :, None]
        p = np.asarray(expit(a * u + b * v + o))
        gradient = np.stack([_dots(p, u), _dots(p, v), p.sum(axis=1)], axis=1)
        p -= p * p  # how much the loss bends
        by_u, by_v = p * u, p * v
        sums = [_dots(by_u, u), _dots(by_u, v), by_u.sum(axis=1)]
        sums += [_dots(by_v, v), by_v.sum(axis=1), p.sum(axis=1)]
        hessian = np.stack(sums, axis=1)[:, [[0, 1, 2], [1, 3, 4], [2, 4, 5]]]
        return gradient - self._of_present[some], hessian


def _dots(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Inner products of the rows, shape (D,)."""
    return np.einsum("dn,dn->d", x, y)
