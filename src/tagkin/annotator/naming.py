"""Combine label-name priors with learned scores."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, expit, logit, row_blocks, to_numpy
from tagkin.arrays.records import storable, take
from tagkin.calibration.pooling import positions_among
from tagkin.errors import InvalidInput, MissingExtra
from tagkin.tag_meanings import Meanings, NamePrior, NameTable, NameWeights, fit_name_weights
from tagkin.tag_meanings.meanings import UNKNOWN
from tagkin.wording import count

if TYPE_CHECKING:  # suggesting takes no folds
    from tagkin.model_selection.folds import Fold

__all__ = ["LearnedNames", "Naming", "confidences_by_name"]

_COUNTS = 0.05  # a weight that changes something
_ENOUGH_LABELS = 6  # for a standard error of the gain by names


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
        return _scores(prior, X, self.table)

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
        """Return a copy for labels of these names (D,), the first of which are known already."""
        more = [str(name) for name in names[len(self.table) :]]
        if not more:
            return self
        new = _unknown_names(self.table, len(more))
        if prior is not None:
            with suppress(MissingExtra):  # the lexicon may be on another machine only
                new = prior.meanings(more).table()
        return LearnedNames(self.table.stacked(new), self.weights.extend(new.kinds))


@dataclass(frozen=True)
class Naming:
    """Possible meanings of D label names, before their weights are known."""

    prior: NamePrior
    meanings: Meanings

    @classmethod
    def of(cls, prior: NamePrior | None, names: np.ndarray | None) -> Naming | None:
        """Look up the names; None without a prior or names."""
        if prior is None or names is None:
            return None
        return cls(prior, prior.meanings([str(name) for name in names]))

    def look_up_meanings(self, X: Array, Y: scipy.sparse.csr_array) -> NameTable:
        """Choose the meaning of each name, given images X (N×d) and labels Y (N×D)."""
        return self.meanings.table(self.meanings.learned(self.prior.scores, to_numpy(X), Y))

    def fit_weights(
        self,
        X: Array,
        Y: scipy.sparse.csr_array,
        scores: np.ndarray,
        folds: Sequence[Fold],
        rows: np.ndarray | None = None,
        columns: np.ndarray | None = None,
    ) -> tuple[LearnedNames | None, np.ndarray]:
        """Fit name weights on held-out scores (n×C), and combine both.

        The images of each fold are combined with weights of the other folds, so confidences can be
        learned from the result. If names do not help on these images, return None and the scores.

        The scores are of the images `rows` (n,) and labels `columns` (C,), both ascending. Default:
        all. Names of other labels get the weights expected of their kinds.
        """
        table = scored = self.look_up_meanings(X, Y)
        if rows is not None and columns is not None:
            scored, X, Y = table.some(columns), X[rows], Y[rows][:, columns]
        by_name = _scores(self.prior, X, scored)
        weights = fit_name_weights(scores, by_name, Y, scored.kinds)
        combined, level = np.empty_like(scores), _level(weights.combine(scores, by_name))
        for known, held_out in folds:
            own = fit_name_weights(scores[known], by_name[known], Y[known], scored.kinds)
            rarer = level - _level(own.combine(scores[known], by_name[known]))
            combined[held_out] = own.combine(scores[held_out], by_name[held_out]) + rarer
        if not _names_help(scores, combined, Y, scored.kinds):
            return None, scores
        if columns is None:
            return LearnedNames(table, weights), combined
        others = np.setdiff1d(np.arange(len(table)), columns)
        positions = positions_among(columns, len(table))
        weights = take(weights.extend(table.kinds[others]), "D", positions)
        return LearnedNames(table, weights), combined


def _level(log_odds: np.ndarray) -> np.ndarray:
    """Return the log-odds (D,) of the mean probability of each label."""
    return np.asarray(logit(np.clip(np.mean(expit(log_odds), axis=0), 1e-6, 1 - 1e-6)))


def _names_help(
    scores: np.ndarray, combined: np.ndarray, Y: scipy.sparse.csr_array, kinds: np.ndarray
) -> bool:
    """Tell whether names raise the average precision of their labels by more than chance.

    Labels on one image say nothing, because nothing was learned about them when it was held out.
    If few labels can tell, any gain will do, because names are rarely misleading.
    """
    from tagkin.evaluation import average_precision  # suggesting takes no evaluation

    n_images = np.bincount(Y.indices, minlength=Y.shape[1])
    labels = np.flatnonzero((n_images > 1) & (n_images < Y.shape[0]) & (kinds != UNKNOWN))
    if not len(labels):
        return True
    with_names, without = (
        average_precision(Y[:, labels], S[:, labels]) for S in (combined, scores)
    )
    gain = with_names - without
    chance = gain.std() / np.sqrt(len(gain)) if len(gain) >= _ENOUGH_LABELS else 0
    return bool(gain.mean() > chance)


def confidences_by_name(prior: NamePrior, X: Array, names: Sequence[str]) -> np.ndarray:
    """Return probabilities (n×D), float32, of labels from their names alone."""
    table = prior.meanings(names).table()
    P = np.empty((X.shape[0], len(table)), dtype=np.float32)
    for rows in _blocks(X, table):
        P[rows] = expit(prior.log_odds(to_numpy(X[rows]), table))
    return P


def _scores(prior: NamePrior, X: Array, table: NameTable) -> np.ndarray:
    """Return scores (n×D), float32, of label names."""
    Z = np.empty((X.shape[0], len(table)), dtype=np.float32)
    try:
        for rows in _blocks(X, table):
            Z[rows] = prior.scores(to_numpy(X[rows]), table.rows)
    except ValueError as error:  # products of shapes that do not fit
        raise InvalidInput(
            f"The names of labels were learned with {table.rows.shape[1]} classes, and the prior "
            f"{prior!r} has other classes. Use the prior of the same backbone, or fit again."
        ) from error
    return Z


def _blocks(X: Array, table: NameTable) -> Any:
    return row_blocks(X.shape[0], 16 * (len(table) + table.rows.shape[1]))


def _unknown_names(table: NameTable, n: int) -> NameTable:
    """Return n names without a meaning, in the format of the table."""
    rows = scipy.sparse.csr_array((n, table.rows.shape[1]), dtype=np.float32)
    fitting = rows if scipy.sparse.issparse(table.rows) else rows.toarray()
    return NameTable(fitting, np.zeros(n, dtype=np.int8), np.ones(n))
