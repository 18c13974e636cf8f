"""FAISS: its approximate indexes, and a search whose candidates full distances rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np

from tagkin.arrays import Array, check_features, to_numpy
from tagkin.arrays.threads import find_libraries_again
from tagkin.errors import InvalidInput, MissingExtra, pip_install
from tagkin.neighbors.neighbor_index import (
    Finder,
    NeighborIndex,
    Neighbors,
    check_metric,
    directions,
    rank_candidates,
)
from tagkin.records.forms import storable
from tagkin.records.rules import Floats

if TYPE_CHECKING:
    import faiss

__all__ = ["FaissNeighbors", "faiss_finder", "import_faiss"]


@dataclass(frozen=True)
class _Sizes:
    """Sizes that tune approximate indexes."""

    trained_per_list: int = 64  # points that train the centre of a list; more do not help
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

        def search(queries: np.ndarray) -> np.ndarray:
            return index.search(queries, width)[1]

        find = faiss_finder(search, self.points_, self.metric)
        return rank_candidates(find, rows, k, metric=self.metric, bytes_per_row=128 * width)[0]

    def _build(self, rows: np.ndarray) -> faiss.Index:
        faiss = import_faiss()
        metric = faiss.METRIC_L2 if self.metric == "euclidean" else faiss.METRIC_INNER_PRODUCT
        try:
            index = faiss.index_factory(rows.shape[1], self.factory, metric)
            if self.search:  # before adding points, for efConstruction
                faiss.ParameterSpace().set_index_parameters(index, self.search)
            if not index.is_trained:
                lists = faiss.try_extract_index_ivf(index)
                if lists is not None:
                    lists.cp.max_points_per_centroid = _SIZES.trained_per_list
                index.train(rows)
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


def faiss_finder(
    search: Callable[[np.ndarray], np.ndarray], points: np.ndarray, metric: str
) -> Finder:
    """Return a search for candidates: the indices that `search` returns, with full distances.

    Index −1 stands for a missing candidate. Points and queries are float32 and contiguous.
    """
    faiss, is_zero = import_faiss(), np.all(points == 0, axis=1)

    def find(queries: Array) -> tuple[Array, Array, Array]:
        n_threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)  # in this thread: several wait for each other in busy loops
        try:
            candidates = search(np.asarray(queries))
            far = np.empty(candidates.shape, np.float32)
            pointers = map(faiss.swig_ptr, (far, queries, points, candidates))
            faiss.fvec_L2sqr_by_idx(*pointers, queries.shape[1], *candidates.shape)
        finally:
            faiss.omp_set_num_threads(n_threads)
        if metric == "cosine":  # a zero vector has the cosine 0
            zero = is_zero[candidates] | np.all(queries == 0, axis=1)[:, None]
            far[zero & (candidates >= 0)] = 2
            return candidates, far, np.zeros_like(far)  # equal points are equally far
        # square roots may be equal if squares are not
        return candidates, far, 2 * np.finfo(np.float32).eps * np.where(candidates >= 0, far, 0)

    return find
