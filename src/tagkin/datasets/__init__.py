"""Datasets of the paper and their stand-ins: one reader each, one contract."""

from tagkin.datasets.base import Dataset
from tagkin.datasets.standins import load_coco, load_flickr8k, load_photos

__all__ = ["Dataset", "load_coco", "load_flickr8k", "load_photos"]
