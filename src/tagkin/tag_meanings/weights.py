"""Weights of tag names relative to scores learned from photographs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from tagkin.arrays import expit, row_blocks
from tagkin.errors import InvalidInput
from tagkin.tag_meanings.meanings import NameWeights

__all__ = ["fit_name_weights"]

# Expected slope, intercept and weight for each kind of tag before any photograph is seen, and the
# spread of single tags. They count as much as _TAGS tags. Learned scores and prior are both in
# units of their standard deviation.
_EXPECTED = ((0.5, -4.0, 0.8), (0.5, -4.0, 0.0))  # with a known name, and without
# Minimum slope. An unknown name adds nothing, so its tag keeps its learned order, even if the few
# held-out photographs of the tag say otherwise.
_LEAST_SLOPE = (0.0, 0.25)
_SPREAD = np.diag([0.3, 1.5, 0.4]) ** 2
_TAGS = 4
# Folds that hold out the only photographs of a tag say nothing about its slope. A tag on fewer
# photographs than this has at least the slope that is typical of the others.
_ENOUGH = 6
# Number of photographs of a tag from which the prior of its name counts half: learned scores of
# frequent tags are good. On other training images of four collections with 20 and 50 photographs,
# frequent tags gained up to 1.2 MAP. Names still cost them up to 3.5 with 20 photographs.
_FREQUENT = 10

_ROUNDS = 12
_NEWTON_STEPS = 12
_MOVED = 1e-3  # smallest Newton step; the next step would be about its square
_CACHED = 2**15  # pairs that fit in a core's cache with all intermediate results
_IMAGES = 200, 4000  # maximum number of images per tag, with many tags and with few tags
_PAIRS = 4_000_000  # maximum number of pairs of tag and image


def fit_name_weights(
    S: np.ndarray, Z: np.ndarray, Y: scipy.sparse.csr_array, is_unknown: np.ndarray
) -> NameWeights:
    """Learn from scores S (n×D) of held-out images, priors Z (n×D), labels Y (n×D).

    Each tag has its own slope aₜ, intercept bₜ and weight wₜ. They follow a normal distribution
    for each kind of tag, which is learned with them (empirical Bayes). With few images, names have
    the weight that is typical of their kind. With more images, learned scores get better and the
    fitted weights get smaller. A tag with a misleading name gets weight 0.
    """
    if not S.shape == Z.shape == Y.shape or len(is_unknown) != S.shape[1]:
        raise InvalidInput(
            f"Scores, priors and labels must have the same shape; found {S.shape}, {Z.shape} "
            f"and {Y.shape}, and {len(is_unknown)} names."
        )
    center, scale = float(S.mean(dtype=np.float64)), float(_positive(S.std(dtype=np.float64)))
    prior_center = Z.mean(axis=0, dtype=np.float64)
    n_images = np.bincount(Y.indices, minlength=Y.shape[1])
    prior_scale = _positive(Z.std(axis=0, dtype=np.float64)) * (
        1 + np.minimum(n_images / _FREQUENT, 1)
    )

    def standardize(columns: slice) -> tuple[np.ndarray, np.ndarray]:
        z = (Z[:, columns] - prior_center[columns]) / prior_scale[columns]
        return (S[:, columns] - center) / scale, z

    theta, expected = _fit_pooled(_sample_pairs(standardize, Y), is_unknown.astype(np.int64))
    slopes, intercepts, weights = theta.T.copy()
    return NameWeights(
        center, scale, prior_center, prior_scale, slopes, intercepts, weights, expected
    )


class _Pairs(NamedTuple):
    """A sample of the images of each tag."""

    x: np.ndarray
    """(s, 1, z), the factors of slope, intercept and weight, shape (D, 3, m)."""
    y: np.ndarray
    """Whether the image has the tag, shape (D, m)."""
    counts: np.ndarray
    """Number of images that each sampled image represents, shape (D, m)."""


def _sample_pairs(
    standardize: Callable[[slice], tuple[np.ndarray, np.ndarray]], Y: scipy.sparse.csr_array
) -> _Pairs:
    """Return all images of each tag, or a weighted sample if there are too many."""
    n, n_tags = Y.shape
    fewest, most = _IMAGES
    n_kept = min(n, most, max(fewest, _PAIRS // n_tags))
    x = np.ones((n_tags, 3, n_kept), dtype=np.float32)
    pairs = _Pairs(x, *(np.empty((n_tags, n_kept), dtype=np.float32) for _ in range(2)))
    rng = np.random.default_rng(0)
    by_tag = scipy.sparse.csc_array(Y)
    for columns in row_blocks(n_tags, 24 * n):
        s, z = standardize(columns)
        has_tag = by_tag[:, columns].toarray() > 0
        for j, tag in enumerate(range(*columns.indices(n_tags))):
            images, counts = _sample(has_tag[:, j], n_kept, rng)
            x[tag, 0], x[tag, 2] = s[images, j], z[images, j]
            pairs.y[tag], pairs.counts[tag] = has_tag[images, j], counts
    return pairs


def _sample(
    has_tag: np.ndarray, n_kept: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Sample images (m,) of a tag, at most half of them with it; also return their counts."""
    if len(has_tag) == n_kept:
        return np.arange(n_kept), np.ones(n_kept)
    present, absent = np.flatnonzero(has_tag), np.flatnonzero(~has_tag)
    n_present = min(len(present), max(n_kept // 2, n_kept - len(absent)))
    chosen = (
        rng.choice(present, n_present, replace=False),
        rng.choice(absent, n_kept - n_present, False),
    )
    counts = [
        np.full(len(part), len(whole) / max(len(part), 1))
        for part, whole in zip(chosen, (present, absent), strict=True)
    ]
    return np.concatenate(chosen), np.concatenate(counts)


def _positive(scale: np.ndarray) -> np.ndarray:
    """Return the standard deviations, with 1 in place of 0."""
    return np.where(scale > 1e-12, scale, 1.0)


# --- the regression ----------------------------------------------------------------------


def _fit_pooled(pairs: _Pairs, kinds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit coefficients (D, 3) of all tags, and their means (2, 3) for each kind.

    Expectation maximisation with Laplace's approximation alternates between the coefficients and
    the means and covariances of each kind.
    """
    start = np.array(_EXPECTED)
    means, covariances = start.copy(), np.stack([_SPREAD] * 2)
    theta = means[kinds]
    least = np.zeros_like(theta)
    least[:, 0] = np.array(_LEAST_SLOPE)[kinds]
    least[:, 1] = -np.inf  # an intercept may have any sign
    for _ in range(_ROUNDS):
        precisions = np.linalg.inv(covariances)
        theta, curvature = _descend(theta, least, pairs, means[kinds], precisions[kinds])
        uncertainty = np.linalg.inv(curvature)
        for kind in range(2):
            of_kind = kinds == kind
            n = of_kind.sum() + _TAGS
            means[kind] = (theta[of_kind].sum(axis=0) + _TAGS * start[kind]) / n
            if kind == 1:
                means[kind, 2] = 0.0
            deviations, shift = theta[of_kind] - means[kind], start[kind] - means[kind]
            spread = deviations.T @ deviations + uncertainty[of_kind].sum(axis=0)
            covariances[kind] = (spread + _TAGS * (_SPREAD + np.outer(shift, shift))) / n
    few = (pairs.y * pairs.counts).sum(axis=1) < _ENOUGH
    if few.any():
        typical = np.median(theta[~few, 0]) if not few.all() else start[1, 0]
        least[few, 0] = np.maximum(least[few, 0], typical)
        theta = np.maximum(theta, least)
        theta, _ = _descend(theta, least, pairs, means[kinds], precisions[kinds])
    theta[kinds == 1, 2] = 0.0
    return theta, means


def _descend(
    theta: np.ndarray,
    least: np.ndarray,
    pairs: _Pairs,
    means: np.ndarray,
    precisions: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Run Newton's method for all tags; coefficients stay at `least` (D, 3) or above.

    Returns the coefficients (D, 3) and the last computed curvature (D, 3, 3) of each tag.
    """
    theta, curvature = theta.copy(), np.empty((len(theta), 3, 3))
    moving = np.arange(len(theta))
    for _ in range(_NEWTON_STEPS):
        current = theta[moving]
        gradient, hessian = _derivatives(current, moving, pairs, means[moving], precisions[moving])
        curvature[moving] = hessian
        fixed = (current == least[moving]) & (gradient > 0)
        gradient[fixed] = 0
        hessian = np.where(fixed[:, :, None] | fixed[:, None, :], 0, hessian)
        hessian += np.eye(3) * fixed[:, :, None]
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        new = np.maximum(current - np.clip(step, -2, 2), least[moving])
        theta[moving] = new
        moving = moving[np.abs(new - current).max(axis=1) >= _MOVED]
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
    """Return gradient (m, 3) and curvature (m, 3, 3) of the negative log posterior of tags (m,)."""
    gradient = np.einsum("tab,tb->ta", precisions, theta - means)
    curvature = precisions.copy()
    step = max(1, _CACHED // pairs.y.shape[1])
    for rows in (slice(start, start + step) for start in range(0, len(tags), step)):
        selected: Any = tags[rows]
        if selected[-1] - selected[0] == len(selected) - 1:  # contiguous, so a slice avoids a copy
            selected = slice(selected[0], selected[-1] + 1)
        x, y, counts = (part[selected] for part in pairs)
        p = expit((theta[rows, None].astype(np.float32) @ x)[:, 0])
        gradient[rows] += (x @ (counts * (p - y))[..., None])[..., 0]
        p -= p * p
        p *= counts  # second derivative of the loss
        curvature[rows] += (x * p[:, None]) @ x.transpose(0, 2, 1)
    return gradient, curvature
