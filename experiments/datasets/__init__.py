"""Datasets of the paper and their stand-ins: a reader each makes a `Dataset` of a folder."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable

from experiments.datasets.base import Dataset
from experiments.datasets.mirflickr import MIRFLICKR_LABELS, load_mirflickr
from experiments.datasets.nuswide import load_nuswide
from experiments.datasets.standins import load_coco, load_flickr8k, load_photos
from experiments.datasets.tagprop import load_espgame, load_iaprtc12
from tagkin.errors import InvalidInput

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

DATASETS: dict[str, Callable[[str | os.PathLike[str]], Dataset]] = {
    "coco": load_coco,
    "espgame": load_espgame,
    "flickr8k": load_flickr8k,
    "iaprtc12": load_iaprtc12,
    "mirflickr": load_mirflickr,
    "nuswide": load_nuswide,
    "photos": load_photos,
}
"""Readers by the names of datasets."""


def open_dataset(name: str, folder: str | os.PathLike[str]) -> Dataset:
    """Read the dataset of a name, one of `DATASETS`, from the folder with its files."""
    if name not in DATASETS:
        close = difflib.get_close_matches(str(name).lower(), DATASETS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InvalidInput(f"No dataset is called {name!r}.{hint} There are {', '.join(DATASETS)}.")
    return DATASETS[name](folder)
