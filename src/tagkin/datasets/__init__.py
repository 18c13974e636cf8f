"""Datasets of the paper and their stand-ins: one reader each, one contract."""

from tagkin.datasets.base import Dataset

__all__ = ["Dataset"]
