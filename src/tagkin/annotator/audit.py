"""Labels that seem wrong on the images learned from, and labels that seem to be missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from tagkin.annotator.suggesting import support_of
from tagkin.annotator.suggestions import LabelFinding, Support
from tagkin.arrays import check_integer, row_blocks, to_numpy
from tagkin.errors import InvalidInput
from tagkin.transfer import NeighborTransfer

__all__ = ["doubts", "findings"]

# Share of labels taken to be wrong before looking: it scales all doubts alike and leaves their
# order as it is.
ASSUMED_WRONG = 0.05


def doubts(
    held_out: scipy.sparse.csr_array, Y: scipy.sparse.csr_array
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How probable it is that each label there is wrong, and each label not there is missing.

    Parameters
    ----------
    held_out : CSR array of shape (N, D)
        Probability p of labels, from models that had not seen the image; 0 where it is not known.
    Y : CSR array of shape (N, D)
        The labels that are there.

    Returns
    -------
    rows, columns : int arrays of shape (m,)
        Image and label of every entry of `held_out`.
    doubt : float64 array of shape (m,)
        Of a label that is not there, that it should be: p itself. Of a label that is there, that
        it should not, by the odds ω/(1−ω) · (1−p)/p · π/(1−π): how much better the image fits
        those without the label than those with it, where π is the share of images with the label
        and ω that of wrong labels. So a rare label is not doubted for being rare.
    """
    entries = held_out.tocoo()
    there = np.asarray(Y[entries.row, entries.col]).ravel() > 0
    p = np.clip(entries.data.astype(np.float64), 1e-9, 1 - 1e-9)
    n, counts = Y.shape[0], np.diff(Y.tocsc().indptr)
    # where all carry a label nobody tells what it is to be without it: as if one more were
    share = np.clip(counts / n, 1e-9, n / (n + 1))[entries.col]
    odds = ASSUMED_WRONG / (1 - ASSUMED_WRONG) * (1 - p) / p * share / (1 - share)
    return entries.row, entries.col, np.where(there, odds / (1 + odds), p)


def findings(
    held_out: scipy.sparse.csr_array,
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
    rows, columns, doubt = doubts(held_out, Y)
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
