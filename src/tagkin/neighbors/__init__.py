"""Nearest neighbours: an exact search, and FAISS behind the same contract."""

from tagkin.neighbors.exact import ExactNeighbors, nearest, recommended_index
from tagkin.neighbors.faiss import FaissNeighbors
from tagkin.neighbors.neighbor_index import NeighborIndex, Neighbors, neighbors_outside, recall

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
