"""Labels through an ontology: images are similar if their labels are close in WordNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin

from tagkin.arrays import Array, as_block, eigh, like, matmul, to_numpy
from tagkin.errors import InvalidInput
from tagkin.lexicons.wordnet import WordNet

__all__ = ["OntologyView", "psd_factor"]


def psd_factor(S: np.ndarray) -> tuple[np.ndarray, float]:
    """Factor F of the positive semi-definite matrix F Fᵀ nearest to a symmetric S.

    Nearest in the Frobenius norm: S with its negative eigenvalues set to zero.

    Parameters
    ----------
    S : (D, D)

    Returns
    -------
    F : (D, q)
        q is the rank of the nearest matrix.
    clipped : float
        How far that is from S: ‖S − F Fᵀ‖ / ‖S‖.
    """
    values, vectors = eigh(S)
    # smaller eigenvalues are rounding, of either sign
    keep = values > len(values) * np.finfo(values.dtype).eps * values[-1]
    clipped = np.linalg.norm(values[values < 0]) / np.linalg.norm(values)
    return vectors[:, keep] * np.sqrt(values[keep]), float(clipped)


class OntologyView(TransformerMixin, BaseEstimator):
    """Labels compared by their meaning in WordNet: K^T = Y S Yᵀ (the paper's equation 4).

    S holds the Lin similarities of the labels, 1 on the diagonal and 0 where a label is
    unknown. It need not be positive semi-definite, as a kernel must be, and is replaced by the
    nearest matrix that is. With its factor F, S = F Fᵀ, the text features are T̂ = Y F.

    Parameters
    ----------
    names : list of str
        The labels' names, in the order of the columns of Y.
    wordnet : WordNet, optional
        By default ``WordNet.find()``. It is needed to fit and not kept: a fitted view, and a
        saved one, works without WordNet, and looks for it if it is fitted again.
    senses : "best" or "first"
        Compare labels by their two most similar noun senses, or by their first ones.

    Attributes
    ----------
    factor_ : array of shape (D, q)
        F, where q is the rank of S.
    similarity_ : array of shape (D, D)
        S = F Fᵀ.
    clipped_ : float
        How far S is from the Lin similarities, as a share of their Frobenius norm.
    unknown_ : list of str
        Labels that are not in WordNet; each is similar to itself alone.
    unattested_ : list of str
        Labels in WordNet that its corpus never mentions: they are similar to each other at most.
        ``WordNet.find(information_content="brown-add1")`` has their similarity to the rest.

    Examples
    --------
    >>> from tagkin import SemanticSpace
    >>> from tagkin.labels.ontology import OntologyView
    >>> space = SemanticSpace(text_view=OntologyView(["dog", "cat", "car"]))
    """

    def __init__(
        self,
        names: Sequence[str] | None = None,
        wordnet: WordNet | None = None,
        senses: str = "best",
    ):
        self.names = names
        self.wordnet = wordnet
        self.senses = senses

    def fit(self, Y: Array, y: object = None) -> Self:
        """Look the labels of Y (N×D) up; only their number is taken from Y."""
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
        wordnet = WordNet.find() if self.wordnet is None else self.wordnet
        self.factor_, self.clipped_ = psd_factor(wordnet.lin_matrix(names, self.senses))
        self.unknown_ = wordnet.unknown(names)
        self.unattested_ = wordnet.unattested(names)
        return self

    def transform(self, Y: Array) -> Array:
        """Text features T̂ = Y F (n×q), dense, of labels Y (n×D)."""
        n_labels = self.factor_.shape[0]
        if Y.shape[1] != n_labels:
            raise InvalidInput(
                f"Found {Y.shape[1]} labels where {n_labels} were fitted. A label added later "
                "needs no new space: neighbours carry it."
            )
        if scipy.sparse.issparse(Y):
            return Y @ to_numpy(self.factor_)
        block = as_block(Y, double=True, name="Y")
        return matmul(block, like(self.factor_, block))

    @property
    def similarity_(self) -> Array:
        """S (D×D), the similarities in use."""
        return matmul(self.factor_, self.factor_.T)
