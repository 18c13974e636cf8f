"""How much the name of a tag counts beside what was learned from photographs."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tagkin.arrays import expit, row_blocks
from tagkin.errors import InvalidInput
from tagkin.names.meanings import BORROWED, OWN, UNKNOWN

__all__ = ["NameWeights"]

# What is expected of slope, intercept and weight before any photograph is seen, for each kind of
# tag, and how far single tags are from it; as worth as much as what _TAGS tags say. Learned scores
# and prior are both in units of their standard deviation.
_EXPECTED = {
    UNKNOWN: (0.5, -4.0, 0.0),
    BORROWED: (0.5, -4.0, 0.6),
    OWN: (0.5, -4.0, 0.9),
}
_SPREAD = np.diag([0.3, 1.5, 0.4]) ** 2
_TAGS = 4

_ROUNDS = 12
_NEWTON_STEPS = 12
_MOVED = 1e-3  # by a step of Newton's; the next would be its square, or so
_CACHED = 2**15  # pairs that a core's cache holds, with all that is made of them
_IMAGES = 200, 4000  # from which one tag's weight is learned, at most: of many tags, and of few
_PAIRS = 4_000_000  # of tags and images, in all


class NameWeights(BaseEstimator):
    """Adds the prior of a tag's name to learned scores, as far as held-out images bear it out.

        log-odds = aₜ s + bₜ + wₜ z,    aₜ, wₜ ≥ 0,

    where s is the learned score and z the prior, both standardised. Slope aₜ, intercept bₜ and
    weight wₜ are the tag's own, with a normal distribution of their own for each kind of tag that
    is learned with them (empirical Bayes). With few images the names count as much as they usually
    do. As images come in, learned scores get better and the weights that fit get smaller, and a
    tag whose name misleads gets 0.

    Fit it on scores of images that they were not learned from.

    Attributes
    ----------
    center_, scale_ : float
        Mean and standard deviation of the learned scores.
    prior_center_, prior_scale_ : arrays of shape (D,)
        Of the prior, tag by tag.
    slopes_, intercepts_, weights_ : arrays of shape (D,)
        aₜ, bₜ and wₜ.
    expected_ : array of shape (3, 3)
        The means of (a, b, w) for tags that are unknown to the prior, borrow, or have classes of
        their own.
    """

    def fit(
        self, S: np.ndarray, Z: np.ndarray, Y: scipy.sparse.csr_array, kinds: np.ndarray
    ) -> Self:
        """Learn from held-out scores S (n×D), priors Z (n×D), labels Y (n×D) and kinds (D,)."""
        if not S.shape == Z.shape == Y.shape or len(kinds) != S.shape[1]:
            raise InvalidInput(
                f"Scores, priors and labels have one shape; found {S.shape}, {Z.shape} and "
                f"{Y.shape}, and {len(kinds)} kinds of tags."
            )
        self.center_, self.scale_ = (
            float(S.mean(dtype=np.float64)),
            float(_positive(S.std(dtype=np.float64))),
        )
        self.prior_center_ = Z.mean(axis=0, dtype=np.float64)
        self.prior_scale_: np.ndarray = _positive(Z.std(axis=0, dtype=np.float64))
        theta, self.expected_ = _fit_pooled(self._pairs(S, Z, Y), np.asarray(kinds))
        self.slopes_, self.intercepts_, self.weights_ = theta.T.copy()
        return self

    def combine(self, S: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Log-odds (n, D), float32, from learned scores and priors."""
        check_is_fitted(self)
        s, z = self._standardized(S, Z, slice(None))
        odds = self.slopes_ * s + self.intercepts_ + self.weights_ * z
        return odds.astype(np.float32)

    def name_shares(self, S: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """The part of the names (n, D) in the evidence for a tag, from 0 to 1.

        That is wₜ z of aₜ s + wₜ z, where what speaks against the tag counts as nothing.
        """
        check_is_fitted(self)
        s, z = self._standardized(S, Z, slice(None))
        learned, names = np.maximum(self.slopes_ * s, 0), np.maximum(self.weights_ * z, 0)
        total = learned + names
        return np.divide(names, total, out=np.zeros_like(total), where=total > 0)

    def with_slopes_of(self, other: NameWeights) -> NameWeights:
        """With slopes and weights that were learned elsewhere, and intercepts of its own.

        Log-odds from weights that were learned on different images so are of one scale, and a
        tag's images can stand in one ranking.
        """
        check_is_fitted(self)
        changed = NameWeights()
        changed.__dict__.update(self.__dict__)
        changed.slopes_ = other.slopes_ * (self.scale_ / other.scale_)
        changed.weights_ = other.weights_ * (self.prior_scale_ / other.prior_scale_)
        return changed

    def extended(self, kinds: np.ndarray) -> NameWeights:
        """With tags after those that were fitted, and the weights expected of their kinds.

        Their prior is standardised as that of the median tag.
        """
        check_is_fitted(self)
        more = NameWeights()
        n = len(kinds)
        expected = self.expected_[np.asarray(kinds, dtype=np.int64)].reshape(n, 3).T
        more.center_, more.scale_, more.expected_ = self.center_, self.scale_, self.expected_
        more.slopes_, more.intercepts_, more.weights_ = (
            np.append(known, new)
            for known, new in zip(
                (self.slopes_, self.intercepts_, self.weights_), expected, strict=True
            )
        )
        more.prior_center_, more.prior_scale_ = (
            np.append(known, np.full(n, np.median(known)))
            for known in (self.prior_center_, self.prior_scale_)
        )
        return more

    def reordered(self, positions: np.ndarray) -> NameWeights:
        """The same for tags in another order: those at these positions (D,) of this one."""
        check_is_fitted(self)
        new = NameWeights()
        new.__dict__.update(self.__dict__)
        for name in ("slopes_", "intercepts_", "weights_", "prior_center_", "prior_scale_"):
            setattr(new, name, getattr(self, name)[positions])
        return new

    def _standardized(
        self, S: np.ndarray, Z: np.ndarray, columns: slice
    ) -> tuple[np.ndarray, np.ndarray]:
        z = (Z[:, columns] - self.prior_center_[columns]) / self.prior_scale_[columns]
        return (S[:, columns] - self.center_) / self.scale_, z

    def _pairs(self, S: np.ndarray, Z: np.ndarray, Y: scipy.sparse.csr_array) -> _Pairs:
        """For each tag its images, or all that carry it and some that do not, which count more."""
        n, n_tags = S.shape
        fewest, most = _IMAGES
        kept = min(n, most, max(fewest, _PAIRS // n_tags))
        x = np.ones((n_tags, 3, kept), dtype=np.float32)
        pairs = _Pairs(x, *(np.empty((n_tags, kept), dtype=np.float32) for _ in range(2)))
        rng = np.random.default_rng(0)
        by_tag = scipy.sparse.csc_array(Y)
        for columns in row_blocks(n_tags, 24 * n):
            s, z = self._standardized(S, Z, columns)
            carried = by_tag[:, columns].toarray() > 0
            for j, tag in enumerate(range(*columns.indices(n_tags))):
                images, counts = _sampled(carried[:, j], kept, rng)
                x[tag, 0], x[tag, 2] = s[images, j], z[images, j]
                pairs.y[tag], pairs.counts[tag] = carried[images, j], counts
        return pairs


class _Pairs(NamedTuple):
    """Some images of each tag."""

    x: np.ndarray
    """(s, 1, z): what slope, intercept and weight are multiplied by, shape (D, 3, m)."""
    y: np.ndarray
    """Whether they carry the tag, shape (D, m)."""
    counts: np.ndarray
    """How many images each stands for, shape (D, m)."""


def _sampled(
    carried: np.ndarray, kept: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Images (m,) of a tag and how many each stands for: half of those kept carry it, at most."""
    if len(carried) == kept:
        return np.arange(kept), np.ones(kept)
    there, absent = np.flatnonzero(carried), np.flatnonzero(~carried)
    n_there = min(len(there), max(kept // 2, kept - len(absent)))
    chosen = rng.choice(there, n_there, replace=False), rng.choice(absent, kept - n_there, False)
    counts = [
        np.full(len(part), len(whole) / max(len(part), 1))
        for part, whole in zip(chosen, (there, absent), strict=True)
    ]
    return np.concatenate(chosen), np.concatenate(counts)


def _positive(scale: np.ndarray) -> np.ndarray:
    """Standard deviations, or 1 where nothing varies."""
    return np.where(scale > 1e-12, scale, 1.0)


# --- the regression ----------------------------------------------------------------------


def _fit_pooled(pairs: _Pairs, kinds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (D, 3) of all tags, and their means (3, 3) for each kind.

    Expectation maximisation with Laplace's approximation: coefficients given means and
    covariances of their kind, then those given the coefficients.
    """
    start = np.array([_EXPECTED[kind] for kind in (UNKNOWN, BORROWED, OWN)])
    means, covariances = start.copy(), np.stack([_SPREAD] * 3)
    theta = means[kinds]
    for _ in range(_ROUNDS):
        precisions = np.linalg.inv(covariances)
        theta, curvature = _descend(theta, pairs, means[kinds], precisions[kinds])
        uncertain = np.linalg.inv(curvature)
        for kind in range(3):
            of_kind = kinds == kind
            n = of_kind.sum() + _TAGS
            means[kind] = (theta[of_kind].sum(axis=0) + _TAGS * start[kind]) / n
            if kind == UNKNOWN:
                means[kind, 2] = 0.0
            around, moved = theta[of_kind] - means[kind], start[kind] - means[kind]
            spread = around.T @ around + uncertain[of_kind].sum(axis=0)
            covariances[kind] = (spread + _TAGS * (_SPREAD + np.outer(moved, moved))) / n
    theta[kinds == UNKNOWN, 2] = 0.0
    return theta, means


def _descend(
    theta: np.ndarray, pairs: _Pairs, means: np.ndarray, precisions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Newton's method for all tags; slopes and weights stay at 0 or above.

    Returns the coefficients (D, 3) and the curvature (D, 3, 3) where each was last looked at.
    """
    theta, curvature = theta.copy(), np.empty((len(theta), 3, 3))
    moving = np.arange(len(theta))
    for _ in range(_NEWTON_STEPS):
        here = theta[moving]
        gradient, bent = _derivatives(here, moving, pairs, means[moving], precisions[moving])
        curvature[moving] = bent
        held = (here == 0) & (gradient > 0)
        held[:, 1] = False  # an intercept may be anything
        gradient[held] = 0
        bent = np.where(held[:, :, None] | held[:, None, :], 0, bent)
        bent += np.eye(3) * held[:, :, None]
        step = np.linalg.solve(bent, gradient[..., None])[..., 0]
        new = here - np.clip(step, -2, 2)
        new[:, [0, 2]] = np.maximum(new[:, [0, 2]], 0)
        theta[moving] = new
        moving = moving[np.abs(new - here).max(axis=1) >= _MOVED]
        if not len(moving):
            break
    return theta, curvature


def _derivatives(
    theta: np.ndarray,
    tags: np.ndarray,
    pairs: _Pairs,
    means: np.ndarray,
    precisions: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient (m, 3) and curvature (m, 3, 3) of the negative log posterior of some tags (m,)."""
    gradient = np.einsum("tab,tb->ta", precisions, theta - means)
    curvature = precisions.copy()
    step = max(1, _CACHED // pairs.y.shape[1])
    for rows in (slice(start, start + step) for start in range(0, len(tags), step)):
        some: Any = tags[rows]
        if some[-1] - some[0] == len(some) - 1:  # next to each other: they need not be copied
            some = slice(some[0], some[-1] + 1)
        x, y, counts = (part[some] for part in pairs)
        p = expit((theta[rows, None].astype(np.float32) @ x)[:, 0])
        gradient[rows] += (x @ (counts * (p - y))[..., None])[..., 0]
        p -= p * p
        p *= counts  # how much the loss bends
        curvature[rows] += (x * p[:, None]) @ x.transpose(0, 2, 1)
    return gradient, curvature
