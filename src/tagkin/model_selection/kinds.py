"""Kinds of images, by how far away in time the nearest learned image is.

A held-out image may see only what is as far away as the learned images are from an image that is
asked about. So there are three kinds: *near* images have a learned one within three hours, images
of another *event* one within two days, and *far* images none. Each is held out as its kind: alone,
with its event (shots less than three hours apart), or with its trip (less than two days apart).
Each kind has weights and confidences of its own.

If the time of an image is unknown, its folder is its event and its trip. If that is unknown, too,
the image is far.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import scipy.sparse

__all__ = [
    "KINDS",
    "Kind",
    "Kinds",
    "Round",
    "deal_rounds",
    "follow",
    "is_small",
    "kind_of_gap",
    "nearest_mates",
    "number_clusters",
]


class Kind(IntEnum):
    """Kind of an image."""

    NEAR = 0
    EVENT = 1
    FAR = 2


@dataclass(frozen=True)
class Kinds:
    """Numbers of the kinds, chosen on three collections of one person each."""

    event: float = 3 * 3600.0
    """Seconds between the shots of two events, at least. With 8 hours, results are the same."""
    trip: float = 48 * 3600.0
    """The same for trips."""
    rounds: int = 3
    """Rounds of folds: in each, an image is held out as another kind. With one round, MAP of 100
    to 250 photographs is 1 lower."""
    most_share: int = 3
    """An event or a trip is held out whole if it has at most one image in this many."""


KINDS = Kinds()


@dataclass(frozen=True)
class Round:
    """How each of N images is held out once."""

    folds: np.ndarray
    """Number of the fold, shape (N,)."""
    kinds: np.ndarray
    """Kind as which the image is held out, shape (N,)."""
    clusters: np.ndarray
    """Event or trip that the image is held out with, shape (N,); near images are alone."""


def kind_of_gap(seconds: np.ndarray) -> np.ndarray:
    """Return the kinds (n,) of images, given the seconds (n,) to the nearest learned image."""
    return np.searchsorted((KINDS.event, KINDS.trip), seconds, side="right")


def number_clusters(
    times: np.ndarray | None, folders: np.ndarray | None, gap: float, n_images: int
) -> np.ndarray:
    """Return the cluster of each image, shape (N,): images with less than `gap` seconds between.

    Images without a time are clusters by folder, and alone without one. Either may be None.
    """
    clusters = np.arange(n_images)
    is_timed = np.zeros(n_images, bool) if times is None else np.isfinite(times)
    if times is not None:
        order = np.argsort(times, kind="stable")[: is_timed.sum()]
        starts = np.append(True, np.diff(times[order]) >= gap)[: len(order)]
        clusters[order] = order[np.flatnonzero(starts)][np.cumsum(starts) - 1]
    if folders is not None:
        first: dict[str, int] = {}
        for image in np.flatnonzero(~is_timed):
            if folders[image]:
                clusters[image] = first.setdefault(str(folders[image]), int(image))
    return np.unique(clusters, return_inverse=True)[1]


def is_small(clusters: np.ndarray) -> np.ndarray:
    """Return whether the cluster of each image is small enough to be held out whole, shape (N,)."""
    return np.bincount(clusters)[clusters] <= len(clusters) // KINDS.most_share


def deal_rounds(
    events: np.ndarray,
    trips: np.ndarray,
    groups: np.ndarray | None,
    n_folds: int,
    n_rounds: int,
    seed: int | None,
) -> list[Round]:
    """Deal images to folds, in each round a third of them as each kind.

    Images of one group in `groups` (N,), such as copies, are held out together. Trips and events
    that are too large are held out in parts. If there is only one trip, no image is far.

    Parameters
    ----------
    events, trips : int arrays of shape (N,)
        Clusters of the images by `number_clusters`.
    groups : int array of shape (N,) or None
    n_folds, n_rounds : int
    seed : int or None
    """
    n, rng = len(events), np.random.default_rng(seed)
    single = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1].ravel()
    events, trips = _join(events, single), _join(trips, single)
    whole_event, whole_trip = is_small(events), is_small(trips)
    # what plays one kind in a round: trips, events of large trips, and images of large events
    pieces = np.where(whole_trip, trips, np.where(whole_event, n + events, 2 * n + single))
    pieces = np.unique(pieces, return_inverse=True)[1].ravel()
    dealt = _deal(pieces, np.ones(n, bool), len(Kind), rng)
    largest = np.where(whole_trip, Kind.FAR, np.where(whole_event, Kind.EVENT, Kind.NEAR))
    rounds = []
    for number in range(n_rounds):
        kinds = np.minimum((dealt + number) % len(Kind), largest)
        folds = np.zeros(n, np.intp)
        for kind, units in ((Kind.NEAR, single), (Kind.EVENT, events), (Kind.FAR, trips)):
            folds = np.where(kinds == kind, _deal(units, kinds == kind, n_folds, rng), folds)
        clusters = np.choose(kinds, [np.arange(n), n + events, 2 * n + trips])
        rounds.append(Round(np.unique(folds, return_inverse=True)[1].ravel(), kinds, clusters))
    return rounds


def follow(first: Round, second: Round, rows: np.ndarray, guides: np.ndarray) -> Round:
    """Return how all images are held out, if the images `rows` (n,) are as in the `first` round.

    The others are as in the `second` round. But an image whose guide, one of `rows`, is held out
    with its event or trip, is held out with it.

    Parameters
    ----------
    first, second : Round
        Of the images `rows`, and of the others.
    rows : int array of shape (n,)
        Ascending.
    guides : int array of shape (N − n,)
        An image of `rows` for each other image, or −1.
    """
    n = len(rows) + len(guides)
    others = np.setdiff1d(np.arange(n), rows)
    folds, kinds, clusters = (np.empty(n, np.intp) for _ in range(3))
    folds[rows], kinds[rows], clusters[rows] = first.folds, first.kinds, first.clusters
    folds[others] = second.folds % (int(first.folds.max()) + 1)
    kinds[others], clusters[others] = second.kinds, -1 - second.clusters
    kinds[others[guides >= 0]] = kinds[guides[guides >= 0]]
    is_led = (guides >= 0) & (kinds[others] > Kind.NEAR)
    folds[others[is_led]] = folds[guides[is_led]]
    return Round(folds, kinds, clusters)


def nearest_mates(
    clusters: np.ndarray, times: np.ndarray | None, rows: np.ndarray, others: np.ndarray
) -> np.ndarray:
    """Return for each of the images `others` one of `rows` in its cluster (N,), or −1.

    It is the nearest in time, as far as times (N,) are known.
    """
    when = np.zeros(len(clusters)) if times is None else np.nan_to_num(times)
    order = rows[np.lexsort((when[rows], clusters[rows]))]
    if not len(order):
        return np.full(len(others), -1)
    keys = clusters * (np.ptp(when) + 1.0) + (when - when.min())  # by cluster, then by time
    places = np.searchsorted(keys[order], keys[others])
    sides = np.stack([order[np.maximum(places - 1, 0)], order[np.minimum(places, len(order) - 1)]])
    gaps = np.abs(when[sides] - when[others])
    gaps[clusters[sides] != clusters[others]] = np.inf
    best = sides[gaps.argmin(axis=0), np.arange(len(others))]
    return np.where(np.isfinite(gaps.min(axis=0)), best, -1)


def _join(clusters: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the clusters (N,), joined where they share a group."""
    from scipy.sparse.csgraph import connected_components

    n_clusters = int(clusters.max()) + 1
    size = n_clusters + int(groups.max()) + 1
    ones = np.ones(len(clusters), np.int8)
    links = scipy.sparse.csr_array((ones, (clusters, n_clusters + groups)), shape=(size, size))
    return np.asarray(connected_components(links, directed=False)[1][clusters])


def _deal(
    units: np.ndarray, taking_part: np.ndarray, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Deal units of images to n heaps of about equal size; return the heap of each image (N,).

    Only images that are `taking_part` (N,) count. Large units are first, and equal ones at random.
    """
    sizes = np.bincount(units[taking_part], minlength=int(units.max()) + 1)
    order = rng.permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    order = order[: int((sizes > 0).sum())]
    heap, load = np.zeros(len(sizes), np.intp), [0] * n
    for unit in order:
        heap[unit] = smallest = load.index(min(load))
        load[smallest] += int(sizes[unit])
    return heap[units]
