"""Readers of ESP-Game and IAPR-TC12 as they were published with TagProp.

Guillaumin et al. (2009) published for each of them the split, the dictionary and the labels that
the literature uses since; the images come from elsewhere. The folder of a dataset NAME has
``NAME_train_list.txt``, ``NAME_train_annot.hvecs``, the same two for test, and
``NAME_dictionary.txt``. Training images come first. `files` is None if the folder has no images.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import scipy.sparse

from experiments.datasets.base import Dataset
from experiments.datasets.files import Files, Source

__all__ = ["load_espgame", "load_iaprtc12"]

_HOME = "M. Guillaumin's page of data at INRIA's LEAR team (lear.inrialpes.fr)"
_IAPRTC12 = Source(
    "IAPR-TC12",
    f"{_HOME}, and the images from ImageCLEF (imageclef.org)",
    {
        "iaprtc12.20091111.tar.bz2": "lists, dictionary, labels (11 MB of it) and features",
        "iaprtc12.tgz": "the images, about 1.7 GB; to be unpacked into the same folder",
    },
)
_ESPGAME = Source(
    "ESP-Game",
    f"{_HOME}, and the images from hunch.net",
    {
        "espgame.20091111.tar.bz2": "lists, dictionary, labels (11 MB of it) and features",
        "ESP-ImageSet.tar.gz": "the images; to be unpacked into the same folder",
    },
)
_PLACES = ("images/{0}.jpg", "{0}.jpg", "images/{0.name}.jpg", "images/{0}.jpeg", "{0}.jpeg")


def load_iaprtc12(folder: str | os.PathLike[str]) -> Dataset:
    """IAPR-TC12: 17,665 training and 1,962 test images, 291 labels, no users' tags.

    Images are ``iaprtc12/images/00/25.jpg`` or ``images/00/25.jpg`` in the folder.
    """
    return _load("iaprtc12", folder, _IAPRTC12, ("iaprtc12/images/{0}.jpg", *_PLACES))


def load_espgame(folder: str | os.PathLike[str]) -> Dataset:
    """ESP-Game: 18,689 training and 2,081 test images, 268 labels, no users' tags.

    Images are in ``ESP-ImageSet/images`` or ``images`` in the folder.
    """
    return _load("espgame", folder, _ESPGAME, ("ESP-ImageSet/images/{0.name}.jpg", *_PLACES))


def _load(
    name: str, folder: str | os.PathLike[str], source: Source, places: tuple[str, ...]
) -> Dataset:
    files = Files(Path(folder), source)
    words = files.lines(f"{name}_dictionary.txt")
    parts = {part: _read_part(files, name, part, len(words)) for part in ("train", "test")}
    files.check()
    listed = [image for images, _ in parts.values() for image in images]
    images = files.images(listed, places)
    files.check()
    n_train = len(parts["train"][0])
    return Dataset(
        name=name,
        files=images,
        features=None,
        labels=scipy.sparse.csr_array(
            np.concatenate([labels for _, labels in parts.values()]), dtype=np.float32
        ),
        label_names=words,
        tags=None,
        tag_names=[],
        train=np.arange(n_train),
        test=np.arange(n_train, len(listed)),
    )


def _read_part(files: Files, name: str, part: str, n_words: int) -> tuple[list[str], np.ndarray]:
    """Names of the images of one part of the split, and their labels (images × words)."""
    of_list, of_labels = f"{name}_{part}_list.txt", f"{name}_{part}_annot.hvecs"
    images, labels = files.lines(of_list), files.vectors(of_labels)
    dictionary = f"{name}_dictionary.txt"
    files.same_number(of_labels, labels.shape[0], "images", len(images), of_list)
    files.same_number(of_labels, labels.shape[1], "labels", n_words, dictionary)
    if labels.size and labels.max() > 1:
        files.wrong(of_labels, f"damaged (has {labels.max()} where 0 or 1 is expected)")
    return images, labels
