"""Calibration of labels added after fitting, and their cuts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from tagkin.arrays import Array, to_numpy
from tagkin.arrays.records import Axes, storable
from tagkin.arrays.rules import Floats, Whole
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
    sigmoid_log_odds,
    summarize,
)

__all__ = ["NewLabels", "fit_new_labels", "held_out_precision"]

_FOLDS = 5


@storable
@dataclass(frozen=True)
class NewLabels:
    """P(t | s) = σ(h(aₜ g(s) + bₜ)) of labels added after fitting, if they have their own link."""

    n_before: Annotated[int, Whole()]
    """Number of labels before them, which have the first link."""
    link: Annotated[Link, Axes(k="J")]
    """g."""
    level: Annotated[Link, Axes(k="I")]
    """h, increasing."""
    joint_precision: Annotated[np.ndarray, Floats(201).kept_on_host()]
    """Precision of all their suggestions if each label must reach 0, .005, … 1, on images that the
    cuts were not learned from."""


class NewLabelFit(NamedTuple):
    """Fit of d new labels to groups of scores (d×G)."""

    link: Link
    """g."""
    sigmoids: np.ndarray
    """a and b, shape (d, 2)."""
    level: Link
    """h."""
    precision: np.ndarray
    """Precision expected at each cut, shape (d, G)."""


def fit_new_labels(table: ScoreTable) -> NewLabelFit:
    """Fit new labels to groups of held-out scores."""
    link = Link(*fit_link(table))
    z = link(table.mean)
    sigmoids = fit_sigmoids(z, table)
    log_odds = sigmoid_log_odds(z, sigmoids)
    # with few votes, sigmoids alone are too low at the top, for all labels
    level = Link(*fit_link(replace(table, mean=log_odds)))
    return NewLabelFit(link, sigmoids, level, cut_precision(level(log_odds), table))


def held_out_precision(
    S: Array, labels: csr_array, groups: np.ndarray, table: ScoreTable, precision: np.ndarray
) -> np.ndarray:
    """Return the precision of all suggestions if labels reach each of PRECISIONS, (201,).

    Cuts are learned from four fifths of the images, and their suggestions counted on the other
    fifth, for each fifth in turn: c(α) of n(α) are correct. The result is (c + 30 J) / (n + 30),
    made increasing, with J(α) the precision that the cuts of all images promise.

    Parameters
    ----------
    S : array of shape (n, d)
        Held-out scores.
    labels : CSR array of shape (n, d)
    groups : int array of shape (n,)
        From 0; images of the same group are in the same fifth.
    table, precision
        Groups of scores of all images, and the expected precision at each cut.
    """
    from scipy.optimize import isotonic_regression  # only learning needs it, and it takes a while

    promised = joint_precision(precision, table)
    n_suggested, n_correct = np.zeros((2, len(PRECISIONS)))
    fold = np.random.default_rng(0).permutation(groups.max() + 1)[groups] % _FOLDS
    for k in np.unique(fold):
        others, rows = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if not len(others):
            continue
        part = summarize(S[others], labels[others])
        counts = _count_suggestions(
            part, fit_new_labels(part).precision, to_numpy(S[rows]), labels[rows]
        )
        n_suggested, n_correct = n_suggested + counts[0], n_correct + counts[1]
    weight = n_suggested + PRIOR_IMAGES
    precise = (n_correct + PRIOR_IMAGES * promised) / weight
    return np.asarray(isotonic_regression(precise, weights=weight).x)


def _count_suggestions(
    table: ScoreTable, precision: np.ndarray, scores: np.ndarray, labels: csr_array
) -> np.ndarray:
    """Count the suggestions for other images at a table's cuts, and the correct ones: (2, 201)."""
    n_groups = lowest_cuts(precision)
    cuts = np.take_along_axis(table.lowest, np.maximum(n_groups - 1, 0), axis=1)
    cuts[n_groups == 0] = np.inf
    by_label = labels.tocsc()
    counts = np.zeros((2, len(PRECISIONS)))
    for label, cut in enumerate(cuts):
        all_scores = scores[:, label]
        with_label = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        for total, label_scores in zip(counts, (all_scores, all_scores[with_label]), strict=True):
            total += len(label_scores) - np.searchsorted(np.sort(label_scores), cut)
    return counts
