"""Cuts: from which score on a label's suggestions are right often enough, alone and together."""

from __future__ import annotations

import numpy as np

from tagkin.arrays import expit, to_numpy
from tagkin.calibration.pooling import ScoreTable

__all__ = [
    "PRECISIONS",
    "PRIOR_IMAGES",
    "asked_of_each",
    "asked_of_later",
    "cut_precision",
    "joint_precision",
    "lowest_cuts",
]

# Weight of the calibrated probability, in images, beside the held-out images themselves. On new
# images of Corel5k, votes reached a precision of .76 with 10 where .8 was wanted, and .83 with 30.
PRIOR_IMAGES = 30

# Precisions that a label may be asked for, and by how much less than wanted at the most. Labels
# that are nearly always right lift the precision of all suggestions together above what is wanted;
# the others' cuts go down for it, but not beyond this. What the held-out images promise must stay
# above what is wanted by a margin. They chose the cuts and promise a little too much; but what
# learned from all images is better than what was learned without them. On other training images of
# COCO, Flickr8k and photos, of which 300 to 5,000 were learned from, .5 to .95 were reached within
# .008 on average and .021 at the most, rather above (.011 and .032 with a margin of .02).
PRECISIONS = np.linspace(0.0, 1.0, 201)
_LARGEST_DROP, _MARGIN = 0.1, 0.005

# Of labels that came later, little is known one by one, and their cuts are judged on images that
# they were not chosen on. On other training images of the same, with 150 to 2,500 that brought the
# labels, .5 to .95 were reached within .006, .013 and .015 on average; with the rule of the labels
# known before and a margin of .02, within .008, .015 and .037.
_LATER_DROP, _LATER_RISE = 0.3, 0.1


def cut_precision(log_odds: np.ndarray, table: ScoreTable) -> np.ndarray:
    """Precision expected of the images that score as high as each group or higher, (D, G)."""
    p = expit(log_odds)
    images, positives, expected = (
        np.cumsum(part, axis=1) for part in (table.count, table.positives, table.count * p)
    )
    prior = PRIOR_IMAGES * expected / images
    return (positives + prior) / (images + PRIOR_IMAGES)


def lowest_cuts(precision: np.ndarray) -> np.ndarray:
    """How many groups of each label are above its lowest cut that reaches each of PRECISIONS.

    By the precision of cuts (D, G); an int array of shape (D, 201), 0 where no cut does.
    """
    # cuts sorted by the best from there on
    best_from = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    return np.stack([np.searchsorted(-best, -PRECISIONS, side="right") for best in best_from])


def joint_precision(precision: np.ndarray, table: ScoreTable) -> np.ndarray:
    """Precision expected of all suggestions where each label is asked for each of PRECISIONS."""
    images = np.cumsum(table.count, axis=1)
    n_right = images * precision
    n_groups = lowest_cuts(precision)
    last, some = np.maximum(n_groups - 1, 0), n_groups > 0
    given, right = (
        (np.take_along_axis(part, last, axis=1) * some).sum(axis=0) for part in (images, n_right)
    )
    return np.divide(right, given, out=np.ones_like(right), where=given > 0)


def asked_of_each(precision: float, joint: np.ndarray | None) -> float:
    """Precision to ask of each label, so that all suggestions together have the wanted one."""
    if joint is None:
        return precision
    allowed = (precision >= PRECISIONS) & (precision - _LARGEST_DROP <= PRECISIONS)
    enough = to_numpy(joint) >= precision + _MARGIN
    for asked in PRECISIONS[allowed][::-1]:
        if not enough[np.searchsorted(PRECISIONS, asked)]:
            break
        precision = float(asked)
    return precision


def asked_of_later(precision: float, joint: np.ndarray | None) -> float:
    """The same of labels that came later, by a joint precision that never decreases."""
    if joint is None:
        return precision
    low, high = precision - _LATER_DROP, min(precision + _LATER_RISE, 1.0)
    enough = to_numpy(joint) >= precision + _MARGIN
    asked = PRECISIONS[enough & (low - 1e-9 <= PRECISIONS) & (high + 1e-9 >= PRECISIONS)]
    return float(asked[0]) if len(asked) else high
