"""The table of neighbours with a label, over which TagProp's likelihood is summed.

A prediction depends on the weights only for pairs (image, label) with a neighbour that has the
label. All other pairs are counted per label. The table has an entry for each label of each
neighbour, on the host or on an accelerator.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, like, namespace, on_accelerator, to_numpy

__all__ = ["Pairs"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of an image and a label that some of its neighbours have, with the cost of each pair.

    With n₊ present and n₋ absent labels in the whole N×D matrix, a present label costs
    c = 1/(2n₊) and an absent label 1/(2n₋).
    """

    label: Array
    """Label of each pair, shape (P,)."""
    present: Array
    """Whether the image itself has the label, shape (P,)."""
    positives: np.ndarray
    """Number of images with each label, shape (D,)."""
    n_images: int
    """N."""
    slot: Array
    """The weight of each entry, shape (E,)."""
    n_weights: int
    """A weight for each rank, or for each neighbour of each image."""
    pair: Array
    """The pair of each entry, ascending, shape (E,)."""

    @classmethod
    def of(cls, indices: Array, labels: scipy.sparse.csr_array, *, by_rank: bool) -> Self:
        """Build pairs from neighbours (N×K) of N images among themselves, and labels (N×D).

        There is a weight for each rank, or for each neighbour of each image.
        """
        xp, (n, k), d = namespace(indices), indices.shape, labels.shape[1]
        starts, columns = (
            xp.asarray(part.astype(np.int64), device=indices.device)
            for part in (labels.indptr, labels.indices)
        )
        key, slot = _sorted_entries(indices, starts, columns, d)
        fresh = xp.ones(key.shape[0], dtype=xp.bool, device=key.device)
        fresh[1:] = key[1:] != key[:-1]
        pair = key[fresh]
        del key  # the table is the largest array here, and memory is for few of its size
        of_entry = xp.cumulative_sum(fresh, dtype=xp.int64)
        of_entry -= 1
        if by_rank:
            slot %= k
        own = xp.sort(xp.repeat(_count_up(n, pair) * d, starts[1:] - starts[:-1]) + columns)
        position = xp.clip(xp.searchsorted(own, pair), 0, own.shape[0] - 1)
        return cls(
            label=pair % d,
            present=own[position] == pair,
            positives=np.bincount(labels.indices, minlength=d),
            n_images=n,
            slot=slot,
            n_weights=k if by_rank else n * k,
            pair=of_entry,
        )

    def votes(self, weights: Array) -> Array:
        """Sum the weights of the neighbours that have a pair's label, shape (P,)."""
        return self._by_pair(like(weights, self.cost).reshape(-1)[self.slot])

    def by_weight(self, by_pair: Array) -> np.ndarray:
        """Sum over the pairs that each weight votes in, on the host."""
        return to_numpy(self._by_weight(by_pair[self.pair]))

    def by_label(self, by_pair: Array) -> np.ndarray:
        """Sum over the pairs of each label, shape (D,), on the host."""
        return to_numpy(self._by_label(by_pair))

    @cached_property
    def cost(self) -> Array:
        """Return c of each pair, shape (P,)."""
        xp = namespace(self.present)
        cost_present, cost_absent = self.costs
        present = xp.astype(self.present, xp.float64)
        return cost_present * present + cost_absent * (1 - present)

    @cached_property
    def sign(self) -> Array:
        """1 if the label is present, else −1, shape (P,)."""
        xp = namespace(self.present)
        return 2 * xp.astype(self.present, xp.float64) - 1

    @cached_property
    def unsupported_present(self) -> np.ndarray:
        """Cost of all images with the label but without neighbours that have it, shape (D,)."""
        return self.costs[0] * (self.positives - self.by_label((self.sign + 1) / 2))

    @cached_property
    def unsupported_absent(self) -> np.ndarray:
        """Cost of all images without the label and without such neighbours, shape (D,)."""
        absent = self.n_images - self.positives
        return self.costs[1] * (absent - self.by_label((1 - self.sign) / 2))

    @property
    def costs(self) -> tuple[float, float]:
        """Cost of a present and of an absent label."""
        n_present = int(self.positives.sum())
        n_absent = self.n_images * len(self.positives) - n_present
        return 0.5 / max(n_present, 1), 0.5 / max(n_absent, 1)

    @cached_property
    def _by_pair(self) -> _Sums:
        return _Sums(self.pair, self.label.shape[0])

    @cached_property
    def _by_weight(self) -> _Sums:
        return _Sums(self.slot, self.n_weights)

    @cached_property
    def _by_label(self) -> _Sums:
        return _Sums(self.label, len(self.positives))


def _sorted_entries(indices: Array, starts: Array, columns: Array, d: int) -> tuple[Array, Array]:
    """Return i·D + t and i·K + k for each label t of neighbour k of image i, ascending (E,).

    The labels of image j are ``columns[starts[j]:starts[j + 1]]``, of D in all.
    """
    xp, (n, k) = namespace(indices), indices.shape
    neighbor = xp.clip(indices.reshape(-1), 0, None)
    counts = (starts[1:] - starts[:-1])[neighbor] * (indices.reshape(-1) >= 0)
    slot = xp.repeat(_count_up(n * k, indices), counts)
    first = starts[neighbor] - (xp.cumulative_sum(counts) - counts)
    entry = first[slot]
    entry += _count_up(slot.shape[0], indices)
    key = columns[entry]
    del entry
    key += slot // k * d
    order = xp.argsort(key, stable=True)
    return key[order], slot[order]


def _count_up(size: int, where: Array) -> Array:
    """Return 0, 1, … on the device of `where`."""
    xp = namespace(where)
    return xp.arange(size, dtype=xp.int64, device=where.device)


class _Sums:
    """Sums of values (E,) by their group, whose number is in `group` (E,).

    Their order is fixed on an accelerator, too, unlike that of its sums by index.
    """

    def __init__(self, group: Array, n_groups: int):
        self._group, self._n_groups = group, n_groups
        if on_accelerator(group):
            xp = namespace(group)
            self._order = xp.argsort(group, stable=True)
            self._bounds = xp.searchsorted(group[self._order], _count_up(n_groups + 1, group))

    def __call__(self, values: Array) -> Array:
        if not on_accelerator(self._group):
            return np.bincount(self._group, values, self._n_groups).astype(float, copy=False)
        return namespace(values).segment_reduce(
            values[self._order], "sum", offsets=self._bounds, unsafe=True
        )
