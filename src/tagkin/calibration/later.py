"""Labels that come after a fit: the way from their scores to probabilities, and their cuts."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from tagkin.arrays import Array, to_numpy
from tagkin.calibration.cuts import (
    PRECISIONS,
    PRIOR_IMAGES,
    cut_precision,
    joint_precision,
    lowest_cuts,
)
from tagkin.calibration.link import Link
from tagkin.calibration.pooling import (
    ScoreTable,
    fit_link,
    fit_sigmoids,
    increasing,
    sigmoid_log_odds,
    summarize,
)

__all__ = ["LaterLabels", "fit_later", "held_out_precision"]

_FOLDS = 5


class LaterLabels(NamedTuple):
    """P(t | s) = σ(h(aₜ g(s) + bₜ)) of d labels, from groups of scores (d×G)."""

    link: Link
    """g."""
    sigmoids: np.ndarray
    """a and b, shape (d, 2)."""
    level: Link
    """h."""
    precision: np.ndarray
    """Precision expected at each cut, shape (d, G)."""


def fit_later(table: ScoreTable) -> LaterLabels:
    """Learn from held-out scores in groups."""
    link = Link(*fit_link(table))
    z = link(table.mean)
    sigmoids = fit_sigmoids(z, table)
    log_odds = sigmoid_log_odds(z, sigmoids)
    # where votes are few, sigmoids alone are too modest at the top, for all labels alike
    level = Link(*fit_link(replace(table, mean=log_odds)))
    return LaterLabels(link, sigmoids, level, cut_precision(level(log_odds), table))


def held_out_precision(
    S: Array, labels: csr_array, groups: np.ndarray, table: ScoreTable, precision: np.ndarray
) -> np.ndarray:
    """Precision of all suggestions where each label is asked for each of PRECISIONS, (201,).

    Cuts are learned from four fifths of the images, and their suggestions counted on the last
    fifth, for each fifth in turn: c(α) of n(α) are right. Beside them count 30 suggestions as right
    as the cuts of all images promise, J(α), and no precision is below that of a lower one asked:
    (c + 30 J) / (n + 30), made increasing.

    Parameters
    ----------
    S : array of shape (n, d)
        Scores of images that did not count for themselves.
    labels : CSR array of shape (n, d)
    groups : int array of shape (n,)
        From 0; images of one group are in one fifth.
    table, precision
        Of all images: their groups of scores, and the precision expected at each cut.
    """
    promised = joint_precision(precision, table)
    given, right = np.zeros((2, len(PRECISIONS)))
    fold = np.random.default_rng(0).permutation(groups.max() + 1)[groups] % _FOLDS
    for k in np.unique(fold):
        others, rows = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if not len(others):
            continue
        part = summarize(S[others], labels[others])
        counted = _counted(part, fit_later(part).precision, to_numpy(S[rows]), labels[rows])
        given, right = given + counted[0], right + counted[1]
    weight = given + PRIOR_IMAGES
    levels, first = increasing((right + PRIOR_IMAGES * promised) / weight, weight)
    return np.repeat(levels, np.diff(first, append=len(weight)))


def _counted(
    table: ScoreTable, precision: np.ndarray, scores: np.ndarray, labels: csr_array
) -> np.ndarray:
    """Suggestions for other images by a table's cuts, and how many are right: (2, 201)."""
    n_groups = lowest_cuts(precision)
    cuts = np.take_along_axis(table.lowest, np.maximum(n_groups - 1, 0), axis=1)
    cuts[n_groups == 0] = np.inf
    by_label = labels.tocsc()
    found = np.zeros((2, len(PRECISIONS)))
    for label, cut in enumerate(cuts):
        of_label = scores[:, label]
        carrying = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        for total, some in zip(found, (of_label, of_label[carrying]), strict=True):
            total += len(some) - np.searchsorted(np.sort(some), cut)
    return found
