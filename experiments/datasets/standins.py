"""Readers of the stand-ins for the paper's datasets: COCO, Flickr8k, a folder of photographs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import scipy.sparse

from experiments.datasets.base import Dataset
from experiments.datasets.files import Files, Source, label_matrix, unpacked
from tagkin.collection.tag_files import read_tags
from tagkin.labels import Vocabulary

__all__ = ["load_coco", "load_flickr8k", "load_photos"]

_HOME = "whoever gave you the stand-ins; experiments/datasets/README.md describes their contents"
_COCO = Source("COCO", _HOME, {"coco.npz": "features, labels and caption tags, 25 MB"})
_FLICKR8K = Source("Flickr8k", _HOME, {"flickr8k.npz": "features and nouns of captions, 8 MB"})
_PHOTOS = Source(
    "photos", _HOME, {"photos": "1,200 JPEGs and metadata.jsonl with labels and tags, 18 MB"}
)


def load_coco(folder: str | os.PathLike[str]) -> Dataset:
    """COCO, a stand-in for NUS-WIDE: 112,459 images, 80 labels, 527 tags from captions.

    Parameters
    ----------
    folder : path
        The folder with ``coco.npz``.

    Returns
    -------
    dataset : Dataset
        `features` are float32 (112,459×256). 33,771 images are test images. `tagged` are the
        38,262 images whose caption was read; the other rows of `tags` are empty.
    """
    files = Files(Path(folder), _COCO)
    path, names = "coco.npz", ("features", "scale", "labels", "label_names", "is_test")
    tag_parts = ("tag_rows", "tag_cols", "tag_names", "has_tags")
    found = files.arrays(path, [*names, *tag_parts])
    files.check()
    n = len(found["features"])
    if not all(len(found[part]) == n for part in ("labels", "is_test", "has_tags")):
        files.wrong(path, "damaged: its arrays have different numbers of images")
    files.check()
    with files.using(path):
        return Dataset(
            name="coco",
            files=None,
            features=_scaled(found),
            labels=unpacked(found["labels"], len(found["label_names"])),
            label_names=found["label_names"].tolist(),
            tags=label_matrix(found["tag_rows"], found["tag_cols"], (n, len(found["tag_names"]))),
            tag_names=found["tag_names"].tolist(),
            train=np.flatnonzero(~found["is_test"]),
            test=np.flatnonzero(found["is_test"]),
            tagged=np.flatnonzero(found["has_tags"]),
        )


def load_flickr8k(folder: str | os.PathLike[str], *, random_state: int = 0) -> Dataset:
    """Flickr8k, a stand-in for IAPR-TC12 and ESP-Game: 8,091 images, 179 labels.

    An image has the labels that at least two of five people named. Labels with fewer than ten
    training images or no test image are dropped. The tags simulate one caption: each of the 206
    nouns is drawn with the share of people who named it on that image.

    Parameters
    ----------
    folder : path
        The folder with ``flickr8k.npz``.
    random_state : int, default 0
        Seed for drawing the tags.

    Returns
    -------
    dataset : Dataset
        `features` are float32 (8,091×1,280). 1,000 images are test images; all others (train,
        dev, and 91 of neither) are training images.
    """
    files = Files(Path(folder), _FLICKR8K)
    path = "flickr8k.npz"
    found = files.arrays(path, ["features", "scale", "votes", "label_names", "split"])
    files.check()
    if not len(found["features"]) == len(found["votes"]) == len(found["split"]):
        files.wrong(path, "damaged: its arrays have different numbers of images")
    files.check()
    with files.using(path):
        votes, is_test = found["votes"], found["split"] == "test"
        expert = votes >= 2
        kept = (expert[~is_test].sum(axis=0) >= 10) & expert[is_test].any(axis=0)
        drawn = np.random.default_rng(random_state).random(votes.shape) < votes / 5
        return Dataset(
            name="flickr8k",
            files=None,
            features=_scaled(found),
            labels=scipy.sparse.csr_array(expert[:, kept], dtype=np.float32),
            label_names=found["label_names"][kept].tolist(),
            tags=scipy.sparse.csr_array(drawn, dtype=np.float32),
            tag_names=found["label_names"].tolist(),
            train=np.flatnonzero(~is_test),
            test=np.flatnonzero(is_test),
        )


def load_photos(folder: str | os.PathLike[str]) -> Dataset:
    """A folder of 1,200 photographs with expert labels and noisy tags.

    Parameters
    ----------
    folder : path
        The folder with the photographs and ``metadata.jsonl`` (columns file_name, labels,
        tags), or the folder above it, which has it as ``photos``.

    Returns
    -------
    dataset : Dataset
        `features` is None; `files` are relative to the folder with the photographs. The last
        200 in the order of ``metadata.jsonl`` are the test images, the others training images.
    """
    folder = Path(folder)
    if not (folder / "metadata.jsonl").exists() and (folder / "photos").is_dir():
        folder = folder / "photos"
    files = Files(folder, _PHOTOS)
    files.read("metadata.jsonl")
    files.check()
    of_experts, of_users = (
        read_tags(folder / "metadata.jsonl", column=column) for column in ("labels", "tags")
    )
    for name in of_experts.file_names:
        files.exists(name)
    files.check()
    labels, tags = Vocabulary(), Vocabulary()
    label_rows, tag_rows = (
        vocabulary.fit_transform(table.tags)
        for vocabulary, table in ((labels, of_experts), (tags, of_users))
    )
    rows = np.arange(len(of_experts))
    return Dataset(
        name="photos",
        files=of_experts.file_names,
        features=None,
        labels=label_rows,
        label_names=labels.names_,
        tags=tag_rows,
        tag_names=tags.names_,
        train=rows[:-200],
        test=rows[-200:],
    )


def _scaled(found: dict[str, np.ndarray]) -> np.ndarray:
    """Features as float32: integers times the scale of each column."""
    features = found["features"].astype(np.float32)
    features *= found["scale"]
    return features
