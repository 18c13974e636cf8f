"""Further images and labels for what was learned already, without a new fit."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse

from tagkin.annotator.grouping import groups_of
from tagkin.annotator.label_input import (
    Labels,
    holds_tags,
    listed,
    rejections,
    rows_of,
    with_rows,
    without,
)
from tagkin.annotator.naming import LearnedNames, counted_names
from tagkin.arrays import Array, to_numpy
from tagkin.arrays.labels import as_labels, checked_names, widened
from tagkin.calibration import LabelCalibrator
from tagkin.errors import InvalidInput
from tagkin.neighbors.base import compressed

if TYPE_CHECKING:
    from tagkin.annotator.feature_annotator import FeatureAnnotator

__all__ = ["Extended", "extended"]

_LOOKED_AT = 4000  # added images that confidences of new labels are learned from, at most
_LISTED = 400
_MATES = 20  # images of an image's own group that are looked past


class Extended(NamedTuple):
    """What takes the place of an estimator's own; N images and D labels, old and new."""

    labels: Labels
    method: Any
    calibrator: LabelCalibrator
    held_out: scipy.sparse.csr_array
    """Of shape (N, D); nothing for new images and new labels."""
    rejected: scipy.sparse.csr_array
    """Of shape (N, D)."""
    names: LearnedNames | None


def extended(
    estimator: FeatureAnnotator, X: Array, y: Any, known: np.ndarray, rejected: Any
) -> Extended:
    """An estimator's parts with further images; the estimator itself stays as it is.

    Parameters
    ----------
    estimator : FeatureAnnotator
        Fitted.
    X : array of shape (n, d)
    y : labels of shape (n, D), or n lists of tags
    known : int array of shape (n,)
        Which image learned from each of them is, −1 where it is new.
    rejected : labels of shape (n, D), n lists of tags, or None
        Labels that are rejected for these images; with None, known ones keep what was rejected.
    """
    n = X.shape[0]
    if estimator.vocabulary_ is not None:
        labels = _more_tags(estimator, y, n, known)
    else:
        labels = _more_columns(estimator, y, n, known)
    fresh = np.flatnonzero(known < 0)
    method, n_known = deepcopy(estimator.method_), estimator.method_.labels_.shape[0]
    if len(fresh):
        method.partial_fit(estimator.space_.transform(X[fresh]), labels.Y[n_known:])
    elif labels.Y.shape[1] > method.n_labels_:
        raise InvalidInput(
            "New tags on images that are known already need a new fit: run fit again."
        )
    held_out = estimator.held_out_.copy()
    held_out.resize(labels.Y.shape)
    before = estimator.refused().copy()
    before.resize(n_known, labels.Y.shape[1])
    given = rows_of(before, known) if rejected is None else rejections(rejected, n, labels)
    refused = without(with_rows(before, given, known), labels.Y)
    if method.takes_rejected:
        method.relabel(labels.Y, rejected=refused)
    else:
        method.relabel(labels.Y)
    names = counted_names(estimator)
    if names is not None:
        names = names.extended(estimator.prior, labels.classes())
    calibrator = deepcopy(estimator.calibrator_)
    n_old = calibrator.n_labels_
    unheard = names is not None and estimator.prior is None  # scores would lack what names say
    if labels.Y.shape[1] == n_old or not len(fresh) or unheard:
        calibrator.extend(labels.Y.shape[1])
    else:
        some, scores, groups = _scores_of_added(
            method, estimator.space_.transform(X[fresh]), X[fresh]
        )
        if names is not None:
            scores = names.combined(estimator.prior, X[fresh[some]], scores)
        truth = labels.Y[n_known + some]
        calibrator.extend(labels.Y.shape[1], scores[:, n_old:], truth[:, n_old:], groups)
    return Extended(labels, method, calibrator, held_out, refused, names)


def _scores_of_added(
    method: Any, embeddings: Array, features: Array
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which of the images that were added last are looked at, their scores (n×D), and groups.

    They come from the images' neighbours, without the image itself and its near-duplicates. Labels
    that are new are on added images only, so that their scores are lower than those of the others;
    it is from these scores that it can be known how much.
    """
    n, n_all = embeddings.shape[0], method.labels_.shape[0]
    some = np.random.default_rng(0).permutation(n)[:_LOOKED_AT]
    own = groups_of(features, None, n_folds=3)
    group = np.concatenate([-1 - np.arange(n_all - n), own])
    # methods that choose neighbours label by label choose from some hundreds here
    k = getattr(method, "n_neighbors", _LISTED)
    found = method.nearest(embeddings[some], k + _MATES)
    others = (found.indices >= 0) & (group[found.indices] != own[some][:, None])
    scores = method.score_neighbors(*compressed(found, others, k))
    return some, to_numpy(scores), own[some]


def _more_tags(estimator: FeatureAnnotator, y: Any, n: int, known: np.ndarray) -> Labels:
    """All images' lists of tags, the vocabulary of all, and what it makes of them."""
    if hasattr(y, "shape") and not holds_tags(y):
        raise InvalidInput(
            "Found a label matrix where lists of tags were fitted. Pass one list of tags per image."
        )
    rows, before = listed(y, n), estimator.tags_ or []
    tags = [*before, *(rows[i] for i in np.flatnonzero(known < 0))]
    for i in np.flatnonzero(known >= 0):
        tags[known[i]] = rows[i]
    # of tags that an image carried before it was counted already
    old = [before[k] if k >= 0 else () for k in known]
    news = [[t for t in row if t not in had] for row, had in zip(rows, old, strict=True)]
    vocabulary = deepcopy(estimator.vocabulary_).extend(news)
    return Labels(vocabulary.transform(tags), None, vocabulary, tags)


def _more_columns(estimator: FeatureAnnotator, y: Any, n: int, known: np.ndarray) -> Labels:
    """The label matrix of all images, with the columns of new labels at the end."""
    added, before = as_labels(y, n), estimator.method_.labels_
    if added.shape[1] < before.shape[1]:
        raise InvalidInput(
            f"Found {added.shape[1]} labels where {before.shape[1]} are known. Pass all columns, "
            "with those of new labels at the end."
        )
    names = checked_names(estimator.column_names_, y, added.shape[1])
    return Labels(with_rows(widened(before, added.shape[1]), added, known), names)
