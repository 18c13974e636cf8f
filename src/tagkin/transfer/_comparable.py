"""Make the scores of linear methods comparable across labels, with held-out images.

A linear method learns each label alone. A score above the average means more for some labels than
for others: it depends on the number of images with the label and on how well they separate.
σ(aₜ f + bₜ) is on the same scale for all labels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, as_block, check_groups, to_numpy
from tagkin.arrays.linalg import matmul
from tagkin.calibration.mixture import MOST_SCORES, Columns, fit_mixture, share_logits
from tagkin.transfer.neighbor_lists import on_device_of

__all__ = ["Linear", "as_log_odds"]

Linear = tuple[np.ndarray, np.ndarray]
"""Coefficients (m×D) and intercepts (D,)."""

_PARTS = 3  # each is held out in turn; more would take longer, for two numbers per label
_START_PULL = np.array([0.01, 1e6])  # of the common slope to 1, and of a common intercept to 0
_PULL = np.array([1.0, 0.1])  # of a label's slope and intercept to the common ones


def as_log_odds(
    learned: Linear,
    embeddings: Array,
    labels: scipy.sparse.csr_array,
    groups: Array | None,
    learn: Callable[[Array, scipy.sparse.csr_array], Linear],
) -> Linear:
    """Scale `learned` to log-odds; `learn` fits embeddings (N×m) and labels (N×D).

    Slopes are above 0, so the order of images under a label does not change. Images of the same
    group in `groups` (N,) are held out together. With too few images, return `learned` unchanged.

    Embeddings that were learned from the same labels already know the held-out labels. The scores
    of all labels are then too confident. They can be compared, but they are not probabilities.
    """
    part = _choose_parts(labels.shape[0], groups)
    if part is None:
        return learned
    slopes, intercepts = _fit_log_odds(embeddings, labels, part, learn)
    coef, intercept = learned
    return coef * slopes, intercept * slopes + intercepts


def _choose_parts(n_images: int, groups: Array | None) -> np.ndarray | None:
    """Return the part in which each image is held out (N,), or None if images are too few."""
    code = np.arange(n_images) if groups is None else check_groups(groups, n_images)
    n_groups = int(code.max(initial=-1)) + 1
    if n_groups < 4 * _PARTS:
        return None
    return np.asarray(np.random.default_rng(0).permutation(n_groups)[code] % _PARTS)


def _fit_log_odds(
    embeddings: Array,
    labels: scipy.sparse.csr_array,
    part: np.ndarray,
    learn: Callable[[Array, scipy.sparse.csr_array], Linear],
) -> Linear:
    """Fit aₜ and bₜ (D,) that make held-out labels most likely; see `fit_mixture`."""
    n, d = labels.shape
    step = -(-n * d // MOST_SCORES)
    scores, truth = [], []
    for number in range(_PARTS):
        known, new = np.flatnonzero(part != number), np.flatnonzero(part == number)[::step]
        coef, intercept = learn(embeddings[on_device_of(known, embeddings)], labels[known])
        block = to_numpy(as_block(embeddings[on_device_of(new, embeddings)], finite=False))
        scores.append(matmul(block, coef.astype(block.dtype)) + intercept.astype(block.dtype))
        truth.append(labels[new])
    held_out = np.concatenate(scores)
    mean = held_out.mean(axis=0, dtype=np.float64)
    held_out -= mean
    spread = max(float(np.sqrt(np.mean(np.square(held_out), dtype=np.float64))), 1e-12)
    held_out /= spread
    present = scipy.sparse.vstack(truth, format="csr")
    n_present = np.bincount(present.indices, minlength=d)
    judged = (n_present > 0) & (n_present < len(held_out))
    # scores cannot tell the images of other labels apart
    one = np.ones(1)
    columns = Columns([held_out], np.zeros((d, 1)), one, one, _START_PULL, _PULL, one > 0)
    mixture, _ = fit_mixture(columns, present, share_logits(present), np.ones(d), judged)
    offset = np.where(judged, mixture.intercepts, share_logits(labels))
    slope = mixture.weights[:, 0] / spread
    return slope, offset - slope * mean
