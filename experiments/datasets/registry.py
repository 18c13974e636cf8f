"""Readers of all datasets, by name."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType

from experiments.datasets.base import Dataset
from experiments.datasets.mirflickr import load_mirflickr
from experiments.datasets.nuswide import load_nuswide
from experiments.datasets.standins import load_coco, load_flickr8k, load_photos
from experiments.datasets.tagprop import load_espgame, load_iaprtc12
from tagkin.errors import InvalidInput

__all__ = ["DATASETS", "open_dataset"]

_READERS: dict[str, Callable[[str | os.PathLike[str]], Dataset]] = {
    "coco": load_coco,
    "espgame": load_espgame,
    "flickr8k": load_flickr8k,
    "iaprtc12": load_iaprtc12,
    "mirflickr": load_mirflickr,
    "nuswide": load_nuswide,
    "photos": load_photos,
}
DATASETS: Mapping[str, Callable[[str | os.PathLike[str]], Dataset]] = MappingProxyType(_READERS)
"""Names of datasets, and their readers."""


def open_dataset(name: str, folder: str | os.PathLike[str]) -> Dataset:
    """Read a dataset by its name.

    Parameters
    ----------
    name : str
        One of `DATASETS`.
    folder : path
        The folder with the dataset's files.

    Returns
    -------
    dataset : Dataset
    """
    if name not in DATASETS:
        close = difflib.get_close_matches(str(name).lower(), DATASETS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InvalidInput(f"No dataset is called {name!r}.{hint} There are {', '.join(DATASETS)}.")
    return DATASETS[name](folder)
