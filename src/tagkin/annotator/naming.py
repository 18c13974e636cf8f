"""Combine label-name priors with learned scores."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, expit, row_blocks, to_numpy
from tagkin.errors import InvalidInput, MissingExtra
from tagkin.records.forms import storable
from tagkin.tag_meanings import Meanings, NamePrior, NameTable, NameWeights
from tagkin.wording import count

__all__ = ["LearnedNames", "Naming", "check_prior", "confidences_by_name", "score_names"]

_COUNTS = 0.05  # least weight of a name that counts as used


@storable
@dataclass(frozen=True)
class LearnedNames:
    """Meanings of D label names, and their weights."""

    table: NameTable
    weights: NameWeights

    def combine(self, prior: NamePrior | None, X: Array, scores: np.ndarray) -> np.ndarray:
        """Return log-odds (n×D) from learned scores (n×D) and the names, for features X (n×d)."""
        return self.weights.combine(scores, self.prior_scores(prior, X))

    def prior_scores(self, prior: NamePrior | None, X: Array) -> np.ndarray:
        """Return scores (n×D) of the label names for features X (n×d)."""
        if prior is None:
            raise InvalidInput(
                "This model uses the names of labels, and a model is saved without its prior. Set "
                "prior, for example to ClassPrior(get_backbone().classifier)."
            )
        return score_names(prior, X, self.table)

    @property
    def n_counted(self) -> int:
        """Number of labels whose names have a weight."""
        return int((self.weights.weights >= _COUNTS).sum())

    def describe(self) -> list[str]:
        """Return a sentence that says how many names have a weight."""
        unknown = int((self.table.kinds == 0).sum())
        return [
            f"The names of {self.n_counted:,} of {count(len(self.table), 'label')} count, "
            f"too; {unknown:,} of the names are unknown."
        ]

    def extend(self, prior: NamePrior | None, names: np.ndarray) -> LearnedNames:
        """Return a copy for the labels `names` (D,), which begin with the known labels."""
        more = [str(name) for name in names[len(self.table) :]]
        if not more:
            return self
        new = _unknown_names(self.table, len(more))
        if prior is not None:
            with suppress(MissingExtra):  # the lexicon may be on another machine only
                new = prior.meanings(more).table()
        return LearnedNames(self.table.append(new), self.weights.extend(new.kinds))


@dataclass(frozen=True)
class Naming:
    """Possible meanings of D label names, before their weights are known."""

    prior: NamePrior
    meanings: Meanings

    @classmethod
    def of(cls, prior: NamePrior | None, names: np.ndarray | None) -> Naming | None:
        """Look up the names; None without a prior or names."""
        check_prior(prior)
        if prior is None or names is None:
            return None
        return cls(prior, prior.meanings([str(name) for name in names]))

    def look_up_meanings(self, X: Array, Y: scipy.sparse.csr_array) -> NameTable:
        """Choose the meaning of each name, given images X (N×d) and labels Y (N×D)."""
        return self.meanings.table(self.meanings.learned(self.prior.scores, to_numpy(X), Y))


def check_prior(prior: Any) -> None:
    """Reject an object that does not score images by label names."""
    if prior is not None and not hasattr(prior, "meanings"):
        raise InvalidInput(
            f"prior must score images by label names, as a ClassPrior does; found {prior!r:.80}."
        )


def confidences_by_name(prior: NamePrior, X: Array, names: Sequence[str]) -> np.ndarray:
    """Return probabilities (n×D), float32, of labels from their names alone."""
    table = prior.meanings(names).table()
    P = np.empty((X.shape[0], len(table)), dtype=np.float32)
    for rows in _image_blocks(X, table):
        P[rows] = expit(prior.log_odds(to_numpy(X[rows]), table))
    return P


def score_names(prior: NamePrior, X: Array, table: NameTable) -> np.ndarray:
    """Return scores (n×D), float32, of label names."""
    Z = np.empty((X.shape[0], len(table)), dtype=np.float32)
    try:
        for rows in _image_blocks(X, table):
            Z[rows] = prior.scores(to_numpy(X[rows]), table.rows)
    except ValueError as error:  # products of shapes that do not fit
        raise InvalidInput(
            f"The names of labels were learned with {table.rows.shape[1]} classes, and the prior "
            f"{prior!r} has other classes. Use the prior of the same backbone, or fit again."
        ) from error
    return Z


def _image_blocks(X: Array, table: NameTable) -> Any:
    return row_blocks(X.shape[0], 16 * (len(table) + table.rows.shape[1]))


def _unknown_names(table: NameTable, n: int) -> NameTable:
    """Return n names without a meaning, in the format of the table."""
    rows = scipy.sparse.csr_array((n, table.rows.shape[1]), dtype=np.float32)
    fitting = rows if scipy.sparse.issparse(table.rows) else rows.toarray()
    return NameTable(fitting, np.zeros(n, dtype=np.int8), np.ones(n))
