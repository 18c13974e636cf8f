"""Learn calibrations from scores of held-out images, also for labels added after fitting."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from tagkin.arrays import Array, check_groups, to_numpy
from tagkin.arrays.labels import check_pair
from tagkin.calibration.calibration import Calibration, Link, NewLabels
from tagkin.calibration.cuts import (
    PRECISIONS,
    PRIOR_IMAGES,
    cut_precision,
    joint_precision,
    lowest_cuts,
)
from tagkin.calibration.pooling import (
    ScoreTable,
    fit_like,
    fit_link,
    fit_sigmoids,
    sigmoid_log_odds,
    summarize,
)
from tagkin.errors import InvalidInput

__all__ = ["extend_calibration", "fit_calibration", "fit_new_labels", "held_out_precision"]

_FOLDS = 5
# New labels on at least this many images get their own link. On other training images of COCO and
# Flickr8k, with 10 to 30 images, the log-loss for each was 3.03 and 4.05 with their own link, and
# 3.12 and 4.10 with the link of the earlier labels.
_OWN_LINK = 10


def fit_calibration(S: Array, Y: Array, levels: np.ndarray | None = None) -> Calibration:
    """Learn probabilities of labels from scores of held-out images.

    The link g is one increasing function for all labels: the log-odds at each score, by isotonic
    regression. Each label has its own slope aₜ ≥ 0 and intercept bₜ, shrunk towards those of all
    labels; the more the labels agree, the stronger the shrinkage (empirical Bayes). A label with
    many positives follows its own data, a label with few or no positives the other labels.
    Probabilities never decrease with the score.

    Parameters
    ----------
    S : array of shape (n, D)
        Finite scores of held-out images; scores of training images are too high.
    Y : array or sparse matrix of shape (n, D)
        Labels of the same images.
    levels : array of shape (D,), optional
        Log-odds to add to each label, such as from `frequency_levels`.

    Notes
    -----
    On neighbours' votes and ridge scores of Flickr8k, COCO and Corel5k the held-out log-loss was
    lower than with a sigmoid for each label (Platt) with the same pooling, and lower than with an
    isotonic regression for each label. A common link does not help scores that were scaled per
    label: there a pooled sigmoid did as well, and better on Corel5k.
    """
    labels, S = check_pair(Y, S)
    table = summarize(S, labels)
    link = Link(*fit_link(table))
    z = link(table.mean)
    sigmoids = fit_sigmoids(z, table)
    if levels is not None:
        sigmoids[:, 1] += levels
        table = replace(table, positives=table.positives * np.exp(levels)[:, None])
    precision = cut_precision(sigmoid_log_odds(z, sigmoids), table)
    joint = joint_precision(precision, table)
    slopes, intercepts = sigmoids.T.copy()
    return Calibration(S.shape[0], link, slopes, intercepts, table.lowest, precision, joint)


def extend_calibration(
    calibration: Calibration, n_labels: int, S: Array, Y: Array, groups: Array | None = None
) -> Calibration:
    """Return a calibration with more labels, D = `n_labels` in total, from their held-out scores.

    Parameters
    ----------
    calibration : Calibration
    n_labels : int
    S, Y : arrays of shape (n, new labels)
        Held-out scores of the new labels, and whether the images have the labels. The first
        new labels get their own link if they are on at least ten images in total, because
        other components may score them (only votes, until the read-out learns them).
        Otherwise slopes and intercepts are shrunk towards the earlier labels', and the link
        stays.
    groups : array of shape (n,), optional
        Images of the same group (a burst, near-duplicates) do not judge each other's cuts.
    """
    n_new = calibration.count_new(n_labels)
    if not n_new:
        return calibration
    labels, S = check_pair(Y, S)
    if S.shape[1] != n_new:
        raise InvalidInput(f"Found scores of {S.shape[1]} labels, but {n_new} are new.")
    table = summarize(S, labels)
    if calibration.new_labels is None and labels.nnz >= _OWN_LINK:
        n = S.shape[0]
        codes = np.arange(n) if groups is None else check_groups(groups, n)
        fitted = fit_new_labels(table)
        joint = held_out_precision(S, labels, codes, table, fitted.precision)
        own = NewLabels(calibration.n_labels, fitted.link, fitted.level, joint)
        with_link = replace(calibration, new_labels=own)
        return with_link.widen(fitted.sigmoids, table.lowest, fitted.precision)
    last = calibration.linked_labels()[-1]
    z = last.link(table.mean)
    sigmoids = fit_like(last.sigmoids.T, z, table)
    log_odds = sigmoid_log_odds(z, sigmoids)
    if last.level is not None:
        log_odds = last.level(log_odds)
    return calibration.widen(sigmoids, table.lowest, cut_precision(log_odds, table))


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
