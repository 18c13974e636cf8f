"""A text view of labels as the mean of their word vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tagkin.arrays import (
    Array,
    as_block,
    check_features,
    check_label_matrix,
    like,
    namespace,
    row_blocks,
    to_numpy,
)
from tagkin.errors import InvalidInput
from tagkin.paper.word_vectors import FilePath, WordVectors
from tagkin.records.forms import storable
from tagkin.records.rules import Flags, Floats, Number

__all__ = ["WordVectorView"]


@storable
class WordVectorView(TransformerMixin, BaseEstimator):
    """The mean of the word vectors of an image's labels (the paper's equation 5).

    t = Σⱼ yⱼ vⱼ / Σⱼ yⱼ over the labels j that have a vector; an image without such a label has
    the zero vector. A label without a vector is left out of both sums, so it does not weaken the
    other labels. Entries of Y are non-negative weights.

    `fit` looks up the vectors; a fitted view keeps them and needs no file.

    Parameters
    ----------
    names : sequence of str
        The labels' names, in the order of the columns of Y, such as ``vocabulary.names_``.
    vectors : WordVectors, path, array of shape (D, v), or None
        Word vectors or their file. An array has a row for every label, zero if it has no vector.
        None takes GloVe from the extra ``words``.

    Attributes
    ----------
    vectors_ : float32 array of shape (D, v)
    known_ : bool array of shape (D,)
        Which labels have a vector.
    coverage_ : float
        Share of the labels with a vector.
    unknown_ : list of str
        Labels without a vector.
    """

    vectors_: Annotated[Array, Floats("D", "q")]
    known_: Annotated[np.ndarray, Flags("D")]
    coverage_: Annotated[float, Number(low=0, high=1)]
    unknown_: list[str]

    def __init__(
        self,
        names: Sequence[str] | None = None,
        vectors: WordVectors | FilePath | Array | None = None,
    ):
        self.names = names
        self.vectors = vectors

    def fit(self, Y: Array, y: object = None) -> Self:
        """Look up the labels' vectors; of Y (N×D), only the number of columns is used.

        Parameters
        ----------
        Y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        y : ignored
            For scikit-learn; not used.
        """
        n_labels = check_label_matrix(Y).shape[1]
        if self.names is None or isinstance(self.names, str):
            raise InvalidInput(
                f"names must list the {n_labels} labels, the columns of Y; found {self.names!r}. "
                "Pass WordVectorView(names=vocabulary.names_)."
            )
        names = [str(name) for name in self.names]
        if len(names) != n_labels:
            raise InvalidInput(
                f"Found {len(names)} names and {n_labels} labels in Y. Give one name per column."
            )
        vectors, known = self._look_up(names)
        if not known.any():
            raise InvalidInput(
                f"None of the {len(names)} labels has a word vector: {', '.join(names[:5])} … Are "
                "they words of the language of the vectors?"
            )
        self.vectors_, self.known_ = vectors, known
        self.coverage_ = float(known.mean())
        self.unknown_ = [name for name, there in zip(names, known, strict=True) if not there]
        return self

    def _look_up(self, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
        vectors = self.vectors
        if vectors is None or isinstance(vectors, str) or hasattr(vectors, "__fspath__"):
            vectors = WordVectors(vectors)
        if isinstance(vectors, WordVectors):
            return vectors.vectors(names)
        rows = to_numpy(as_block(check_features(vectors, name="vectors"), name="vectors"))
        if len(rows) != len(names):
            raise InvalidInput(
                f"Found {len(rows)} vectors for {len(names)} names. Give one vector per name."
            )
        return rows.astype(np.float32), (rows != 0).any(axis=1)

    def transform(self, Y: Array) -> Array:
        """Return mean vectors T̂ (n×v) of labels Y (n×D), float32 if Y is that or narrower."""
        check_is_fitted(self)
        checked = check_label_matrix(Y, n_labels=len(self.known_))
        if scipy.sparse.issparse(checked):
            return self._means(checked.astype(as_block(np.asarray(checked.data)[:1, None]).dtype))
        Y = checked
        xp = namespace(Y)
        shape = Y.shape[0], self.vectors_.shape[1]
        means = xp.empty(shape, dtype=as_block(Y[:1]).dtype, device=Y.device)
        for rows in row_blocks(Y.shape[0], 16 * Y.shape[1]):
            means[rows] = self._means(as_block(Y[rows]))
        return means

    def _means(self, Y: Array | scipy.sparse.csr_array) -> Array:
        values = Y.data if scipy.sparse.issparse(Y) else Y
        xp = namespace(values)
        totals = Y @ like(self.known_, values)
        means = Y @ like(self.vectors_, values)
        means /= xp.where(totals > 0, totals, xp.ones_like(totals))[:, None]
        return means

    def describe(self) -> list[str]:
        """Describe this view in a few sentences."""
        check_is_fitted(self)
        first = ", ".join(self.unknown_[:10]) + (", …" if len(self.unknown_) > 10 else "")
        return [
            f"Maps {len(self.known_):,} labels to the mean of their word vectors of "
            f"{self.vectors_.shape[1]} numbers.",
            f"{self.coverage_:.1%} of the labels have a vector"
            + (f"; without: {first}." if self.unknown_ else "."),
        ]
