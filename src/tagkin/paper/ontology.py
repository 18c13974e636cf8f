"""A text view in which images are similar if their labels are close in WordNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin

from tagkin.arrays import Array, as_block, like, to_numpy
from tagkin.arrays.linalg import eigh, matmul
from tagkin.errors import InvalidInput
from tagkin.paper.wordnet import WordNet
from tagkin.records.forms import storable
from tagkin.records.rules import Floats

__all__ = ["OntologyView", "psd_factor"]


def psd_factor(S: np.ndarray) -> tuple[np.ndarray, float]:
    """Return a factor F of the positive semi-definite matrix F Fᵀ nearest to a symmetric S.

    The nearest matrix in the Frobenius norm is S with its negative eigenvalues set to zero.

    Parameters
    ----------
    S : (D, D)

    Returns
    -------
    F : (D, q)
        q is the rank of the nearest matrix.
    clipped : float
        Relative distance ‖S − F Fᵀ‖ / ‖S‖.
    """
    values, vectors = eigh(S)
    # smaller eigenvalues are rounding errors of either sign
    keep = values > len(values) * np.finfo(values.dtype).eps * values[-1]
    clipped = np.linalg.norm(values[values < 0]) / np.linalg.norm(values)
    return vectors[:, keep] * np.sqrt(values[keep]), float(clipped)


@storable
class OntologyView(TransformerMixin, BaseEstimator):
    """Labels compared by their meaning in WordNet: K^T = Y S Yᵀ (the paper's equation 4).

    S contains the Lin similarities of the labels, 1 on the diagonal and 0 for unknown labels. A
    kernel must be positive semi-definite, so the nearest such matrix replaces S. With its
    factor F, S = F Fᵀ, the text features are T̂ = Y F.

    Parameters
    ----------
    names : list of str
        The labels' names, in the order of the columns of Y.
    wordnet : WordNet, optional
        By default ``WordNet()``. Only `fit` needs it; a fitted or saved view works without
        WordNet.

    Attributes
    ----------
    factor_ : array of shape (D, q)
        F; q is the rank of S.
    similarity_ : array of shape (D, D)
        S = F Fᵀ.
    clipped_ : float
        Distance of S from the Lin similarities, relative to their Frobenius norm.
    unknown_ : list of str
        Labels that are not in WordNet; each is similar only to itself.

    Examples
    --------
    >>> from tagkin import SemanticSpace
    >>> from tagkin.paper.ontology import OntologyView
    >>> space = SemanticSpace(text_view=OntologyView(["dog", "cat", "car"]))
    """

    factor_: Annotated[Array, Floats("D", "q")]
    clipped_: float
    unknown_: list[str]

    def __init__(
        self,
        names: Sequence[str] | None = None,
        wordnet: WordNet | None = None,
    ):
        self.names = names
        self.wordnet = wordnet

    def fit(self, Y: Array, y: object = None) -> Self:
        """Look up the labels; of Y (N×D), only the number of columns is used.

        Parameters
        ----------
        Y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        y : ignored
            For scikit-learn; not used.
        """
        if self.names is None:
            raise InvalidInput(
                "An OntologyView needs the labels' names: OntologyView(names), in the order of "
                "the columns of Y."
            )
        names = self.names
        if len(names) != Y.shape[1]:
            raise InvalidInput(
                f"Found {len(names)} names for the {Y.shape[1]} labels of Y. Give one name for "
                "each column, in their order."
            )
        wordnet = WordNet() if self.wordnet is None else self.wordnet
        self.factor_, self.clipped_ = psd_factor(wordnet.lin_matrix(names))
        self.unknown_ = wordnet.unknown(names)
        return self

    def transform(self, Y: Array) -> Array:
        """Return dense text features T̂ = Y F (n×q) of labels Y (n×D)."""
        n_labels = self.factor_.shape[0]
        if Y.shape[1] != n_labels:
            raise InvalidInput(
                f"Found {Y.shape[1]} labels where {n_labels} were fitted. A new label needs no new "
                "space, because neighbours pass it on: add it to the method."
            )
        if scipy.sparse.issparse(Y):
            return Y @ to_numpy(self.factor_)
        block = as_block(Y, double=True, name="Y")
        return matmul(block, like(self.factor_, block))

    @property
    def similarity_(self) -> Array:
        """S (D×D), the similarities in use."""
        return matmul(self.factor_, self.factor_.T)
