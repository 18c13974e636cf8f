"""Tags that seem wrong on tagged photographs, and tags that seem to be missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from tagkin.annotator.suggesting import kin_of
from tagkin.annotator.suggestions import Finding, Kin
from tagkin.arrays import check_integer, row_blocks, to_numpy
from tagkin.errors import InvalidInput
from tagkin.transfer import NeighborTransfer

__all__ = ["doubts", "findings"]

# Share of tags taken to be wrong before looking: it scales all doubts alike and leaves their
# order as it is.
ASSUMED_WRONG = 0.05


def doubts(
    held_out: scipy.sparse.csr_array, Y: scipy.sparse.csr_array
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How probable it is that each tag there is wrong, and each tag not there is missing.

    Parameters
    ----------
    held_out : CSR array of shape (N, D)
        Probability p of tags, from models that had not seen the photograph; 0 where it is not
        known.
    Y : CSR array of shape (N, D)
        The tags that are there.

    Returns
    -------
    rows, columns : int arrays of shape (m,)
        Photograph and tag of every entry of `held_out`.
    doubt : float64 array of shape (m,)
        Of a tag that is not there, that it should be: p itself. Of a tag that is there, that it
        should not, by the odds ω/(1−ω) · (1−p)/p · π/(1−π): how much better the photograph fits
        those without the tag than those with it, where π is the share of photographs with the
        tag and ω that of wrong tags. So a rare tag is not doubted for being rare.
    """
    entries = held_out.tocoo()
    there = np.asarray(Y[entries.row, entries.col]).ravel() > 0
    p = np.clip(entries.data.astype(np.float64), 1e-9, 1 - 1e-9)
    n, counts = Y.shape[0], np.diff(Y.tocsc().indptr)
    # where all carry a tag nobody tells what it is to be without it: as if one more were
    share = np.clip(counts / n, 1e-9, n / (n + 1))[entries.col]
    odds = ASSUMED_WRONG / (1 - ASSUMED_WRONG) * (1 - p) / p * share / (1 - share)
    return entries.row, entries.col, np.where(there, odds / (1 + odds), p)


def findings(
    held_out: scipy.sparse.csr_array,
    method: NeighborTransfer,
    files: Sequence[str],
    tags: Sequence[Sequence[str]],
    names: Sequence[str],
    n: int | None,
    kind: str | None,
    n_kin: int,
) -> list[Finding]:
    """Tags that seem wrong or missing, the surest first: n, or all with .5 and more."""
    if kind not in (None, "wrong", "missing"):
        raise InvalidInput(f'kind must be "wrong" or "missing"; found {kind!r}.')
    check_integer("n_kin", n_kin, 0)
    if n is not None:
        check_integer("n", n, 0)
    Y = method.labels_
    rows, columns, doubt = doubts(held_out, Y)
    there = np.asarray(Y[rows, columns]).ravel() > 0
    wanted = np.ones(len(rows), bool) if kind is None else there == (kind == "wrong")
    if n is None:
        wanted &= doubt >= 0.5
    chosen = np.flatnonzero(wanted)
    chosen = chosen[np.argsort(-doubt[chosen], kind="stable")][:n]
    spoken_for = np.where(there[chosen], -1, columns[chosen])
    kin = _kin(method, files, tags, rows[chosen].astype(np.int64), spoken_for, n_kin)
    return [
        Finding(
            str(files[rows[k]]),
            names[columns[k]],
            "wrong" if there[k] else "missing",
            float(doubt[k]),
            kin_of_it,
        )
        for k, kin_of_it in zip(chosen, kin, strict=True)
    ]


def _kin(
    method: NeighborTransfer,
    files: Sequence[str],
    tags: Sequence[Sequence[str]],
    rows: np.ndarray,
    columns: np.ndarray,
    n_kin: int,
) -> Iterator[tuple[Kin, ...]]:
    """Who speaks for tags on photographs learned from; without a tag (−1), who is nearest."""
    index: Any = method.index_
    # methods that choose kin tag by tag choose from all
    k = min(getattr(method, "n_neighbors", index.n_points_), index.n_points_ - 1)
    for block in row_blocks(len(rows), 64 * k):
        found = index.kneighbors_of(rows[block], k)
        asked = [[int(column)] if column >= 0 else [] for column in columns[block]]
        evidence = method.explain_neighbors(found.indices, found.distances, asked)
        for near, voices in zip(to_numpy(found.indices)[:, :n_kin], evidence, strict=True):
            if voices:
                yield kin_of(voices[0], files, tags, n_kin)
            else:
                share = 1 / max(len(near), 1)
                yield tuple(Kin(str(files[j]), share, tuple(tags[j])) for j in near if j >= 0)
