"""Add images to a model, and change labels of its images, without a new fit."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tagkin.annotator.label_input import (
    InputLabels,
    check_tag_lists,
    label_matrix,
    rejection_matrix,
    replace_rows,
    take_rows,
)
from tagkin.annotator.model import Model
from tagkin.annotator.problem import Labels
from tagkin.arrays import Array, to_numpy
from tagkin.arrays.labels import check_complete
from tagkin.transfer.occasions import Occasions

__all__ = ["AddedImages", "extend"]


class AddedImages(NamedTuple):
    """n images to add to a model."""

    X: Array
    """Features of shape (n, d); those of known images are not used."""
    y: InputLabels
    """Labels of shape (n, D), or n lists of tags; labels that were not learned do not count."""
    known: np.ndarray
    """Number of the image among those learned from, or −1 for a new image, shape (n,)."""
    rejected: InputLabels | None = None
    """Rejected labels, like y; with None, known images keep theirs."""
    complete: Array | None = None
    """Which images have all of their labels, shape (n,); with None, new images have."""
    occasions: Occasions | None = None
    """When and where they were taken; those of known images are not used."""


def extend(model: Model, images: AddedImages) -> Model:
    """Return a model with further images that vote; the old model does not change."""
    X, y, known, rejected, complete, occasions = images
    n, n_before, new = X.shape[0], model.n_images, np.flatnonzero(known < 0)
    check_complete(complete, n)
    labels = replace_rows(model.method.labels, label_matrix(y, n, model.labels), known)
    method = model.method
    if len(new):
        method = replace(method, index=deepcopy(method.index))  # it grows in place
        method = method.add(model.embed(X[new]), labels[n_before:])
    if rejected is None:
        rejected_now = take_rows(model.rejected, known)
    else:
        rejected_now = rejection_matrix(rejected, n, model.labels)
    rejections = Labels.of(labels, replace_rows(model.rejected, rejected_now, known)).rejected
    known_now = {"rejected": rejections} if method.takes_rejected else {}
    places = np.where(known >= 0, known, n_before + np.cumsum(known < 0) - 1)
    if method.takes_incomplete:
        mask = np.append(model.complete, np.ones(len(new), dtype=bool))
        if complete is not None:
            mask[places] = to_numpy(complete)
        known_now["complete"] = mask
    tags = model.tags
    if tags is not None:
        tags = [*tags, *([] for _ in new)]
        for place, row in zip(places, check_tag_lists(y, n), strict=True):
            tags[place] = row
    before = model.occasions
    if before is not None:
        before = before.join(None if occasions is None else occasions.take(new), len(new))
    belonging = model.belonging.copy()
    belonging.resize(labels.shape)
    return replace(
        model,
        method=method.relabel(labels, **known_now),
        belonging=belonging,
        occasions=before,
        rejected=rejections,
        groups=np.append(model.groups, model.groups.max() + 1 + np.arange(len(new))),
        tags=tags,
    )
