"""Remember which space computed which embeddings, while both exist.

Embeddings of images that a space was fitted on depend on the labels of these images. So users who
evaluate or calibrate on them get a warning.
"""

from __future__ import annotations

import weakref
from typing import Protocol

import numpy as np
from scipy.sparse import issparse

from tagkin.arrays import Array, to_numpy
from tagkin.arrays.namespaces import LabelMatrix
from tagkin.space.views import TextView

__all__ = ["has_seen", "remember"]


class FittedSpace(Protocol):
    """The labels of a fitted `SemanticSpace`, to compare with others."""

    text_view_: TextView
    n_images_: int

    @property
    def text_mean_(self) -> Array:
        """Mean of the text features, shape (q,)."""


# by identity: arrays cannot be compared or hashed
_SPACES: dict[int, tuple[weakref.ref[Array], weakref.ref[FittedSpace]]] = {}


def remember(embeddings: Array, space: FittedSpace) -> None:
    """Note that a space computed these embeddings."""
    key = id(embeddings)
    forget = weakref.ref(embeddings, lambda _: _SPACES.pop(key, None))
    _SPACES[key] = forget, weakref.ref(space)


def has_seen(X: object, Y: LabelMatrix) -> bool:
    """Return whether X (N×m) are embeddings in a space that was fitted on the labels Y (N×D).

    False if this is not known: for copies, for parts, and after the space is gone.
    """
    for array in (X, getattr(X, "base", None)):
        made, space = _SPACES.get(id(array), (lambda: None, lambda: None))
        known = space()
        if array is not None and made() is array and known is not None:
            return _learned_from(known, Y)
    return False


def _learned_from(space: FittedSpace, Y: LabelMatrix) -> bool:
    """Return whether a space was learned from labels with the same counts."""
    view = space.text_view_
    kept = getattr(view, "kept_", None)
    n_labels = getattr(view, "n_labels_", space.text_mean_.shape[0])
    if space.n_images_ != Y.shape[0] or n_labels != Y.shape[1]:
        return False
    labels = Y if issparse(Y) else to_numpy(Y)
    labels = labels if kept is None else labels[:, kept]
    shares = np.asarray(labels.mean(axis=0), dtype=float).ravel()
    return bool(np.allclose(to_numpy(space.text_mean_), shares, atol=1e-9))
