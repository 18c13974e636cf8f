"""Reader of MIRFlickr-25k as the LIACS Medialab publishes it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.sparse

from experiments.datasets.base import Dataset
from experiments.datasets.files import Files, Source, label_matrix

__all__ = ["MIRFLICKR_LABELS", "load_mirflickr"]

_SOURCE = Source(
    "MIRFlickr-25k",
    "LIACS Medialab, Leiden University (press.liacs.nl/mirflickr)",
    {
        "mirflickr25k.zip": "images, tags and the list of common tags, 2.9 GB",
        "mirflickr25k_annotations_v080.zip": "expert labels, below 1 MB; to be unpacked into a "
        "folder of that name beside mirflickr",
    },
)
_COMMON = "mirflickr/doc/common_tags.txt"

_LABELS = (
    "animals baby bird car clouds dog flower food lake night people portrait river sea sky sunset"
)
MIRFLICKR_LABELS = (*_LABELS.split(), "tree", "water")
"""The 18 of the 24 expert labels whose names people use as tags."""


def load_mirflickr(folder: str | os.PathLike[str]) -> Dataset:
    """MIRFlickr-25k: 25,000 images, half of them for training; 18 labels and 1,386 tags.

    The tags are those of ``common_tags.txt``: all that are on at least 20 images. Images with even
    numbers are the test images. The split of Verbeek et al. (2010) has as many, but was not
    published with the dataset.

    Parameters
    ----------
    folder : path
        Has ``mirflickr`` (from mirflickr25k.zip) with ``meta/tags/tags1.txt`` and so on,
        ``doc/common_tags.txt`` and, where they are wanted, the images ``im1.jpg`` and so on;
        and ``mirflickr25k_annotations_v080``.

    Returns
    -------
    dataset : Dataset
        Images in the order of their numbers: row 0 is ``im1.jpg``. `files` is None where the
        folder has none of the images. An image may have no labels and no tags.
    """
    files = Files(Path(folder), _SOURCE)
    n = _number_of_images(files)
    common = _common_tags(files)
    tags = _tags(files, n, common)
    expert = _labels(files, n, MIRFLICKR_LABELS)
    files.check()
    images = files.images([f"im{number}" for number in range(1, n + 1)], ["mirflickr/{0}.jpg"])
    files.check()
    return Dataset(
        name="mirflickr",
        files=images,
        features=None,
        labels=expert,
        label_names=list(MIRFLICKR_LABELS),
        tags=tags,
        tag_names=common,
        train=np.arange(0, n, 2),
        test=np.arange(1, n, 2),
    )


def _number_of_images(files: Files) -> int:
    """The highest number that a file of tags has."""
    folder = files.folder / "mirflickr" / "meta" / "tags"
    names = os.listdir(folder) if folder.is_dir() else []
    numbers = [int(found[1]) for name in names if (found := re.fullmatch(r"tags(\d+)\.txt", name))]
    if not numbers:
        files.wrong("mirflickr/meta/tags/tags1.txt", "missing")
    return max(numbers, default=0)


def _common_tags(files: Files) -> list[str]:
    """The tags of ``common_tags.txt``, which has a tag and its number of images in a line."""
    rows = [line.split() for line in files.lines(_COMMON)]
    for number, row in enumerate(rows, start=1):
        if len(row) != 2 or not row[1].isdigit():
            files.wrong(_COMMON, f"damaged (line {number} is not a tag and a number)")
    return [row[0] for row in rows if row]


def _tags(files: Files, n: int, common: Sequence[str]) -> scipy.sparse.csr_array:
    columns = {tag: column for column, tag in enumerate(common)}
    pairs = []
    for row in range(n):
        # an empty file is an image without tags; there are many
        text = files.read(f"mirflickr/meta/tags/tags{row + 1}.txt").decode("utf-8", "replace")
        tags = (line.strip() for line in text.split("\n"))
        pairs += [(row, columns[tag]) for tag in tags if tag in columns]
    rows, found = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return label_matrix(rows, found, (n, len(common)))


def _labels(files: Files, n: int, labels: Sequence[str]) -> scipy.sparse.csr_array:
    """Expert labels: each has a file with the numbers of its images."""
    folder = files.either("mirflickr25k_annotations_v080", "mirflickr/annotations")
    rows, columns = [], []
    for column, label in enumerate(labels):
        path = f"{folder}/{label}.txt"
        lines = files.lines(path)
        bad = [line for line in lines if not line.isdigit() or not 1 <= int(line) <= n]
        if bad:
            files.wrong(path, f"damaged (has {bad[0]!r}, not the number of an image from 1 to {n})")
            continue
        rows += [int(line) - 1 for line in lines]
        columns += [column] * len(lines)
    return label_matrix(np.array(rows, int), np.array(columns, int), (n, len(labels)))
