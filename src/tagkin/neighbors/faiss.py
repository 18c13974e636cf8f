"""FAISS indexes with the interface of the exact search."""

from __future__ import annotations

import math
from typing import Annotated, Any, Self

import numpy as np

from tagkin.arrays import Array, check_features, like, namespace, row_blocks, to_numpy
from tagkin.arrays.records import storable
from tagkin.arrays.rules import Floats
from tagkin.arrays.threads import find_libraries_again
from tagkin.errors import InvalidInput, MissingExtra, pip_install
from tagkin.neighbors._search import rank_candidates
from tagkin.neighbors.exact import ExactNeighbors
from tagkin.neighbors.neighbor_index import (
    Neighbors,
    PointIndex,
    check_metric,
    finite_block,
    unit_rows,
)

__all__ = ["FaissNeighbors", "recommended_index"]

_EXACT_UP_TO = 200_000  # points for which the exact search is fast enough
_FOR_A_LIST, _FEWEST_TRAINED = 64, 65_536  # points to train on: per list, and in total


@storable
class FaissNeighbors(PointIndex):
    """A FAISS index (the extra ``faiss``) with the interface of `ExactNeighbors`.

    Parameters
    ----------
    factory : str, default "Flat"
        FAISS's own description of the index: "Flat" is exact; "HNSW32", "IVF1024,Flat",
        "IVF4096,PQ32" are approximate, faster and, in part, smaller.
    search : str, default ""
        FAISS's settings, such as "nprobe=32" or "efConstruction=100,efSearch=128". Larger values
        are slower and find more; `recall` compares with the exact search.
    metric : "cosine" or "euclidean"
        See `ExactNeighbors`.
    refine : bool, default False
        Search for several times as many neighbours, and rank them by full distances, as the exact
        search does. For indexes of short codes, such as "IVF4096,PQ80x4fsr", which are fast but
        rank roughly.

    Attributes
    ----------
    points_ : float32 array of shape (N, m)
        The searched points, from which a loaded model rebuilds its index.
    n_points_ : int
        N.

    Notes
    -----
    FAISS computes in float32 on the CPU; other arrays are converted. Equal
    distances come with the lower index first, but which of several equal points comes k-th is
    FAISS's choice. If an approximate index returns fewer than k, lists end with index −1 at
    distance ∞.
    """

    points_: Annotated[np.ndarray, Floats("N", "m").kept_on_host()]

    def __init__(
        self,
        factory: str = "Flat",
        search: str = "",
        *,
        metric: str = "cosine",
        refine: bool = False,
    ):
        self.factory = factory
        self.search = search
        self.metric = metric
        self.refine = refine

    def fit(self, points: Array, y: object = None) -> Self:
        """Store the points (N×m), train the index if needed, and fill it; y is not used."""
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
        if self.refine:
            return self._search_refined(rows, k)
        values, indices = self._filled_index().search(rows, k)
        distances = self._distances(values)
        distances[indices < 0] = np.inf
        order = np.lexsort((indices, distances), axis=1)
        return Neighbors(
            np.take_along_axis(indices, order, axis=1),
            np.take_along_axis(distances, order, axis=1),
        )

    def _search_refined(self, rows: np.ndarray, k: int) -> Neighbors:
        width = min(_candidates(k), self.n_points_)
        neighbors = Neighbors(
            np.empty((len(rows), k), np.int64), np.empty((len(rows), k), np.float32)
        )
        for block in row_blocks(len(rows), 32 * width):
            _, candidates = self._filled_index().search(rows[block], width)
            # ascending, with −1 last, because it is the largest unsigned number
            candidates = np.sort(candidates.view(np.uint64), axis=1).view(np.int64)
            neighbors.indices[block], neighbors.distances[block] = rank_candidates(
                self._scorer(), rows[block], candidates, k
            )
        return neighbors

    def _searchable(self, rows: Array, name: str) -> np.ndarray:
        rows = to_numpy(rows)
        if self.metric == "cosine":
            return np.ascontiguousarray(unit_rows(rows, name), dtype=np.float32)
        searchable = np.empty(rows.shape, dtype=np.float32)
        for block in row_blocks(rows.shape[0], 16 * rows.shape[1]):
            searchable[block] = finite_block(rows, block, name)
        return searchable

    def _distances(self, values: np.ndarray) -> np.ndarray:
        if self.metric == "euclidean":
            return np.sqrt(np.maximum(values, 0))
        return np.maximum(1 - values, 0)

    def _build(self, rows: np.ndarray) -> Any:
        faiss = _faiss()
        find_libraries_again()  # FAISS loads its own BLAS
        metric = faiss.METRIC_L2 if self.metric == "euclidean" else faiss.METRIC_INNER_PRODUCT
        try:
            index = faiss.index_factory(rows.shape[1], self.factory, metric)
            if self.search:  # before adding points, for efConstruction
                faiss.ParameterSpace().set_index_parameters(index, self.search)
            if not index.is_trained:
                index.train(_training_sample(faiss, index, rows))
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
        options = f"{self.factory!r}, {self.search!r}, {self.metric!r}, refine={self.refine}"
        return f"FaissNeighbors({options})"


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

    Examples
    --------
    >>> from tagkin.neighbors import recommended_index
    >>> recommended_index(50_000, 81)
    ExactNeighbors('cosine')
    """
    check_metric(metric)
    if n_points < 1 or n_features < 1:
        raise InvalidInput(f"There is no index for {n_points} points of {n_features} features.")
    if n_points <= _EXACT_UP_TO or n_features == 1:
        return ExactNeighbors(metric)
    n_lists = 2 ** round(math.log2(4 * math.sqrt(n_points)))
    n_probed = round(2 * math.sqrt(n_lists))
    codes = f"IVF{n_lists},PQ{n_features}x4fsr"
    return FaissNeighbors(codes, f"nprobe={n_probed}", metric=metric, refine=True)


def _candidates(k: int) -> int:
    """Return the number of neighbours to rank by full distances to find k."""
    return 2 * k + 256


def _training_sample(faiss: Any, index: Any, rows: np.ndarray) -> np.ndarray:
    """Return as many rows as the centres of the lists need; more rows do not help."""
    lists = faiss.try_extract_index_ivf(index)
    enough = _FOR_A_LIST * lists.nlist if lists is not None else len(rows)
    step = max(1, len(rows) // max(enough, _FEWEST_TRAINED))
    return np.ascontiguousarray(rows[::step])


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise MissingExtra(f"FAISS is not installed: {pip_install('faiss')}") from error
    return faiss
