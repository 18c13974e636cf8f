"""The table of neighbours with a label, over which TagProp's likelihood is summed.

A prediction depends on the weights only for pairs (image, label) with a neighbour that has the
label. All other pairs are counted per label. The table has an entry for each label of each
neighbour. There are three sums over it: of the weights of each pair's neighbours, of the pairs of
each weight, and of the pairs of each label. On the host they are sparse products, on an
accelerator sums over consecutive entries in a fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, like, namespace, on_accelerator, to_numpy
from tagkin.transfer.neighbor_lists import label_rows

__all__ = ["Pairs"]


class Table(Protocol):
    """The neighbours that have the label, for each pair of an image and a label."""

    label: Array
    """Label of each pair, shape (P,)."""
    present: Array
    """Whether the image itself has the label, shape (P,)."""

    def votes(self, weights: Array) -> Array:
        """Sum the weights of the neighbours that have a pair's label, shape (P,)."""

    def by_weight(self, by_pair: Array) -> np.ndarray:
        """Sum over the pairs that each weight votes in, on the host."""

    def by_label(self, by_pair: Array) -> np.ndarray:
        """Sum over the pairs of each label, shape (D,), on the host."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of an image and a label that some of its neighbours have, with the cost of each pair.

    With n₊ present and n₋ absent labels in the whole N×D matrix, a present label costs
    c = 1/(2n₊) and an absent label 1/(2n₋).
    """

    table: Table
    cost: Array
    """c of each pair, shape (P,)."""
    unsupported_present: np.ndarray
    """c × the number of images with the label but without neighbours that have it, shape (D,)."""
    unsupported_absent: np.ndarray
    """c × the number of images without the label and without such neighbours, shape (D,)."""

    @classmethod
    def of(cls, indices: Array, labels: scipy.sparse.csr_array, *, by_rank: bool) -> Self:
        """Build pairs from neighbours (N×K) of N images among themselves, and labels (N×D).

        There is a weight for each rank, or for each neighbour of each image.
        """
        table: Table
        if on_accelerator(indices):
            table = _DeviceTable(indices, labels, by_rank)
        else:
            table = _HostTable(indices, labels, by_rank)
        n, d = labels.shape
        xp = namespace(table.present)
        positives = np.bincount(labels.indices, minlength=d)
        total = int(positives.sum())
        cost_present, cost_absent = 0.5 / max(total, 1), 0.5 / max(n * d - total, 1)
        present = xp.astype(table.present, xp.float64)
        with_it = table.by_label(present)
        return cls(
            table,
            cost_present * present + cost_absent * (1 - present),
            cost_present * (positives - with_it),
            cost_absent * (n - positives - table.by_label(1 - present)),
        )

    @cached_property
    def sign(self) -> Array:
        """1 if the label is present, else −1, shape (P,)."""
        xp = namespace(self.cost)
        return 2 * xp.astype(self.table.present, xp.float64) - 1


class _HostTable:
    def __init__(self, indices: np.ndarray, labels: scipy.sparse.csr_array, by_rank: bool):
        n, k = indices.shape
        d = labels.shape[1]
        carried = label_rows(labels, indices.ravel())
        whole = np.int32 if n * k < 2**31 else np.int64
        slot = np.repeat(np.arange(n * k, dtype=whole), np.diff(carried.indptr))
        # entries are grouped by image; sorting by label makes a pair's entries adjacent
        table = scipy.sparse.csr_array((slot, carried.indices, carried.indptr[::k]), shape=(n, d))
        table.sort_indices()
        key = np.repeat(np.arange(n) * d, np.diff(table.indptr)) + table.indices
        first = np.flatnonzero(np.diff(key, prepend=-1))
        columns = table.data % k if by_rank else table.data
        bounds = np.append(first, len(key))
        if len(key) < 2**31:  # same type as the columns, or SciPy would widen them
            bounds = bounds.astype(columns.dtype)
        # (P, N·K): 1 in column i·K + k if neighbour k of the pair's image i has its label;
        # (P, K) if all images share the weights of the ranks
        self._carriers = scipy.sparse.csr_array(
            (np.ones(len(key)), columns, bounds),
            shape=(len(first), k if by_rank else n * k),
        )
        self._n_labels = d
        self.label = table.indices[first].astype(np.int64)
        own = np.repeat(np.arange(n) * d, np.diff(labels.indptr)) + labels.indices
        self.present = np.isin(key[first], own)

    def votes(self, weights: np.ndarray) -> np.ndarray:
        return self._carriers @ weights.ravel()

    def by_weight(self, by_pair: np.ndarray) -> np.ndarray:
        return self._carriers.T @ by_pair

    def by_label(self, by_pair: np.ndarray) -> np.ndarray:
        sums = np.bincount(self.label, by_pair, minlength=self._n_labels)
        return sums.astype(float, copy=False)  # without pairs they are integers


class _DeviceTable:
    def __init__(self, indices: Array, labels: scipy.sparse.csr_array, by_rank: bool):
        xp = namespace(indices)
        n, k = indices.shape
        d = labels.shape[1]
        starts, carried = (
            xp.asarray(part.astype(np.int64), device=indices.device)
            for part in (labels.indptr, labels.indices)
        )
        neighbor = xp.clip(indices.reshape(-1), 0, None)
        counts = (starts[1:] - starts[:-1])[neighbor] * (indices.reshape(-1) >= 0)
        slot = xp.repeat(self._numbers(n * k, indices), counts)
        before = xp.cumulative_sum(counts) - counts
        entry = self._numbers(slot.shape[0], indices) + (starts[neighbor] - before)[slot]
        key = slot // k * d + carried[entry]
        order = xp.argsort(key, stable=True)
        key, slot = key[order], slot[order]
        fresh = xp.ones(key.shape[0], dtype=xp.bool, device=key.device)
        fresh[1:] = key[1:] != key[:-1]
        first = xp.nonzero(fresh)[0]
        self._slot = slot % k if by_rank else slot
        end = xp.asarray([key.shape[0]], dtype=first.dtype, device=first.device)
        self._bounds = xp.concat([first, end])
        self._n_weights, self._n_labels = k if by_rank else n * k, d
        pair = key[first]
        self.label = pair % d
        own = xp.sort(xp.repeat(self._numbers(n, indices) * d, starts[1:] - starts[:-1]) + carried)
        position = xp.clip(xp.searchsorted(own, pair), 0, own.shape[0] - 1)
        self.present = own[position] == pair

    @staticmethod
    def _numbers(n: int, reference: Array) -> Array:
        xp = namespace(reference)
        return xp.arange(n, dtype=xp.int64, device=reference.device)

    def votes(self, weights: Array) -> Array:
        xp = namespace(self._slot)
        double = xp.empty(0, dtype=xp.float64, device=self._slot.device)
        return _segment_sums(like(weights, double).reshape(-1)[self._slot], self._bounds)

    def by_weight(self, by_pair: Array) -> np.ndarray:
        order, bounds = self._pairs_by_weight
        return to_numpy(_segment_sums(by_pair[order], bounds))

    def by_label(self, by_pair: Array) -> np.ndarray:
        order, bounds = self._pairs_by_label
        return to_numpy(_segment_sums(by_pair[order], bounds))

    @cached_property
    def _pairs_by_weight(self) -> tuple[Array, Array]:
        """Pairs sorted by the weight that votes in them, and the start of each weight's pairs."""
        xp = namespace(self._slot)
        pair = xp.repeat(
            self._numbers(self.label.shape[0], self._slot), self._bounds[1:] - self._bounds[:-1]
        )
        order, bounds = self._group(self._slot, self._n_weights)
        return pair[order], bounds

    @cached_property
    def _pairs_by_label(self) -> tuple[Array, Array]:
        """Pairs sorted by label, and the start of each label's pairs."""
        return self._group(self.label, self._n_labels)

    def _group(self, group: Array, n_groups: int) -> tuple[Array, Array]:
        xp = namespace(group)
        order = xp.argsort(group, stable=True)
        return order, xp.searchsorted(group[order], self._numbers(n_groups + 1, group))


def _segment_sums(values: Array, bounds: Array) -> Array:
    """Return sums of consecutive values (E,) on a device, from each bound (S+1,) to the next.

    Their order is fixed, unlike that of sums by index.
    """
    return namespace(values).segment_reduce(values, "sum", offsets=bounds, unsafe=True)
