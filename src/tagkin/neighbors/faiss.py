"""FAISS's approximate indexes with the interface of the exact search."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from tagkin.arrays import Array, check_features, like, namespace, to_numpy
from tagkin.arrays.threads import run_in_threads
from tagkin.errors import InvalidInput
from tagkin.neighbors.exact import ExactNeighbors, import_faiss, one_faiss_thread
from tagkin.neighbors.neighbor_index import (
    NeighborIndex,
    Neighbors,
    centred_rows,
    check_metric,
    directions,
    nearest_first,
)
from tagkin.records.forms import storable
from tagkin.records.rules import Floats

__all__ = ["FaissNeighbors", "recommended_index"]


@dataclass(frozen=True)
class _Sizes:
    """Sizes that tune approximate indexes."""

    exact: int = 200_000  # points for which the exact search is fast enough
    trained_per_list: int = 64  # points that train the centre of a list; more do not help
    trained: int = 65_536  # points to train on, at least
    more: int = 256  # candidates beyond 2 k: with a million points, 99 of the 100 nearest are in


_SIZES = _Sizes()


@storable
class FaissNeighbors(NeighborIndex):
    """A FAISS index (``pip install faiss-cpu``) with the interface of `ExactNeighbors`.

    It searches for several times as many neighbours, and ranks them by full distances, as the exact
    search does.

    Parameters
    ----------
    factory : str, default "Flat"
        FAISS's own description of the index: "HNSW32", "IVF1024,Flat", "IVF4096,PQ80x4fsr" are
        approximate, faster and, in part, smaller. "Flat" compares with all points.
    search : str, default ""
        FAISS's settings, such as "nprobe=32" or "efConstruction=100,efSearch=128". Larger values
        are slower and find more; `recall` compares with the exact search.
    metric : "cosine" or "euclidean"
        See `ExactNeighbors`.

    Attributes
    ----------
    points_ : float32 array of shape (N, m)
        The searched points, from which a loaded model rebuilds its index.
    n_points_ : int
        N.

    Notes
    -----
    FAISS computes in float32 on the CPU; other arrays are converted. If an approximate index
    returns fewer than k, lists end with index −1 at distance ∞.
    """

    points_: Annotated[np.ndarray, Floats("N", "m").kept_on_host()]

    def __init__(self, factory: str = "Flat", search: str = "", *, metric: str = "cosine"):
        self.factory = factory
        self.search = search
        self.metric = metric

    def fit(self, points: Array, y: object = None) -> Self:
        """Store the points (N×m), train the index if needed, and fill it; y is not used.

        Parameters
        ----------
        points : array of shape (N, m)
            Points to search among.
        y : ignored
            For scikit-learn; not used.
        """
        check_metric(self.metric)
        rows = self._searchable(check_features(points, name="points"), "points")
        index = self._build(rows)
        self.points_, self._index = rows, index
        return self

    def _append(self, rows: Any) -> None:
        self._filled_index().add(rows)  # a trained index keeps its training
        super()._append(rows)

    def _like_queries(self, neighbors: Neighbors, queries: Array) -> Neighbors:
        if isinstance(queries, np.ndarray):
            return neighbors
        xp = namespace(queries)
        indices = xp.asarray(neighbors.indices, device=queries.device)
        return Neighbors(indices, like(neighbors.distances, xp.astype(queries[:0], xp.float32)))

    def _search(self, rows: Any, k: int) -> Neighbors:
        index, width = self._filled_index(), min(2 * k + _SIZES.more, self.n_points_)

        faiss, points, m = import_faiss(required=True), self.points_, rows.shape[1]
        lists = Neighbors(np.empty((len(rows), k), np.int64), np.empty((len(rows), k), np.float32))
        cosine = self.metric == "cosine"

        def search_block(block: slice) -> None:
            with one_faiss_thread(faiss):
                candidates = index.search(rows[block], width)[1]
                squares = np.empty(candidates.shape, np.float32)
                pointers = map(faiss.swig_ptr, (squares, rows[block], points, candidates))
                faiss.fvec_L2sqr_by_idx(*pointers, m, *candidates.shape)  # ∞ for index −1
            far = squares / 2 if cosine else np.sqrt(squares)
            if cosine:  # a zero vector is at distance 1
                zero = is_zero[candidates] | ~rows[block].any(axis=1, keepdims=True)
                far[zero & (candidates >= 0)] = 1
            lists.indices[block], lists.distances[block] = nearest_first(
                Neighbors(candidates, far), k
            )

        is_zero = np.all(points == 0, axis=1)
        run_in_threads(search_block, len(rows), 32 * width, len(rows))
        return lists

    def _searchable(self, rows: Array, name: str) -> np.ndarray:
        rows = to_numpy(rows)
        if self.metric == "cosine":
            return np.ascontiguousarray(directions(rows, name), dtype=np.float32)
        return np.ascontiguousarray(centred_rows(rows, 0.0, name), dtype=np.float32)

    def _build(self, rows: np.ndarray) -> Any:
        faiss = import_faiss(required=True)
        metric = faiss.METRIC_L2 if self.metric == "euclidean" else faiss.METRIC_INNER_PRODUCT
        try:
            index = faiss.index_factory(rows.shape[1], self.factory, metric)
            if self.search:  # before adding points, for efConstruction
                faiss.ParameterSpace().set_index_parameters(index, self.search)
            if not index.is_trained:
                lists = faiss.try_extract_index_ivf(index)
                enough = len(rows) if lists is None else _SIZES.trained_per_list * lists.nlist
                step = max(1, len(rows) // max(enough, _SIZES.trained))
                index.train(np.ascontiguousarray(rows[::step]))
            index.add(rows)
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[-1]
            raise InvalidInput(
                f"FAISS cannot build the index {self.factory!r} with the search settings "
                f"{self.search!r} over {len(rows)} points of {rows.shape[1]} dimensions: {reason}"
            ) from error
        return index

    def _filled_index(self) -> Any:
        """Return the index, rebuilt from the points after loading."""
        if not hasattr(self, "_index"):
            self._index = self._build(self.points_)
        return self._index

    def __repr__(self) -> str:
        return f"FaissNeighbors({self.factory!r}, {self.search!r}, metric={self.metric!r})"


def recommended_index(
    n_points: int, n_features: int, metric: str = "cosine"
) -> ExactNeighbors | FaissNeighbors:
    """Return an index for `n_points` points: the exact search, or FAISS if that is too slow.

    More than 200,000 points are sorted into lists. A search compares the query with the lists
    nearest to it, by codes of four bits per dimension, and ranks the best points by full
    distances. Among a million embeddings it finds more than 99 of the 100 nearest in a tenth of
    the time. Compare it with the exact search on your points with `recall`, and raise ``nprobe`` if
    it finds too few. It is made for embeddings: with a thousand features or more, learning the
    codes takes long.

    Parameters
    ----------
    n_points : int
        How many points there are.
    n_features : int
        Their dimension.
    metric : {"cosine", "euclidean"}, default "cosine"
        The distance.

    Examples
    --------
    >>> from tagkin.neighbors import recommended_index
    >>> recommended_index(50_000, 81)
    ExactNeighbors('cosine')
    """
    check_metric(metric)
    if n_points < 1 or n_features < 1:
        raise InvalidInput(f"There is no index for {n_points} points of {n_features} features.")
    if n_points <= _SIZES.exact or n_features == 1:
        return ExactNeighbors(metric)
    n_lists = 2 ** round(math.log2(4 * math.sqrt(n_points)))
    n_probed = round(2 * math.sqrt(n_lists))
    codes = f"IVF{n_lists},PQ{n_features}x4fsr"
    return FaissNeighbors(codes, f"nprobe={n_probed}", metric=metric)
