"""Nearest neighbours: an exact search, and FAISS behind the same contract."""

from tagkin.neighbors.base import NeighborIndex, Neighbors, recall
from tagkin.neighbors.exact import ExactNeighbors, nearest
from tagkin.neighbors.faiss import FaissNeighbors, recommended_index

__all__ = [
    "ExactNeighbors",
    "FaissNeighbors",
    "NeighborIndex",
    "Neighbors",
    "nearest",
    "recall",
    "recommended_index",
]
