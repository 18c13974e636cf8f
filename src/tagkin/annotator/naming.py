"""Score images by the names of labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tagkin.arrays import Array, expit, row_blocks, to_numpy
from tagkin.errors import InvalidInput
from tagkin.tag_meanings import NamePrior, NameTable
from tagkin.wording import count

__all__ = [
    "Naming",
    "check_prior",
    "confidences_by_name",
    "count_known_names",
    "describe_names",
    "score_names",
]


@dataclass(frozen=True)
class Naming:
    """Vectors of D label names, and what scores images by them."""

    prior: NamePrior
    table: NameTable

    @classmethod
    def of(cls, prior: NamePrior | None, names: np.ndarray | None) -> Naming | None:
        """Look up the names; None without a prior or names."""
        check_prior(prior)
        if prior is None or names is None:
            return None
        return cls(prior, prior.meanings([str(name) for name in names]).table())


def check_prior(prior: object) -> None:
    """Reject an object that does not score images by label names."""
    if prior is not None and not hasattr(prior, "meanings"):
        raise InvalidInput(
            f"prior must score images by label names, as a NamePrior does; found {prior!r:.80}."
        )


def confidences_by_name(prior: NamePrior, X: Array, names: Sequence[str]) -> np.ndarray:
    """Return probabilities (n×D), float32, of labels from their names alone."""
    table = prior.meanings(names).table()
    P = np.empty((X.shape[0], len(table)), dtype=np.float32)
    for rows in _image_blocks(X, table):
        P[rows] = expit(prior.log_odds(to_numpy(X[rows]), table))
    return P


def count_known_names(table: NameTable) -> int:
    """Return how many of the names have a meaning."""
    return int(np.count_nonzero(~table.is_unknown))


def describe_names(table: NameTable) -> str:
    """Return a sentence that says how many names have a meaning."""
    known = count_known_names(table)
    return f"The names of {known:,} of {count(len(table), 'label')} count, too."


def score_names(prior: NamePrior | None, X: Array, table: NameTable) -> np.ndarray:
    """Return scores (n×D), float32, of label names."""
    if prior is None:
        raise InvalidInput(
            "This model uses the names of labels, and a model is saved without its prior. Set "
            "prior, for example to NamePrior(CaptionEncoder())."
        )
    Z = np.empty((X.shape[0], len(table)), dtype=np.float32)
    try:
        for rows in _image_blocks(X, table):
            Z[rows] = prior.scores(to_numpy(X[rows]), table.rows)
    except ValueError as error:  # products of shapes that do not fit
        raise InvalidInput(
            f"The names of labels have {table.rows.shape[1]} numbers each, and the prior {prior!r} "
            "has others. Use the prior of the same backbone, or fit again."
        ) from error
    return Z


def _image_blocks(X: Array, table: NameTable) -> Iterator[slice]:
    return row_blocks(X.shape[0], 16 * (len(table) + table.rows.shape[1]))
