"""Add images and labels to a model without a new fit."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse

from tagkin.annotator.label_input import Labels as InputLabels
from tagkin.annotator.label_input import (
    NamedLabels,
    check_tag_lists,
    holds_tags,
    rejection_matrix,
    replace_rows,
    take_rows,
)
from tagkin.annotator.model import Model
from tagkin.annotator.naming import SAMPLE, extend_names, mean_name_scores
from tagkin.annotator.problem import SIZES, Labels
from tagkin.annotator.suggesting import drop_itself
from tagkin.arrays import Array, expit, to_numpy
from tagkin.arrays.labels import as_labels, check_complete, check_names, widen
from tagkin.calibration import Calibration
from tagkin.calibration.calibration import FARTHEST
from tagkin.calibration.mixture import share_logits
from tagkin.errors import InvalidInput
from tagkin.tag_meanings import NamePrior, NameTable

__all__ = ["AddedImages", "extend", "remove_labels", "typical_scores"]

_SLOPES = 1.0, 8.0  # of new labels; earlier images and no read-out only flatten scores
_MOST_PAIRS = 2**18  # pairs of images and labels that tell the slope, in a second


class AddedImages(NamedTuple):
    """n images to add to a model."""

    X: Array
    """Features of shape (n, d)."""
    y: InputLabels | None
    """Labels of shape (n, D), or n lists of tags."""
    known: np.ndarray
    """Number of the image among those learned from, or −1 for a new image, shape (n,)."""
    rejected: InputLabels | None = None
    """Rejected labels, like y; with None, known images keep theirs."""
    complete: Array | None = None
    """Which images have all of their labels, shape (n,); with None, new images have."""


def extend(model: Model, images: AddedImages, prior: NamePrior | None = None) -> Model:
    """Return a model with further images; the old model does not change.

    The prior scores label names, if the model uses them.
    """
    X, y, known, rejected, complete = images
    n, n_before = X.shape[0], model.n_images
    check_complete(complete, n)
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
    held_out, rejected_before = model.held_out.copy(), model.rejected.copy()
    held_out.resize(shape)
    rejected_before.resize(n_before, shape[1])
    if rejected is None:
        rejected_now = take_rows(rejected_before, known)
    else:
        rejected_now = rejection_matrix(rejected, n, labels)
    rejections = replace_rows(rejected_before, rejected_now, known)
    rejections = Labels.of(labels.Y, rejections).rejected
    known_now: dict[str, scipy.sparse.csr_array | np.ndarray] = (
        {"rejected": rejections} if method.takes_rejected else {}
    )
    if method.takes_incomplete:
        mask = np.append(model.complete, np.ones(len(new), dtype=bool))
        if complete is not None:
            places = np.where(known >= 0, known, n_before + np.cumsum(known < 0) - 1)
            mask[places] = to_numpy(complete)
        known_now["complete"] = mask
    method = method.relabel(labels.Y, **known_now)
    unannotated = model.unannotated
    extended = replace(
        model,
        method=method,
        held_out=held_out,
        rejected=rejections,
        groups=np.append(model.groups, model.groups.max() + 1 + np.arange(len(new))),
        names=_extend_table(model, labels, prior),
        unannotated=None if unannotated is None else unannotated.extend(shape[1]),
        vocabulary=labels.vocabulary,
        column_names=labels.names,
        tags=labels.tags,
    )
    return replace(extended, calibrator=_extend_calibrator(extended, new, prior))


def remove_labels(model: Model, known: np.ndarray) -> Model:
    """Return a model in which images, given by their numbers (n,), have no labels."""
    # features of known images are not used
    unused = np.zeros((len(known), model.space.landmarks.points.shape[1]), dtype=np.float32)
    return extend(model, AddedImages(unused, [[]] * len(known), known))


def typical_scores(
    model: Model, X: Array, Y: scipy.sparse.csr_array, prior: NamePrior | None
) -> np.ndarray:
    """Return scores (D×k) that say nothing about an image, for the labels Y (N×D).

    Logits of votes and read-out say nothing at that of the label's share of the images, and names
    at their mean over some images X (n×d). Scores of other methods are as for the median label.
    """
    mixture = model.calibrator.mixture
    n_learned = mixture.centers.shape[1] - (model.names is not None)
    centers = np.tile(np.median(mixture.centers, axis=0), (Y.shape[1], 1))
    if n_learned > 1:
        centers[:, :n_learned] = share_logits(Y)[:, None]
    if model.names is not None:
        centers[:, -1] = mean_name_scores(prior, X, model.names)
    return centers


def _extend_calibrator(model: Model, new: Array, prior: NamePrior | None) -> Calibration:
    """Return a calibration with the new labels: with multiples of the common weights, and its link.

    Their votes are diluted by earlier images, and no read-out knows them. So their intercepts are
    such that they are expected as often as they were seen: among the `new` images (n×d), without
    incomplete ones if enough are complete, or, as a person chooses a few images for a new label,
    among all images if new ones are few. If neither new images nor their new labels are few, they
    tell how much larger all weights must be. On later images, labels with a confidence of .23 were
    right in 22, 26 and 25 of 100 cases (COCO, Flickr8k, photos), and in 46, 36 and 47 with the
    common weights.
    """
    from tagkin.calibration import frequency_levels  # only new labels need it

    calibrator, Y = model.calibrator, model.method.labels
    n_old, n = calibrator.n_labels, Y.shape[0]
    if Y.shape[1] == n_old:
        return calibrator
    landmarks = model.space.landmarks
    centers = typical_scores(model, landmarks.points, Y, prior)
    asked, X = Y, landmarks.points[:SAMPLE]
    known = np.full(len(X), -1)
    if landmarks.indices is not None:
        known = to_numpy(landmarks.indices)[: len(X)]
    rows = np.flatnonzero(model.complete[n - new.shape[0] :])
    if len(rows) < SIZES.few_complete:
        rows = np.arange(new.shape[0])
    is_many = len(rows) >= SIZES.few_complete
    if is_many:
        known = n - new.shape[0] + rows
        asked, X, known = Y[known], new[rows[:SAMPLE]], known[:SAMPLE]
    counts = np.bincount(asked.indices, minlength=Y.shape[1])
    levels = (share_logits(asked) + frequency_levels(counts, asked.shape[0]))[n_old:]
    extended = replace(calibrator, mixture=calibrator.mixture.extend(centers[n_old:], levels))
    if model.names is not None and prior is None:
        return extended  # scores would lack the names
    embeddings = model.embed(X)
    neighbors = drop_itself(model.method.kneighbors(embeddings), known)
    z = extended.mix(model.components(X, prior, embeddings, neighbors))[:, n_old:]
    z -= extended.mixture.intercepts[n_old:]
    slope, labels = 1.0, asked[: len(X), n_old:]
    # a few may be alike by chance, and none tell nothing
    if is_many and labels.nnz >= SIZES.few_complete:
        slope = _fit_slope(extended, z, expit(levels), labels)
    weights, intercepts = extended.mixture.weights.copy(), extended.mixture.intercepts.copy()
    weights[n_old:] *= slope
    intercepts[n_old:] = _match_shares(extended, slope * z, expit(levels))
    return replace(
        extended, mixture=replace(extended.mixture, weights=weights, intercepts=intercepts)
    )


def _fit_slope(
    calibration: Calibration, z: np.ndarray, shares: np.ndarray, labels: scipy.sparse.csr_array
) -> float:
    """Return the slope s, at least 1, by which the labels (n×D) are most likely given s z (n×D)."""
    from scipy.optimize import minimize_scalar  # only new labels need it

    rows = slice(None, None, max(1, z.size // _MOST_PAIRS))
    z, present = z[rows], labels[rows].toarray() > 0

    def loss(slope: float) -> float:
        P = calibration.probabilities(slope * z + _match_shares(calibration, slope * z, shares))
        P = np.clip(np.where(present, P, 1 - P), np.finfo(np.float32).tiny, 1)
        return -float(np.log(P).sum(dtype=np.float64))

    return float(minimize_scalar(loss, bounds=_SLOPES, method="bounded").x)


def _match_shares(calibration: Calibration, z: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return what to add to log-odds z (n×D), so that labels have these mean probabilities (D,)."""
    low, high = np.full((2, len(shares)), [[-FARTHEST], [FARTHEST]])
    while np.any(high - low > FARTHEST * np.finfo(np.float32).eps):
        middle = (low + high) / 2
        is_high = calibration.probabilities(z + middle).mean(axis=0) > shares
        low, high = np.where(is_high, low, middle), np.where(is_high, middle, high)
    return np.asarray((low + high) / 2)


def _extend_table(model: Model, labels: NamedLabels, prior: NamePrior | None) -> NameTable | None:
    """Return the meanings of all label names, if the model uses names."""
    if model.names is None:
        return None
    more = [str(name) for name in labels.classes()[len(model.names) :]]
    return extend_names(model.names, prior, more) if more else model.names


def _extend_tags(model: Model, y: InputLabels | None, n: int, known: np.ndarray) -> NamedLabels:
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
    return NamedLabels(vocabulary.transform(tags), None, vocabulary, tags)


def _extend_columns(model: Model, y: InputLabels | None, n: int, known: np.ndarray) -> NamedLabels:
    """Return the label matrix of all images, with the columns of new labels at the end."""
    added, before = as_labels(y, n), model.method.labels
    if added.shape[1] < before.shape[1]:
        raise InvalidInput(
            f"Found {added.shape[1]} labels, but {before.shape[1]} are known. Pass all columns, "
            "with new labels at the end."
        )
    names = check_names(model.column_names, y, added.shape[1])
    return NamedLabels(replace_rows(widen(before, added.shape[1]), added, known), names)
