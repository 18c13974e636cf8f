"""Nearest neighbours: an exact search, and FAISS behind the same contract."""

from tagkin.neighbors.base import NeighborIndex, Neighbors, recall
from tagkin.neighbors.exact import ExactNeighbors, nearest
from tagkin.neighbors.faiss import FaissNeighbors, recommended_index
from tagkin.neighbors.other_groups import neighbors_outside

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
