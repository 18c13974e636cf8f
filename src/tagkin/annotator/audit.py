"""Labels that seem wrong on the images learned from, and labels that seem to be missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from tagkin.annotator.suggesting import support_of
from tagkin.annotator.suggestions import LabelFinding, Support
from tagkin.arrays import check_integer, row_blocks, to_numpy
from tagkin.calibration import LabelErrors, probability_missing, probability_wrong
from tagkin.errors import InvalidInput
from tagkin.transfer import NeighborTransfer

__all__ = ["doubts", "findings"]


def doubts(
    held_out: scipy.sparse.csr_array, Y: scipy.sparse.csr_array, errors: LabelErrors
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How probable it is that each label there is wrong, and each label not there is missing.

    Parameters
    ----------
    held_out : CSR array of shape (N, D)
        Probability q that a label belongs, from models that had not seen the image; 0 where it is
        not known.
    Y : CSR array of shape (N, D)
        The labels that are there.
    errors : LabelErrors
        The rates a and e of wrong and of missing labels.

    Returns
    -------
    rows, columns : int arrays of shape (m,)
        Image and label of every entry of `held_out`.
    doubt : float64 array of shape (m,)
        Of a label that is there, (1−q)a / ((1−q)a + q(1−e)); of one that is not,
        qe / (qe + (1−q)(1−a)).
    """
    entries = held_out.tocoo()
    there = np.asarray(Y[entries.row, entries.col]).ravel() > 0
    q = np.clip(entries.data.astype(np.float64), 1e-30, 1 - 1e-9)
    wrong, missing = to_numpy(errors.wrong_rates_), to_numpy(errors.missing_rates_)
    rates = wrong[entries.col], missing[entries.col]
    doubt = np.where(there, probability_wrong(q, *rates), probability_missing(q, *rates))
    return entries.row, entries.col, doubt


def findings(
    held_out: scipy.sparse.csr_array,
    errors: LabelErrors,
    method: NeighborTransfer,
    names: Sequence[Any],
    n: int | None,
    kind: str | None,
    n_support: int,
    rejected: scipy.sparse.csr_array,
) -> list[LabelFinding]:
    """Labels that seem wrong or missing, the surest first: n, or all with .5 and more.

    What was rejected (N×D) is not missing.
    """
    if kind not in (None, "wrong", "missing"):
        raise InvalidInput(f'kind must be "wrong" or "missing"; found {kind!r}.')
    check_integer("n_support", n_support, 0)
    if n is not None:
        check_integer("n", n, 0)
    Y = method.labels_
    rows, columns, doubt = doubts(held_out, Y, errors)
    there = np.asarray(Y[rows, columns]).ravel() > 0
    wanted = np.ones(len(rows), bool) if kind is None else there == (kind == "wrong")
    wanted &= there | (np.asarray(rejected[rows, columns]).ravel() == 0)
    if n is None:
        wanted &= doubt >= 0.5
    chosen = np.flatnonzero(wanted)
    chosen = chosen[np.argsort(-doubt[chosen], kind="stable")][:n]
    missing = np.where(there[chosen], -1, columns[chosen])
    support = _support(method, rows[chosen].astype(np.int64), missing, n_support)
    return [
        LabelFinding(
            int(rows[k]),
            names[columns[k]],
            "wrong" if there[k] else "missing",
            float(doubt[k]),
            int(columns[k]),
            images,
        )
        for k, images in zip(chosen, support, strict=True)
    ]


def _support(
    method: NeighborTransfer, rows: np.ndarray, columns: np.ndarray, n_support: int
) -> Iterator[tuple[Support, ...]]:
    """Which images support a label of images learned from; without one (−1), which are nearest."""
    index: Any = method.index_
    # methods that choose neighbours label by label choose from all
    k = min(getattr(method, "n_neighbors", index.n_points_), index.n_points_ - 1)
    for block in row_blocks(len(rows), 64 * k):
        found = index.kneighbors_of(rows[block], k)
        asked = [[int(column)] if column >= 0 else [] for column in columns[block]]
        evidence = method.explain_neighbors(found.indices, found.distances, asked)
        for near, of_label in zip(to_numpy(found.indices)[:, :n_support], evidence, strict=True):
            if of_label:
                yield support_of(of_label[0], n_support)
            else:
                share = 1 / max(len(near), 1)
                yield tuple(Support(int(j), share) for j in near if j >= 0)
