"""Textual views: from a label matrix Y (N×D) to explicit text features T̂ (N×q).

The textual kernel of a view is the inner product of its features, K^T = T̂ T̂ᵀ. A view is any
object with `fit` and `transform`. `SemanticSpace(text_view=…)` takes a view or its name.
"""

from __future__ import annotations

from typing import Annotated, Protocol, Self, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone

from tagkin.arrays import Array, check_integer, check_label_matrix, namespace, row_blocks, to_numpy
from tagkin.arrays.namespaces import LabelMatrix, is_sparse
from tagkin.errors import InvalidInput
from tagkin.records.forms import storable
from tagkin.records.rules import Indices, Size

__all__ = ["IndicatorView", "TextView", "as_text_view", "text_features"]


@runtime_checkable
class TextView(Protocol):
    """A textual view. Y and T̂ are dense or sparse CSR, with one row per image."""

    def fit(self, Y: LabelMatrix) -> object:
        """Learn from all labels (N×D)."""

    def transform(self, Y: LabelMatrix) -> LabelMatrix:
        """Return text features T̂ (n×q) of labels Y (n×D)."""


@storable
class IndicatorView(TransformerMixin, BaseEstimator):
    """Plain labels: T̂ = Y, so K^T counts the labels that two images share.

    Entries may also be weights, such as confidences.

    Parameters
    ----------
    max_labels : int, default 4096
        Number of text features. If there are more labels, the most frequent are used: a space
        needs a matrix of the size of its text features, and rare labels say little about most
        images.

    Attributes
    ----------
    n_labels_ : int
        D.
    kept_ : int array of shape (q,)
        Columns of Y that are text features.
    """

    n_labels_: Annotated[int, Size("D")]
    kept_: Annotated[np.ndarray, Indices("q", below="D", ascending=True)]

    def __init__(self, max_labels: int = 4096):
        self.max_labels = max_labels

    def fit(self, Y: Array, y: object = None) -> Self:
        """Store the number of labels, and choose the most frequent if they are too many.

        Parameters
        ----------
        Y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        y : ignored
            For scikit-learn; not used.
        """
        check_integer("max_labels", self.max_labels)
        self.n_labels_ = Y.shape[1]
        self.kept_ = np.arange(self.n_labels_)
        if self.n_labels_ > self.max_labels:
            order = np.argsort(-_n_images(Y), kind="stable")
            self.kept_ = np.sort(order[: self.max_labels])
        return self

    def transform(self, Y: Array) -> Array:
        """Return Y itself (n×D), or the columns that are kept."""
        check_label_matrix(Y, n_labels=self.n_labels_, signed=True)
        kept = self.kept_
        if len(kept) == self.n_labels_:
            return Y
        if is_sparse(Y):
            return Y[:, kept]
        if isinstance(Y, np.ndarray):
            return np.take(Y, kept, axis=1)  # with contiguous rows, which are read next
        return Y[:, namespace(Y).asarray(kept, device=Y.device)]


def _n_images(Y: LabelMatrix) -> np.ndarray:
    """Return the number of images with each label, shape (D,)."""
    if is_sparse(Y):
        return np.bincount(Y.tocsr().indices[Y.tocsr().data != 0], minlength=Y.shape[1])
    blocks = row_blocks(Y.shape[0], 8 * Y.shape[1], Y)
    return np.sum([to_numpy((Y[rows] != 0).sum(axis=0)) for rows in blocks], axis=0)


def as_text_view(view: str | TextView) -> TextView:
    """Return an unfitted copy of a view, from a name or an object with fit and transform."""
    if isinstance(view, str):
        if view != "indicator":
            raise InvalidInput(
                f"Unknown text view {view!r}. Use 'indicator', or an object with fit(Y) and "
                "transform(Y), such as tagkin.paper.Chi2View()."
            )
        return IndicatorView()
    if isinstance(view, type) or not isinstance(view, TextView):
        raise InvalidInput(
            f"text_view must be a name or an object with fit and transform; found {view!r}."
        )
    return clone(view, safe=False)


def text_features(view: TextView, Y: LabelMatrix) -> LabelMatrix:
    """Return checked text features (n×q) of checked labels (n×D)."""
    text = view.transform(Y)
    if text is Y:
        return Y
    return check_label_matrix(text, Y.shape[0], name="text features", signed=True)
