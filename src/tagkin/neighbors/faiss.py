"""FAISS: its approximate indexes, and a search whose candidates full distances rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np

from tagkin.arrays import Array, check_features, to_numpy
from tagkin.arrays.threads import find_libraries_again, run_in_threads
from tagkin.errors import InvalidInput, MissingExtra, pip_install
from tagkin.neighbors.neighbor_index import (
    NeighborIndex,
    Neighbors,
    check_metric,
    directions,
    nearest_first,
)
from tagkin.records.forms import storable
from tagkin.records.rules import Floats

if TYPE_CHECKING:
    import faiss

__all__ = ["FaissNeighbors", "import_faiss", "search_with_faiss"]


@dataclass(frozen=True)
class _Sizes:
    """Sizes that tune approximate indexes."""

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

    def fit(self, points: Array) -> Self:
        """Store the points (N×m), train the index if needed, and fill it."""
        check_metric(self.metric)
        rows = self.as_searched(check_features(points, name="points"))
        index = self._build(rows)
        self.points_, self._index = rows, index
        return self

    def add(self, points: Array) -> Self:
        """Add points; they get the next indices. A trained index keeps its training."""
        index, n = self._filled_index(), self.n_points_
        super().add(points)
        index.add(self.points_[n:])
        return self

    def as_searched(self, rows: Array) -> np.ndarray:
        """Return rows (n×m) in float32 on the host; for the cosine, of unit length."""
        center = None if self.metric == "cosine" else np.zeros(1)
        return directions(to_numpy(rows), "points or queries", center).astype(np.float32)

    def _search(self, rows: Array, k: int) -> Neighbors:
        index, width = self._filled_index(), min(2 * k + _SIZES.more, self.n_points_)

        def find(queries: np.ndarray) -> np.ndarray:
            return index.search(queries, width)[1]

        return search_with_faiss(find, width, np.asarray(rows), self.points_, k, self.metric)

    def _build(self, rows: np.ndarray) -> faiss.Index:
        faiss = import_faiss()
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

    def _filled_index(self) -> faiss.Index:
        """Return the index, rebuilt from the points after loading."""
        if not hasattr(self, "_index"):
            self._index = self._build(self.points_)
        return self._index

    def __repr__(self) -> str:
        return f"FaissNeighbors({self.factory!r}, {self.search!r}, metric={self.metric!r})"


def import_faiss() -> ModuleType:
    """Return FAISS, or raise an error with the install command."""
    try:
        import faiss
    except ImportError as error:
        raise MissingExtra(f"FAISS is not installed: {pip_install('faiss')}") from error
    find_libraries_again()  # FAISS loads its own BLAS
    # FAISS 1.15 takes ten times as long for fewer than 1,600 queries of 81 dimensions, because it
    # uses products for more queries only
    faiss.cvar.distance_compute_blas_threshold = 0
    return faiss


def search_with_faiss(
    find: Callable[[np.ndarray], np.ndarray],
    width: int,
    queries: np.ndarray,
    points: np.ndarray,
    k: int,
    metric: str,
) -> Neighbors:
    """Return the k nearest of the candidates of each query (n×m) among points (N×m), in float32.

    `find` returns the indices of candidates (n×width), −1 for a missing one.
    """
    faiss, (n, m) = import_faiss(), queries.shape
    lists = Neighbors(np.empty((n, k), np.int64), np.empty((n, k), np.float32))
    is_zero = ~points.any(axis=1)

    def search_block(rows: slice) -> None:
        block = np.ascontiguousarray(queries[rows])
        n_threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)  # in this thread: several wait for each other in busy loops
        try:
            candidates = find(block)
            squares = np.empty(candidates.shape, np.float32)
            pointers = map(faiss.swig_ptr, (squares, block, points, candidates))
            faiss.fvec_L2sqr_by_idx(*pointers, m, *candidates.shape)  # ∞ for index −1
        finally:
            faiss.omp_set_num_threads(n_threads)
        distances = squares / 2 if metric == "cosine" else np.sqrt(squares)
        if metric == "cosine":  # a zero vector is at distance 1
            zero = is_zero[candidates] | ~block.any(axis=1, keepdims=True)
            distances[zero & (candidates >= 0)] = 1
        nearest = nearest_first(Neighbors(candidates, distances), k)
        lists.indices[rows], lists.distances[rows] = nearest

    run_in_threads(search_block, n, 4096 + 64 * width, n)
    return lists
