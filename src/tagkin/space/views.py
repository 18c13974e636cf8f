"""Textual views: from a label matrix Y (N×D) to explicit text features T̂ (N×q).

The textual kernel of a view is the inner product of its features, K^T = T̂ T̂ᵀ. A view is
any object with `fit` and `transform`; `SemanticSpace(text_view=…)` takes one, or a name.
"""

from __future__ import annotations

from typing import Annotated, Any, Protocol, Self, runtime_checkable

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone

from tagkin.arrays import Array, check_integer, check_label_matrix, namespace, row_blocks, to_numpy
from tagkin.arrays.records import storable
from tagkin.arrays.rules import Indices, Size
from tagkin.errors import InvalidInput
from tagkin.space.chi2_view import Chi2View

__all__ = ["IndicatorView", "TextView", "as_text_view", "text_features"]

MOST_LABELS = 4096


@runtime_checkable
class TextView(Protocol):
    """What a textual view does. Y and T̂ are dense, or sparse CSR, with one row an image."""

    def fit(self, Y: Array) -> Any:
        """Learn what the view needs from all labels (N×D)."""

    def transform(self, Y: Array) -> Array:
        """Text features T̂ (n×q) of labels Y (n×D)."""


@storable
class IndicatorView(TransformerMixin, BaseEstimator):
    """Labels as they are: T̂ = Y, so that K^T counts the labels that two images share.

    Entries may also be weights, such as confidences.

    Parameters
    ----------
    max_labels : int, default 4096
        Of more labels, those on most images are text features. A space needs a matrix of the size
        of its text features, and what is on hardly any image says little about all others.

    Attributes
    ----------
    n_labels_ : int
        D.
    kept_ : int array of shape (q,)
        Columns of Y that are text features.
    """

    n_labels_: Annotated[int, Size("D")]
    kept_: Annotated[np.ndarray, Indices("q", below="D", ascending=True)]

    def __init__(self, max_labels: int = MOST_LABELS):
        self.max_labels = max_labels

    def fit(self, Y: Array, y: object = None) -> Self:
        """Note the number of labels, and of very many the most frequent."""
        check_integer("max_labels", self.max_labels)
        self.n_labels_ = Y.shape[1]
        self.kept_ = np.arange(self.n_labels_)
        if self.n_labels_ > self.max_labels:
            order = np.argsort(-_n_images(Y), kind="stable")
            self.kept_ = np.sort(order[: self.max_labels])
        return self

    def transform(self, Y: Array) -> Array:
        """Y itself (n×D), or the columns that are kept."""
        check_label_matrix(Y, n_labels=self.n_labels_, signed=True)
        kept = self.kept_
        if len(kept) == self.n_labels_:
            return Y
        if scipy.sparse.issparse(Y):
            return Y[:, kept]
        if isinstance(Y, np.ndarray):
            return np.take(Y, kept, axis=1)  # row after row, as what comes next reads it
        return Y[:, namespace(Y).asarray(kept, device=Y.device)]


def _n_images(Y: Any) -> np.ndarray:
    """Images that carry each label, shape (D,)."""
    if scipy.sparse.issparse(Y):
        return np.bincount(Y.tocsr().indices[Y.tocsr().data != 0], minlength=Y.shape[1])
    blocks = row_blocks(Y.shape[0], 8 * Y.shape[1], Y)
    return np.sum([to_numpy((Y[rows] != 0).sum(axis=0)) for rows in blocks], axis=0)


# Views that need nothing but Y go by name; `WordVectorView` needs the names of the labels.
_VIEWS = {"chi2": Chi2View, "indicator": IndicatorView}

# Views that must be told something, so that a name is not enough, and how to make them.
_MADE_BY_HAND = {"ontology": "tagkin.labels.OntologyView(names), with the labels' names"}


def as_text_view(view: str | TextView) -> TextView:
    """An unfitted copy of a view, from a name or from an object with fit and transform."""
    if isinstance(view, str):
        if view in _MADE_BY_HAND:
            raise InvalidInput(
                f"The text view {view!r} has no default. Pass {_MADE_BY_HAND[view]}."
            )
        if view not in _VIEWS:
            raise InvalidInput(
                f"Unknown text view {view!r}. Use one of {', '.join(sorted(_VIEWS))}, or an object "
                "with fit(Y) and transform(Y)."
            )
        return _VIEWS[view]()
    if isinstance(view, type) or not isinstance(view, TextView):
        raise InvalidInput(
            f"text_view must be a name or an object with fit and transform; found {view!r}."
        )
    return clone(view, safe=False)


def text_features(view: TextView, Y: Array) -> Array:
    """Text features (n×q) of labels (n×D) that are checked, as the features are where they differ.

    With the indicator view they are the labels themselves.
    """
    text = view.transform(Y)
    if text is Y:
        return Y
    return check_label_matrix(text, Y.shape[0], name="text features", signed=True)
