"""Nearest neighbours: an exact search, and FAISS behind the same contract."""

from typing import TYPE_CHECKING

from tagkin.lazy_names import lazy_names
from tagkin.neighbors.exact import ExactNeighbors, nearest
from tagkin.neighbors.neighbor_index import NeighborIndex, Neighbors, recall

if TYPE_CHECKING:
    from tagkin.neighbors.faiss import FaissNeighbors as FaissNeighbors
    from tagkin.neighbors.faiss import recommended_index as recommended_index
    from tagkin.neighbors.other_groups import neighbors_outside as neighbors_outside

__all__ = [
    "ExactNeighbors",
    "FaissNeighbors",
    "NeighborIndex",
    "Neighbors",
    "nearest",
    "neighbors_outside",
    "recall",
    "recommended_index",
]

# Imported at first use, because most searches are exact and do not exclude groups.
_HOMES = {
    "FaissNeighbors": "faiss",
    "neighbors_outside": "other_groups",
    "recommended_index": "faiss",
}
__getattr__ = lazy_names(__name__, _HOMES)
