"""Add images and labels to a model without a new fit."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from tagkin.annotator.label_input import (
    Labels,
    check_tag_lists,
    holds_tags,
    rejection_matrix,
    replace_rows,
    subtract_labels,
    take_rows,
)
from tagkin.annotator.model import Model
from tagkin.annotator.problem_input import find_groups
from tagkin.arrays import Array, to_numpy
from tagkin.arrays.labels import as_labels, check_names, widen
from tagkin.calibration import Calibration, extend_calibration
from tagkin.errors import InvalidInput
from tagkin.neighbors.neighbor_index import keep_neighbors
from tagkin.records.forms import Later
from tagkin.tag_meanings import NamePrior

__all__ = ["AddedImages", "extend", "remove_labels"]

_MOST_SCORED = 4000  # images that calibrate new labels, at most
_ENOUGH = 50  # images; fewer do not tell how rare a new label is
_LISTED = 400  # neighbours, for methods that choose them label by label
_MATES = 20  # further neighbours to search, because those in the image's own group do not vote


class AddedImages(NamedTuple):
    """n images to add to a model."""

    X: Array
    """Features of shape (n, d)."""
    y: Any
    """Labels of shape (n, D), or n lists of tags."""
    known: np.ndarray
    """Number of the image among those learned from, or −1 for a new image, shape (n,)."""
    rejected: Any = None
    """Rejected labels, like y; with None, known images keep theirs."""
    complete: np.ndarray | None = None
    """Which images have all of their labels, shape (n,); with None, new images have."""


def extend(model: Model, images: AddedImages, prior: NamePrior | None = None) -> Model:
    """Return a model with further images; the old model does not change.

    The prior scores label names, if the model uses them.
    """
    X, y, known, rejected, complete = images
    n, n_before = X.shape[0], model.n_images
    read = _extend_columns if model.vocabulary is None else _extend_tags
    labels = read(model, y, n, known)
    shape, new = labels.Y.shape, X[np.flatnonzero(known < 0)]
    method = replace(model.method, index=deepcopy(model.method.index))  # it grows in place
    if len(new):
        method = method.add(model.embed(new), labels.Y[n_before:])
    elif shape[1] > method.n_labels:
        raise InvalidInput(
            "New tags on images that are known already need a new fit: run fit again."
        )
    held_out, rejected_before = model.held_out.get().copy(), model.rejected.copy()
    held_out.resize(shape)
    rejected_before.resize(n_before, shape[1])
    if rejected is None:
        rejected_now = take_rows(rejected_before, known)
    else:
        rejected_now = rejection_matrix(rejected, n, labels)
    rejections = subtract_labels(replace_rows(rejected_before, rejected_now, known), labels.Y)
    known_now: dict[str, Any] = {"rejected": rejections} if method.takes_rejected else {}
    if method.takes_incomplete:
        mask = np.append(model.complete, np.ones(len(new), dtype=bool))
        if complete is not None:
            places = np.where(known >= 0, known, n_before + np.cumsum(known < 0) - 1)
            mask[places] = complete
        known_now["complete"] = mask
    method = method.relabel(labels.Y, **known_now)
    unannotated = model.unannotated
    extended = replace(
        model,
        method=method,
        held_out=Later.known(held_out),
        rejected=rejections,
        groups=np.append(model.groups, model.groups.max() + 1 + np.arange(len(new))),
        names=None if model.names is None else model.names.extend(prior, labels.classes()),
        unannotated=None if unannotated is None else unannotated.extend(shape[1]),
        vocabulary=labels.vocabulary,
        column_names=labels.names,
        tags=labels.tags,
    )
    return replace(extended, calibrator=_extend_calibrator(extended, new, prior))


def remove_labels(model: Model, known: Sequence[int]) -> Model:
    """Return a model in which images, given by their numbers, have no labels."""
    # features of known images are not used
    unused = np.zeros((len(known), model.space.landmarks.points.shape[1]), dtype=np.float32)
    return extend(model, AddedImages(unused, [[]] * len(known), np.array(known)))


def _extend_calibrator(model: Model, new: Array, prior: NamePrior | None) -> Calibration:
    """Return a calibration with new labels, from the scores of the new images if there are any."""
    calibrator, n_labels = model.calibrator, model.method.n_labels
    n_old = calibrator.n_labels
    lacks_prior = model.names is not None and prior is None  # scores would lack the names
    if n_labels == n_old or not len(new) or lacks_prior:
        return calibrator.extend(n_labels)
    scores, truth, groups = _calibration_data(model, new, prior)
    return extend_calibration(calibrator, n_labels, scores[:, n_old:], truth[:, n_old:], groups)


def _calibration_data(
    model: Model, new: Array, prior: NamePrior | None
) -> tuple[np.ndarray, scipy.sparse.csr_array, np.ndarray]:
    """Return scores (n×D), labels (n×D) and groups (n,) to calibrate new labels with.

    A person who gives a new label to a few images has chosen them for it, so they do not tell how
    rare it is. If the `new` images are few, or if half of them or more have one label, images that
    were known before join them. They may show the label as well, so they do not join if the new
    images are half as many as the known ones: new images then tell more.

    Scores come from an image's neighbours, without the image itself and its near-duplicates. Only
    new images have new labels, so scores of new labels are lower than scores of other labels; these
    scores tell by how much.
    """
    method, Y, n_old = model.method, model.method.labels, model.calibrator.n_labels
    n, n_before = new.shape[0], Y.shape[0] - new.shape[0]
    rng = np.random.default_rng(0)
    sample = rng.permutation(n)[:_MOST_SCORED]
    most = int(Y[n_before + sample][:, n_old:].sum(axis=0).max())
    landmarks = model.space.landmarks
    known = np.zeros(0, dtype=np.intp)
    are_chosen = n < _ENOUGH or (2 * most >= len(sample) and 2 * n < n_before)
    if landmarks.indices is not None and are_chosen:
        known = rng.permutation(len(landmarks.indices))[: max(0, _MOST_SCORED - len(sample))]
    group = np.concatenate([-1 - np.arange(n_before), find_groups(new, None, n_folds=3)])
    # methods that choose neighbours label by label choose from some hundreds here
    k = getattr(method, "n_neighbors", _LISTED)
    parts, numbers = [], []
    for X, rows in (
        (new[sample], n_before + sample),
        (landmarks.points[known], to_numpy(landmarks.indices)[known] if len(known) else known),
    ):
        if not len(rows):
            continue
        nearest = method.nearest(model.embed(X), k + _MATES)
        others = (nearest.indices >= 0) & (group[nearest.indices] != group[rows][:, None])
        scores = to_numpy(method.score_neighbors(keep_neighbors(nearest, others, k)))
        if model.names is not None:
            scores = model.names.combine(prior, X, scores)
        parts.append(scores)
        numbers.append(rows)
    scored = np.concatenate(numbers)
    return np.concatenate(parts), Y[scored], group[scored]


def _extend_tags(model: Model, y: Any, n: int, known: np.ndarray) -> Labels:
    """Return the lists of tags of all images, with an extended vocabulary."""
    if hasattr(y, "shape") and not holds_tags(y):
        raise InvalidInput(
            "Found a label matrix, but lists of tags were fitted. Pass one list of tags per image."
        )
    rows, before = check_tag_lists(y, n), model.tags or []
    tags = [*before, *(rows[i] for i in np.flatnonzero(known < 0))]
    for i in np.flatnonzero(known >= 0):
        tags[known[i]] = rows[i]
    # the vocabulary has counted the tags that an image had before
    old = [before[k] if k >= 0 else () for k in known]
    added = [[t for t in row if t not in had] for row, had in zip(rows, old, strict=True)]
    vocabulary = deepcopy(model.vocabulary)
    assert vocabulary is not None
    vocabulary.extend(added)
    return Labels(vocabulary.transform(tags), None, vocabulary, tags)


def _extend_columns(model: Model, y: Any, n: int, known: np.ndarray) -> Labels:
    """Return the label matrix of all images, with the columns of new labels at the end."""
    added, before = as_labels(y, n), model.method.labels
    if added.shape[1] < before.shape[1]:
        raise InvalidInput(
            f"Found {added.shape[1]} labels, but {before.shape[1]} are known. Pass all columns, "
            "with new labels at the end."
        )
    names = check_names(model.column_names, y, added.shape[1])
    return Labels(replace_rows(widen(before, added.shape[1]), added, known), names)
