"""Datasets of the paper and their stand-ins: one reader each, one contract."""

from tagkin.datasets.base import Dataset
from tagkin.datasets.folder import load_folder
from tagkin.datasets.mirflickr import MIRFLICKR_LABELS, load_mirflickr
from tagkin.datasets.nuswide import load_nuswide
from tagkin.datasets.registry import DATASETS, open_dataset
from tagkin.datasets.statistics import Statistics, Summary, statistics_table
from tagkin.datasets.tagprop import load_corel5k, load_espgame, load_iaprtc12
from tagkin.datasets.vectors import read_vectors

__all__ = [
    "DATASETS",
    "MIRFLICKR_LABELS",
    "Dataset",
    "Statistics",
    "Summary",
    "load_corel5k",
    "load_espgame",
    "load_folder",
    "load_iaprtc12",
    "load_mirflickr",
    "load_nuswide",
    "open_dataset",
    "read_vectors",
    "statistics_table",
]
