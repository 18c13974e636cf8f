"""Exact nearest neighbours."""

from tagkin.neighbors.exact import ExactNeighbors, nearest, neighbors_outside
from tagkin.neighbors.lists import Neighbors

__all__ = ["ExactNeighbors", "Neighbors", "nearest", "neighbors_outside"]
