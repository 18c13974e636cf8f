"""Votes of the images that were taken at about the same time or place, or that share a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple, Self

import numpy as np
import scipy.sparse

from tagkin.arrays import logit, to_numpy
from tagkin.arrays.labels import count_known
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors
from tagkin.records.forms import storable
from tagkin.records.rules import Floats, Texts
from tagkin.transfer.neighbor_lists import sums_over_lists

__all__ = ["NEARNESS", "Asked", "Nearness", "Occasions", "score_occasions"]

_EARTH = 6371.0  # km
_HOUR = 3600.0


@dataclass(frozen=True)
class Nearness:
    """Numbers of the votes, chosen on three collections of one person each."""

    hours: tuple[float, ...] = (0.5, 24.0)
    """h: an image this far away in time has half a vote. The log-odds of both are added. Without
    the second, MiAP of 100 photographs is 3 lower; four exponentials from an hour to two weeks gain
    .6 MAP on one collection, and lose 3 on another."""
    kilometres: float = 0.1
    """The same for places."""
    step: float = 0.25
    """Weight of an image for each step up or down the tree of folders between two images."""
    prior: float = 0.3
    """a, the vote of a label's share of the images. With .1 and 1, MAP changes by .5 at most."""
    most: int = 200
    """Images that vote by time or place. With 50, results are the same."""
    least: float = 1e-4
    """Least share of the votes, which bounds log-odds."""


NEARNESS = Nearness()


@storable
@dataclass(frozen=True, eq=False)
class Occasions:
    """When and where N images were taken, and their folders; None for what nothing is known of."""

    times: Annotated[np.ndarray | None, Floats("N", unknown=True).kept_on_host()] = None
    """Seconds from any origin, shape (N,); NaN if unknown."""
    places: Annotated[np.ndarray | None, Floats("N", "degrees", unknown=True).kept_on_host()] = None
    """Latitude and longitude, shape (N, 2); NaN if unknown."""
    folders: Annotated[np.ndarray | None, Texts("N")] = None
    """Paths with slashes, shape (N,); empty if unknown."""

    def check_stored(self) -> None:
        """Raise `InvalidInput` if the places of a stored record are not pairs."""
        if self.places is not None and self.places.shape[1] != 2:
            raise InvalidInput("its places are no pairs of latitude and longitude")

    @classmethod
    def read(cls, times: object, places: object, folders: object, n_images: int) -> Self | None:
        """Check what a caller knows about n images; None if that is nothing."""
        if times is None and places is None and folders is None:
            return None
        return cls(
            None if times is None else _read_times(times, n_images),
            None if places is None else _read_places(places, n_images),
            None if folders is None else _read_folders(folders, n_images),
        )

    @property
    def n_images(self) -> int:
        """Number of images, N."""
        values = (self.times, self.places, self.folders)
        return next(len(known) for known in values if known is not None)

    @property
    def inputs(self) -> tuple[str, ...]:
        """What is known: some of "time", "place" and "folder"."""
        known = {"time": self.times, "place": self.places, "folder": self.folders}
        return tuple(name for name, values in known.items() if values is not None)

    def to_dict(self) -> dict[str, np.ndarray | None]:
        """Return the options of `FeatureAnnotator.fit`."""
        return {"times": self.times, "places": self.places, "folders": self.folders}

    def take(self, rows: np.ndarray) -> Occasions:
        """Return some of the images."""
        return self._map(lambda values: values[rows])

    def join(self, others: Occasions | None, n_others: int) -> Occasions:
        """Return these and n other images; only what is known of these is kept."""
        unknown = Occasions(
            np.full(n_others, np.nan), np.full((n_others, 2), np.nan), _empty_texts(n_others)
        )
        parts = {}
        for name in ("times", "places", "folders"):
            own, other = getattr(self, name), getattr(others, name, None)
            if own is not None:
                rows = getattr(unknown, name) if other is None else other
                parts[name] = np.concatenate([own, rows])
        return Occasions(**parts)

    def only_telling(self) -> Occasions | None:
        """Return what differs between images; None if nothing does."""
        times, places, folders = self.times, self.places, self.folders
        if times is not None and len(np.unique(times[np.isfinite(times)])) < 2:
            times = None
        if places is not None and len(np.unique(places[np.isfinite(places[:, 0])], axis=0)) < 2:
            places = None
        if folders is not None and len({str(folder) for folder in folders if folder}) < 2:
            folders = None
        occasions = Occasions(times, places, folders)
        return occasions if occasions.inputs else None

    def _map(self, change: Callable[[np.ndarray], np.ndarray]) -> Occasions:
        parts = (self.times, self.places, self.folders)
        return Occasions(*(None if values is None else change(values) for values in parts))

    # --- neighbours ----------------------------------------------------------------------

    def near_in_time(self, queries: Occasions, own: np.ndarray) -> Neighbors:
        """Return the images near n others in time (n×k), with the seconds between them.

        `own` (n,) are the numbers of the others among these images, or −1: no image is its own
        neighbour.
        """
        if self.times is None or queries.times is None or not len(self._by_time):
            return _no_neighbors(len(own))
        order, k = self._by_time, min(NEARNESS.most + 1, len(self._by_time))
        first = np.searchsorted(self.times[order], queries.times) - k // 2
        ranks = np.clip(first, 0, len(order) - k)[:, None] + np.arange(k)
        indices = order[ranks]
        distances = np.abs(self.times[indices] - queries.times[:, None])
        return _drop(indices, distances, (indices == own[:, None]) | ~np.isfinite(distances))

    def near_in_place(self, queries: Occasions, own: np.ndarray) -> Neighbors:
        """Return the images nearest to n others in place (n×k), with kilometres; see above."""
        if self.places is None or queries.places is None or self._tree is None:
            return _no_neighbors(len(own))
        tree, located = self._tree
        known = np.flatnonzero(np.isfinite(queries.places[:, 0]))
        k = min(NEARNESS.most + 1, len(located))
        indices, distances = np.full((len(own), k), -1), np.full((len(own), k), np.inf)
        if len(known):
            chords, nearest = tree.query(_on_sphere(queries.places[known]), np.arange(1, k + 1))
            indices[known] = located[nearest]
            distances[known] = 2 * _EARTH * np.arcsin(np.minimum(chords / 2, 1))
        return _drop(indices, distances, (indices == own[:, None]) | (indices < 0))

    def shares_folder(self, queries: Occasions, own: np.ndarray, counted: np.ndarray) -> np.ndarray:
        """Return whether a `counted` image (N,) is in the folder of each of n images, (n,)."""
        shared = np.zeros(len(own), bool)
        if self.folders is None or queries.folders is None:
            return shared
        n_in = Counter(map(str, self.folders[counted]))
        for i, (folder, number) in enumerate(zip(queries.folders, own, strict=True)):
            n_itself = int(number >= 0 and counted[number])
            shared[i] = bool(folder) and n_in[str(folder)] > n_itself
        return shared

    @cached_property
    def _by_time(self) -> np.ndarray:
        """The images with a known time, earliest first."""
        assert self.times is not None
        order = np.argsort(self.times, kind="stable")  # unknown times are last
        return order[: int(np.isfinite(self.times).sum())]

    @cached_property
    def _tree(self):  # type: ignore[no-untyped-def]  # of SciPy, without types
        """The images with a known place, for searches on the unit sphere; None without any."""
        from scipy.spatial import cKDTree

        assert self.places is not None
        located = np.flatnonzero(np.isfinite(self.places[:, 0]))
        return (cKDTree(_on_sphere(self.places[located])), located) if len(located) else None

    @cached_property
    def _folder_tree(self) -> tuple[dict[str, int], scipy.sparse.csr_array]:
        """The folders above images, and the weight (folders×N) of each image in them."""
        assert self.folders is not None
        numbers: dict[str, int] = {}
        rows, columns, weights = [], [], []
        for image, folder in enumerate(self.folders):
            for depth, name in enumerate(_folders_above(folder)):
                rows.append(numbers.setdefault(name, len(numbers)))
                columns.append(image)
                weights.append(NEARNESS.step**depth)
        shape = max(1, len(numbers)), len(self.folders)
        return numbers, scipy.sparse.csr_array((weights, (rows, columns)), shape=shape)

    def folder_paths(self, queries: Occasions, n: int) -> scipy.sparse.csr_array:
        """Return the weights (n×folders) of the folders of `_folder_tree` for n images.

        With the sum S over a folder and the folders in it, an image in the folder a₀ below a₁ … aₘ
        has the votes Σ_k ¼ᵏ (1 − ¼²) S(a_k), without the factor for aₘ. So images whose folders
        have only the root in common do not vote.
        """
        numbers = self._folder_tree[0]
        rows, columns, weights = [], [], []
        folders = _empty_texts(n) if queries.folders is None else queries.folders
        for image, folder in enumerate(folders):
            above = _folders_above(folder)
            for depth, name in enumerate(above):
                if name in numbers:
                    is_top = depth == len(above) - 1
                    rows.append(image)
                    columns.append(numbers[name])
                    weights.append(NEARNESS.step**depth * (1 if is_top else 1 - NEARNESS.step**2))
        shape = n, max(1, len(numbers))
        return scipy.sparse.csr_array((weights, (rows, columns)), shape=shape)


class Asked(NamedTuple):
    """n images to score, beside their features."""

    occasions: Occasions
    known: np.ndarray
    """Number of each image among those learned from, or −1, shape (n,)."""

    @classmethod
    def new(cls, occasions: Occasions | None, n_images: int) -> Asked:
        """Return images that were not learned from."""
        if occasions is None:
            occasions = Occasions(np.full(n_images, np.nan))
        return cls(occasions, np.full(n_images, -1))

    @classmethod
    def read(cls, times: object, places: object, folders: object, n_images: int) -> Asked:
        """Check what a caller knows about n new images."""
        return cls.new(Occasions.read(times, places, folders, n_images), n_images)

    def take(self, rows: np.ndarray | slice) -> Asked:
        """Return some of the images."""
        numbers = np.arange(len(self.known))[rows]
        return Asked(self.occasions.take(numbers), self.known[rows])


def score_occasions(
    occasions: Occasions,
    queries: Occasions,
    labels: scipy.sparse.csr_array,
    *,
    own: np.ndarray | None = None,
    rejected: scipy.sparse.csr_array | None = None,
    complete: np.ndarray | None = None,
) -> tuple[np.ndarray, ...]:
    """Return a score (n×D), float32, of time, of place and of folder, as far as they are known.

    Over the images j for which label t is known, with y = 1 for those that have it,

        mₜ = logit[(Σⱼ wⱼ yⱼₜ + a pₜ)/(Σⱼ wⱼ + a)] − logit pₜ,

    where pₜ is the label's share. Time has the sum of two, with wⱼ = 1/(1 + |Δ|/h), and place one
    with kilometres. A folder has wⱼ = ¼ for each step between two folders. So an image with nothing
    near has the score 0, which says nothing.

    Parameters
    ----------
    occasions : Occasions
        Those of the N images that vote.
    queries : Occasions
        Those of the n images to score.
    labels : CSR array of shape (N, D)
    own : int array of shape (n,), optional
        Number of each image among those that vote, or −1. No image votes for itself.
    rejected : CSR array of shape (N, D), optional
        Rejected labels.
    complete : bool array of shape (N,), optional
        Images that have all of their labels; None if all have. Other images vote with labels that
        they have or that were rejected for them.
    """
    n = queries.n_images
    own = np.full(n, -1) if own is None else own
    ballot = _Ballot.of(labels, rejected, complete)
    scores = []
    if occasions.times is not None:
        near = occasions.near_in_time(queries, own)
        scores.append(sum(ballot.by_distance(near, hours * _HOUR) for hours in NEARNESS.hours))
    if occasions.places is not None:
        near = occasions.near_in_place(queries, own)
        scores.append(ballot.by_distance(near, NEARNESS.kilometres))
    if occasions.folders is not None:
        tree = occasions._folder_tree[1]
        paths = occasions.folder_paths(queries, n)
        places = np.flatnonzero((own >= 0) & (np.diff(paths.indptr) > 0))
        itself = scipy.sparse.csr_array(
            (np.ones(len(places)), (places, own[places])), shape=(n, labels.shape[0])
        )
        scores.append(ballot.by_sums(lambda values: paths @ (tree @ values) - itself @ values))
    return tuple(np.asarray(score, dtype=np.float32) for score in scores)


@dataclass(frozen=True)
class _Ballot:
    """What N images say about D labels."""

    labels: scipy.sparse.csr_array
    answered: scipy.sparse.csr_array
    """Labels (N×D) that are known of incomplete images."""
    complete: np.ndarray
    """1 for complete images, 0 for others, shape (N,)."""
    shares: np.ndarray
    """p, shape (D,)."""

    @classmethod
    def of(
        cls,
        labels: scipy.sparse.csr_array,
        rejected: scipy.sparse.csr_array | None,
        complete: np.ndarray | None,
    ) -> _Ballot:
        n, n_labels = labels.shape
        n_known = count_known(labels, rejected, complete)
        shares = (np.bincount(labels.indices, minlength=n_labels) + 0.5) / (n_known + 1)
        counted = np.ones(n) if complete is None else complete.astype(np.float64)
        answered = labels if rejected is None else labels + rejected
        partly = scipy.sparse.diags_array(1 - counted, format="csr")
        return cls(labels, scipy.sparse.csr_array(partly @ (answered > 0)), counted, shares)

    def by_distance(self, near: Neighbors, unit: float) -> np.ndarray:
        """Return scores (n×D) by neighbours (n×k) that have half a vote at a distance `unit`."""
        indices, distances = map(to_numpy, near)
        weights = 1 / (1 + distances / unit)  # 0 for missing neighbours, which are at ∞

        def add_up(values: scipy.sparse.csr_array) -> np.ndarray:
            return sums_over_lists(values, indices, weights)

        return self.by_sums(add_up)

    def by_sums(
        self, add_up: Callable[[scipy.sparse.csr_array], scipy.sparse.csr_array | np.ndarray]
    ) -> np.ndarray:
        """Return scores (n×D), given a function that adds up values (N×·) with the weights."""
        column = scipy.sparse.csr_array(self.complete[:, None])
        votes, known = _dense(add_up(self.labels)), _dense(add_up(column))
        if self.answered.nnz:
            known = known + _dense(add_up(self.answered))
        share = np.clip((votes + NEARNESS.prior * self.shares) / (known + NEARNESS.prior), 0, 1)
        share = np.clip(share, NEARNESS.least, 1 - NEARNESS.least)
        prior = np.clip(self.shares, NEARNESS.least, 1 - NEARNESS.least)
        return np.asarray(logit(share) - logit(prior))


# --- input -------------------------------------------------------------------------------


def _read_times(times: object, n_images: int) -> np.ndarray:
    """Return seconds, shape (N,); dates have units of their own, such as nanoseconds."""
    dates = to_numpy(times)
    if dates.dtype.kind != "M":
        return _read_numbers("times", times, (n_images,), "seconds or datetime64")
    seconds = dates.astype("datetime64[us]").astype(np.int64) / 1e6
    return _read_numbers("times", np.where(np.isnat(dates), np.nan, seconds), (n_images,))


def _read_numbers(
    name: str, values: object, shape: tuple[int, ...], what: str = "numbers"
) -> np.ndarray:
    try:
        numbers = np.array(to_numpy(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"{name} must hold {what}, and NaN if unknown; found {values!r:.80}."
        ) from error
    if numbers.shape != shape:
        raise InvalidInput(f"{name} must have the shape {shape}; found {numbers.shape}.")
    if np.isinf(numbers).any():
        raise InvalidInput(f"{name} has infinite numbers. Use NaN if a value is unknown.")
    return numbers


def _read_places(places: object, n_images: int) -> np.ndarray:
    degrees = _read_numbers("places", places, (n_images, 2))
    is_known = np.isfinite(degrees).all(axis=1)
    outside = is_known & (np.abs(degrees) > (90, 180)).any(axis=1)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise InvalidInput(
            f"places[{row}] is {degrees[row].tolist()}; expected latitude and longitude in "
            "degrees, or NaN if unknown."
        )
    return np.where(is_known[:, None], degrees, np.nan)


def _read_folders(folders: object, n_images: int) -> np.ndarray:
    if isinstance(folders, str) or not isinstance(folders, (Sequence, np.ndarray)):
        raise InvalidInput(f"folders must be a list of paths; found {folders!r:.80}.")
    if len(folders) != n_images:
        raise InvalidInput(f"Found {n_images} images and {len(folders)} folders.")
    texts = _empty_texts(n_images)
    for i, folder in enumerate(folders):
        if not isinstance(folder, str):
            raise InvalidInput(
                f"folders[{i}] is {folder!r:.80}; expected a path as text, or '' if unknown."
            )
        texts[i] = folder.strip("/")
    return texts


def _empty_texts(n: int) -> np.ndarray:
    return np.full(n, "", dtype=object)


def _folders_above(folder: str) -> list[str]:
    """Return a folder and those above it, without the root; none if it is unknown."""
    parts = [part for part in folder.split("/") if part]
    return ["/".join(parts[:depth]) for depth in range(len(parts), 0, -1)]


def _on_sphere(places: np.ndarray) -> np.ndarray:
    """Return points (n×3) of the unit sphere for degrees (n×2)."""
    latitude, longitude = np.radians(places).T
    east, north = np.cos(longitude), np.sin(longitude)
    return np.stack([np.cos(latitude) * east, np.cos(latitude) * north, np.sin(latitude)], axis=1)


def _drop(indices: np.ndarray, distances: np.ndarray, dropped: np.ndarray) -> Neighbors:
    return Neighbors(np.where(dropped, -1, indices), np.where(dropped, np.inf, distances))


def _no_neighbors(n: int) -> Neighbors:
    return Neighbors(np.full((n, 1), -1), np.full((n, 1), np.inf))


def _dense(values: scipy.sparse.csr_array | np.ndarray) -> np.ndarray:
    return values if isinstance(values, np.ndarray) else np.asarray(values.toarray())
