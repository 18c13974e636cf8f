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
from tagkin.annotator.naming import LearnedNames
from tagkin.arrays import Array, to_numpy
from tagkin.arrays.labels import as_labels, check_names, widen
from tagkin.calibration import LabelCalibrator
from tagkin.errors import InvalidInput
from tagkin.neighbors.base import compressed

if TYPE_CHECKING:
    from tagkin.annotator.feature_annotator import FeatureAnnotator

__all__ = ["Extended", "extended"]

_LOOKED_AT = 4000  # added images that confidences of new labels are learned from, at most
_ENOUGH = 50  # images, fewer of which do not tell how rare a new label is
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
    before = estimator.rejected_.copy()
    before.resize(n_known, labels.Y.shape[1])
    given = rows_of(before, known) if rejected is None else rejections(rejected, n, labels)
    refused = without(with_rows(before, given, known), labels.Y)
    if method.takes_rejected:
        method.relabel(labels.Y, rejected=refused)
    else:
        method.relabel(labels.Y)
    names = estimator.names_
    if names is not None:
        names = names.extended(estimator.prior, labels.classes())
    calibrator = deepcopy(estimator.calibrator_)
    n_old = calibrator.n_labels_
    unheard = names is not None and estimator.prior is None  # scores would lack what names say
    if labels.Y.shape[1] == n_old or not len(fresh) or unheard:
        calibrator.extend(labels.Y.shape[1])
    else:
        scores, truth, groups = _looked_at(estimator, method, X[fresh], labels.Y, names)
        calibrator.extend(labels.Y.shape[1], scores[:, n_old:], truth[:, n_old:], groups)
    return Extended(labels, method, calibrator, held_out, refused, names)


def _looked_at(
    estimator: FeatureAnnotator,
    method: Any,
    added: Array,
    Y: scipy.sparse.csr_array,
    names: LearnedNames | None,
) -> tuple[np.ndarray, scipy.sparse.csr_array, np.ndarray]:
    """Scores (n×D) of images that confidences of new labels are learned from, labels, and groups.

    The images are those that were `added` last, and some that were known before. Whoever gives a
    new label to a few images has chosen them for it, and they do not tell how rare it is. So images
    that were known before are beside them, as long as they are few, and where half of them or more
    carry one label: then so many that a fifth does.

    Scores come from the images' neighbours, without the image itself and its near-duplicates.
    Labels that are new are on added images only, so that their scores are lower than those of the
    others; it is from these scores that it can be known how much.
    """
    n, n_known = added.shape[0], Y.shape[0] - added.shape[0]
    n_old = estimator.calibrator_.n_labels_
    rng = np.random.default_rng(0)
    some = rng.permutation(n)[:_LOOKED_AT]
    most = int(Y[n_known + some][:, n_old:].sum(axis=0).max())
    landmarks = estimator.space_.landmarks_
    known = np.zeros(0, dtype=np.intp)
    if landmarks.indices is not None:
        n_wanted = max(_ENOUGH, 5 * most if 2 * most >= len(some) else 0)
        known = rng.permutation(len(landmarks.indices))[: max(0, n_wanted - len(some))]
    own = groups_of(added, None, n_folds=3)
    group = np.concatenate([-1 - np.arange(n_known), own])
    # methods that choose neighbours label by label choose from some hundreds here
    k = getattr(method, "n_neighbors", _LISTED)
    parts, numbers = [], []
    for X, rows in (
        (added[some], n_known + some),
        (landmarks.points[known], to_numpy(landmarks.indices)[known] if len(known) else known),
    ):
        if not len(rows):
            continue
        found = method.nearest(estimator.space_.transform(X), k + _MATES)
        others = (found.indices >= 0) & (group[found.indices] != group[rows][:, None])
        scores = to_numpy(method.score_neighbors(*compressed(found, others, k)))
        if names is not None:
            scores = names.combined(estimator.prior, X, scores)
        parts.append(scores)
        numbers.append(rows)
    looked_at = np.concatenate(numbers)
    return np.concatenate(parts), Y[looked_at], group[looked_at]


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
    names = check_names(estimator.column_names_, y, added.shape[1])
    return Labels(with_rows(widen(before, added.shape[1]), added, known), names)
