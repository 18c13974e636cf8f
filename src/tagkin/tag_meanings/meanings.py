"""Possible meanings of tags, and their weights given photographs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy.sparse

from tagkin.arrays import row_blocks
from tagkin.records.forms import storable
from tagkin.records.rules import Either, Floats, Indices, Sparse

__all__ = ["BORROWED", "OWN", "UNKNOWN", "Meanings", "NameTable"]

UNKNOWN, BORROWED, OWN = range(3)
"""Kinds of tags: unknown to a prior, known by similar things, or known themselves."""

_ANYHOW = 0.2  # share of a tag's photographs that have it for another reason than this meaning
_PHOTOGRAPHS = 5  # maximum evidence, because a mixture of meanings ranks better than a single one


@storable
@dataclass(frozen=True)
class NameTable:
    """One row for each of D tags, which a prior uses to score the tag.

    Attributes
    ----------
    rows : array or CSR array of shape (D, C)
        Zero for unknown tags.
    kinds : int8 array of shape (D,)
        `UNKNOWN`, `BORROWED` or `OWN`.
    breadths : float64 array of shape (D,)
        Number of the tag's own classes; 1 if it does not name a class.
    """

    rows: Annotated[
        np.ndarray | scipy.sparse.csr_array,
        Either(Sparse("D", "C", low=-1e30), Floats("D", "C")),
    ]
    kinds: Annotated[np.ndarray, Indices("D", below=3)]
    breadths: Annotated[np.ndarray, Floats("D")]

    def __len__(self) -> int:
        return len(self.kinds)

    def some(self, tags: np.ndarray) -> NameTable:
        """Return the rows of these tags (n,), given by number."""
        return NameTable(self.rows[tags], self.kinds[tags], self.breadths[tags])

    def append(self, other: NameTable) -> NameTable:
        """Return these tags followed by the other tags."""
        sparse = scipy.sparse.issparse(self.rows)
        rows: Any = (
            scipy.sparse.vstack([self.rows, other.rows], format="csr")
            if sparse
            else np.vstack([self.rows, other.rows])
        )
        kinds, breadths = (
            np.append(getattr(self, name), getattr(other, name)) for name in ("kinds", "breadths")
        )
        return NameTable(rows, kinds, breadths)


@dataclass(frozen=True)
class Meanings:
    """All possible meanings of D tags: K rows, several for an ambiguous tag.

    Attributes
    ----------
    rows : array or CSR array of shape (K, C)
    tags : int array of shape (K,)
        The tag of each row, ascending.
    weights : float64 array of shape (K,)
        Probability of each meaning before any photograph is seen; a tag's weights add up to 1.
    breadths : float64 array of shape (K,)
    kinds : int8 array of shape (D,)
    """

    rows: np.ndarray | scipy.sparse.csr_array
    tags: np.ndarray
    weights: np.ndarray
    breadths: np.ndarray
    kinds: np.ndarray

    def table(self, weights: np.ndarray | None = None) -> NameTable:
        """Return one row per tag: the mean of its meanings with these or the prior weights."""
        weights = self.weights if weights is None else weights
        mixing = self._matrix(weights)
        rows = mixing @ self.rows
        breadths = mixing @ self.breadths
        breadths[self.kinds == UNKNOWN] = 1
        return NameTable(rows, self.kinds, breadths)

    def learned(
        self,
        scores: Callable[[np.ndarray, np.ndarray | scipy.sparse.csr_array], np.ndarray],
        X: np.ndarray,
        Y: scipy.sparse.csr_array,
    ) -> np.ndarray:
        """Return weights (K,) of the meanings, given photographs with the tags.

        Under a meaning k with scores log qₖ(x), photographs of the tag are drawn with
        probabilities proportional to r = .8 qₖ(x)/q̄ₖ + .2, q̄ₖ the mean over all photographs.
        By Bayes' rule the weight is proportional to wₖ Π r over the photographs with the tag.

        Parameters
        ----------
        scores : function of features and rows
            Such as `NamePrior.scores`.
        X : array of shape (n, d)
        Y : CSR array of shape (n, D)
        """
        ambiguous = np.flatnonzero(np.bincount(self.tags, minlength=len(self.kinds))[self.tags] > 1)
        if not len(ambiguous):
            return self.weights
        rows, tags = self.rows[ambiguous], self.tags[ambiguous]
        n = X.shape[0]
        blocks = list(row_blocks(n, 16 * (len(ambiguous) + self.rows.shape[1])))
        mean = sum(np.exp(scores(X[block], rows)).sum(axis=0) for block in blocks) / n
        evidence = np.zeros(len(ambiguous))
        for block in blocks:
            lift = np.exp(scores(X[block], rows)) / np.maximum(mean, 1e-300)
            logs = np.log((1 - _ANYHOW) * lift + _ANYHOW)
            has_tag = Y[block][:, tags].toarray() > 0
            evidence += np.where(has_tag, logs, 0).sum(axis=0)
        n_images = Y.sum(axis=0)[tags]
        evidence *= np.minimum(1, _PHOTOGRAPHS / np.maximum(n_images, 1))
        log_weights = np.log(self.weights)
        log_weights[ambiguous] += evidence
        return self._normalize(log_weights)

    def _normalize(self, log_weights: np.ndarray) -> np.ndarray:
        top = np.full(len(self.kinds), -np.inf)
        np.maximum.at(top, self.tags, log_weights)
        weights = np.exp(log_weights - top[self.tags])
        total = np.bincount(self.tags, weights, minlength=len(self.kinds))
        return weights / total[self.tags]

    def _matrix(self, weights: np.ndarray) -> scipy.sparse.csr_array:
        """Return the weights as a matrix (D×K) that adds up the meanings of each tag."""
        shape = len(self.kinds), len(self.tags)
        return scipy.sparse.csr_array((weights, (self.tags, np.arange(len(self.tags)))), shape)
