"""Datasets of the paper and their stand-ins: one reader each, one contract."""

from experiments.datasets.base import Dataset
from experiments.datasets.mirflickr import MIRFLICKR_LABELS, load_mirflickr
from experiments.datasets.nuswide import load_nuswide
from experiments.datasets.registry import DATASETS, open_dataset
from experiments.datasets.standins import load_coco, load_flickr8k, load_photos
from experiments.datasets.tagprop import load_espgame, load_iaprtc12

__all__ = [
    "DATASETS",
    "MIRFLICKR_LABELS",
    "Dataset",
    "load_coco",
    "load_espgame",
    "load_flickr8k",
    "load_iaprtc12",
    "load_mirflickr",
    "load_nuswide",
    "load_photos",
    "open_dataset",
]
