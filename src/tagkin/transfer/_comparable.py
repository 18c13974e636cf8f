"""Scores of linear methods made comparable across labels, by images that were held out.

A linear method learns each label alone: how far above its average a score says that an image
carries a label differs from label to label, with the label's number of images and with how well
they are told from the rest. σ(aₜ f + bₜ) is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, as_block, check_groups, logit, matmul, to_numpy
from tagkin.transfer._lists import on_device_of
from tagkin.transfer.mixture import fit_mixture

__all__ = ["Linear", "as_log_odds"]

Linear = tuple[np.ndarray, np.ndarray]
"""Coefficients (m×D) and intercepts (D,)."""

_PARTS = 3  # in which images are held out
_FEWEST = 12  # images, or groups of images, below which no slope is learned
_MOST = 2**25  # held-out scores, at most: of so many images and all labels
_LEAST = 1e-3  # slope, so that a label's images stay in their order


def as_log_odds(
    found: Linear,
    embeddings: Array,
    labels: scipy.sparse.csr_array,
    groups: Array | None,
    learn: Callable[[Array, scipy.sparse.csr_array], Linear],
) -> Linear:
    """What was `found` by learning from embeddings (N×m) and labels (N×D), scaled to log-odds.

    The order of images under a label stays as it is: slopes are above 0. Images of one of the
    `groups` (N,) are held out together. Where there are too few to hold some out, nothing changes.

    Embeddings that were learned from the same labels know those that are held out here: that makes
    all labels surer than they should be, which does not keep them from being compared. Hence these
    are no probabilities.
    """
    part = _parts(labels.shape[0], groups)
    if part is None:
        return found
    slopes, intercepts = _log_odds(embeddings, labels, part, learn)
    coef, intercept = found
    return coef * slopes, intercept * slopes + intercepts


def _parts(n_images: int, groups: Array | None) -> np.ndarray | None:
    """Of each image (N,) the part in which it is held out; None where there are too few."""
    code = np.arange(n_images) if groups is None else check_groups(groups, n_images)
    n_groups = int(code.max(initial=-1)) + 1
    if n_groups < _FEWEST:
        return None
    return np.asarray(np.random.default_rng(0).permutation(n_groups)[code] % _PARTS)


def _log_odds(
    embeddings: Array,
    labels: scipy.sparse.csr_array,
    part: np.ndarray,
    learn: Callable[[Array, scipy.sparse.csr_array], Linear],
) -> Linear:
    """aₜ and bₜ (D,) under which held-out labels are most likely; see `fit_mixture`."""
    n, d = labels.shape
    step = -(-n * d // _MOST)
    scores, truth = [], []
    for number in range(_PARTS):
        known, new = np.flatnonzero(part != number), np.flatnonzero(part == number)[::step]
        coef, intercept = learn(embeddings[on_device_of(known, embeddings)], labels[known])
        some = to_numpy(as_block(embeddings[on_device_of(new, embeddings)], finite=False))
        scores.append(matmul(some, coef.astype(some.dtype)) + intercept.astype(some.dtype))
        truth.append(labels[new])
    held_out = np.concatenate(scores)
    mean = held_out.mean(axis=0, dtype=np.float64)
    held_out -= mean
    spread = max(float(np.sqrt(np.mean(np.square(held_out), dtype=np.float64))), 1e-12)
    held_out /= spread
    present = scipy.sparse.vstack(truth, format="csr")
    # what is usual for one half of a mixture is not for a slope alone
    slope, _, offset = fit_mixture(held_out, np.zeros_like(held_out), present, n_halves=0.01)
    n_present = np.bincount(present.indices, minlength=d)
    unknown = (n_present == 0) | (n_present == len(held_out))
    share = (np.bincount(labels.indices, minlength=d) + 0.5) / (n + 1)
    offset = np.where(unknown, logit(share), offset)  # of these a score says nothing
    slope = np.maximum(slope, _LEAST) / spread
    return slope, offset - slope * mean
