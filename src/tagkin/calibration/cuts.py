"""Least scores (cuts) at which suggestions reach a precision, per label and together."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csc_array

from tagkin.arrays import expit

if TYPE_CHECKING:  # suggesting needs no table of scores
    from tagkin.calibration.pooling import ScoreTable

__all__ = [
    "PRECISIONS",
    "PRIOR_IMAGES",
    "cut_precision",
    "joint_precision",
    "least_probabilities",
    "lowest_cuts",
    "new_label_precision",
    "per_label_precision",
]

# Weight of the calibrated probability, in images, next to the held-out images. On new images of
# Corel5k, votes reached a precision of .76 with 10 and .83 with 30, for a target of .8.
PRIOR_IMAGES = 30

# Grid of precisions per label, and the largest shortfall of a label. Labels that are nearly always
# right raise the joint precision above the target, so the cuts of other labels may go down, but not
# beyond this drop. The joint precision on the held-out images must exceed the target by a margin,
# because these images chose the cuts; on the other hand a model learned from all images is better.
# On other training images of COCO, Flickr8k and photos, with 300 to 5,000 training images, targets
# of .5 to .95 were met within .008 on average and .021 at most, mostly above (.011 and .032 with a
# margin of .02).
PRECISIONS = np.linspace(0.0, 1.0, 201)
_LARGEST_DROP, _MARGIN = 0.1, 0.005

# Little is known about each new label, so their cuts are judged on images that did not choose them.
# On other training images of the same datasets, with 150 to 2,500 images with the new labels,
# targets of .5 to .95 were met within .006, .013 and .015 on average; with the rule of the earlier
# labels and a margin of .02, within .008, .015 and .037.
_LATER_DROP, _LATER_RISE = 0.3, 0.1


def cut_precision(log_odds: np.ndarray, table: ScoreTable) -> np.ndarray:
    """Return the expected precision of images at or above each score group, (D, G)."""
    p = expit(log_odds)
    images, positives, expected = (
        np.cumsum(part, axis=1) for part in (table.count, table.positives, table.count * p)
    )
    prior = PRIOR_IMAGES * expected / images
    return (positives + prior) / (images + PRIOR_IMAGES)


def lowest_cuts(precision: np.ndarray) -> np.ndarray:
    """Count each label's score groups from its lowest cut up, for each of PRECISIONS.

    The lowest cut is the lowest that reaches the precision, given the `precision` of all cuts
    (D, G). Returns an int array of shape (D, 201), 0 if no cut reaches it.
    """
    # best precision at or below each cut, which is sorted
    best_from = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    return np.stack([np.searchsorted(-best, -PRECISIONS, side="right") for best in best_from])


def joint_precision(precision: np.ndarray, table: ScoreTable) -> np.ndarray:
    """Return the expected precision of all suggestions if labels reach each of PRECISIONS."""
    images = np.cumsum(table.count, axis=1)
    expected_correct = images * precision
    n_groups = lowest_cuts(precision)
    last, has_cut = np.maximum(n_groups - 1, 0), n_groups > 0
    n_suggested, n_correct = (
        (np.take_along_axis(part, last, axis=1) * has_cut).sum(axis=0)
        for part in (images, expected_correct)
    )
    return np.divide(n_correct, n_suggested, out=np.ones_like(n_correct), where=n_suggested > 0)


def per_label_precision(precision: float, joint: np.ndarray) -> float:
    """Return the precision each label must reach for a joint precision of `precision`.

    `joint` (201,) is the joint precision if each label must reach each of PRECISIONS.
    """
    allowed = (precision >= PRECISIONS) & (precision - _LARGEST_DROP <= PRECISIONS)
    enough = joint >= precision + _MARGIN
    for candidate in PRECISIONS[allowed][::-1]:
        if not enough[np.searchsorted(PRECISIONS, candidate)]:
            break
        precision = float(candidate)
    return precision


def new_label_precision(precision: float, joint: np.ndarray) -> float:
    """Return the precision each new label must reach, as `per_label_precision` does.

    The joint precision of new labels never decreases.
    """
    low, high = precision - _LATER_DROP, min(precision + _LATER_RISE, 1.0)
    enough = joint >= precision + _MARGIN
    allowed = PRECISIONS[enough & (low - 1e-9 <= PRECISIONS) & (high + 1e-9 >= PRECISIONS)]
    return float(allowed[0]) if len(allowed) else high


def least_probabilities(P: csc_array, precision: float) -> np.ndarray:
    """Return each label's least probability (D,) at which suggestions reach a precision.

    A label's precision is the mean of its probabilities P (n×D) from the cut on. It applies to all
    suggestions together, as in `per_label_precision`. A label that cannot reach it gets ∞.
    """
    ranked = [-np.sort(-P.data[start:stop]) for start, stop in pairwise(P.indptr)]
    right = [np.cumsum(probabilities) for probabilities in ranked]
    means = [total / np.arange(1, len(total) + 1) for total in right]
    for probabilities, mean in zip(ranked, means, strict=True):
        # suggest all images with a probability, or none of them
        mean[:-1][probabilities[:-1] == probabilities[1:]] = -1.0
    least = np.full(P.shape[1], np.inf)
    for wanted in np.append(np.arange(precision - _LARGEST_DROP, precision, 0.005), precision):
        n_suggested, n_right, least[:] = 0, 0.0, np.inf
        for t, mean in enumerate(means):
            reached = np.flatnonzero(mean >= wanted)
            if len(reached):
                least[t] = ranked[t][reached[-1]]
                n_suggested += int(reached[-1]) + 1
                n_right += float(right[t][reached[-1]])
        if n_right >= precision * n_suggested:
            break
    return least
