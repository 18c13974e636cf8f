"""Reader of NUS-WIDE as the National University of Singapore publishes it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.sparse

from experiments.datasets.base import Dataset
from experiments.datasets.files import Files, Source, label_matrix

__all__ = ["load_nuswide"]

_SOURCE = Source(
    "NUS-WIDE",
    "the Lab for Media Search, National University of Singapore (lms.comp.nus.edu.sg)",
    {
        "ImageList.zip": "the order of the images and the split",
        "Groundtruth.zip": "expert labels; unpacked, 81 files of half a megabyte are read",
        "ConceptsList.zip": "names of the labels, in Concepts81.txt",
        "NUS_WID_Tags.zip": "users' tags",
        "the images": "to be asked for by e-mail; a folder Flickr with a folder for each query",
    },
)
_PLACES = ("Flickr/{0}", "images/{0}", "Flickr/{0.name}", "images/{0.name}")
_ORDER, _TAGS = "ImageList/Imagelist.txt", "NUS_WID_Tags/All_Tags.txt"
_TAG_NAMES = "NUS_WID_Tags/Final_Tag_List.txt"


def load_nuswide(folder: str | os.PathLike[str]) -> Dataset:
    """NUS-WIDE: 269,648 images, of which the 209,347 with expert labels are read.

    Images without an expert label are left out, as in the paper, and so are those whose file is not
    there where others are, as many have left Flickr. The labels are those of
    ``Groundtruth/AllLabels``, because a file of ``TrainTestLabels`` has an entry that is neither
    0 nor 1.

    Parameters
    ----------
    folder : path
        Has ``ImageList/Imagelist.txt``, ``TrainImagelist.txt`` and ``TestImagelist.txt``,
        ``ConceptsList/Concepts81.txt``, ``Groundtruth/AllLabels/Labels_airport.txt`` and so on,
        ``NUS_WID_Tags/All_Tags.txt`` and ``Final_Tag_List.txt``; and, where they are wanted,
        the images, as ``Flickr/actor/0001_2124494179.jpg``.

    Returns
    -------
    dataset : Dataset
        81 labels and 5,018 tags. `files` is None where the folder has none of the images.
    """
    files = Files(Path(folder), _SOURCE)
    listed = _image_list(files, _ORDER)
    split = _split(files, listed)
    concepts, labels = _labels(files, len(listed))
    tag_names, tags = _tags(files, listed)
    files.check()
    kept = np.diff(labels.indptr) > 0
    found, paths = files.find_images(listed, _PLACES), None
    if found is not None:
        kept &= found[1]
        paths = [path for path, keep in zip(found[0], kept, strict=True) if keep]
    split = split[kept]
    return Dataset(
        name="nuswide",
        files=paths,
        features=None,
        labels=labels[kept],
        label_names=concepts,
        tags=tags[kept],
        tag_names=tag_names,
        train=np.flatnonzero(split == "train"),
        test=np.flatnonzero(split == "test"),
    )


def _image_list(files: Files, path: str) -> list[str]:
    """Images of a list, which was written on Windows."""
    return [line.replace("\\", "/") for line in files.lines(path)]


def _split(files: Files, listed: Sequence[str]) -> np.ndarray:
    """The part of the split that each image is in, an empty text for none."""
    rows = {name: row for row, name in enumerate(listed)}
    if len(rows) != len(listed):
        files.wrong(_ORDER, "damaged (an image is listed twice)")
    split = np.full(len(listed), "", dtype="U5")
    for part, path in (
        ("train", "ImageList/TrainImagelist.txt"),
        ("test", "ImageList/TestImagelist.txt"),
    ):
        for name in _image_list(files, path):
            row = rows.get(name)
            if row is None:
                files.wrong(path, f"damaged (has {name!r}, which {_ORDER} has not)")
                break
            if split[row]:
                files.wrong(path, f"damaged (has {name!r}, which is in {split[row]} already)")
                break
            split[row] = part
    return split


def _labels(files: Files, n: int) -> tuple[list[str], scipy.sparse.csr_array]:
    """Names of the labels, and the labels (images × labels): a file each, a line an image."""
    concepts = files.lines(files.either("ConceptsList/Concepts81.txt", "Concepts81.txt"))
    folder = files.either("Groundtruth/AllLabels", "AllLabels")
    rows, columns = [], []
    for column, concept in enumerate(concepts):
        path = f"{folder}/Labels_{concept}.txt"
        cells = np.array(files.read(path).split(), dtype="S8")
        files.same_number(path, len(cells), "lines", n, _ORDER)
        bad = np.flatnonzero((cells != b"0") & (cells != b"1"))
        if bad.size:
            found = cells[bad[0]].decode("utf-8", "replace")
            files.wrong(path, f"damaged (line {bad[0] + 1} has {found!r}, not 0 or 1)")
        if files.looked_at[path] or len(cells) != n:
            continue
        rows.append(np.flatnonzero(cells == b"1"))
        columns.append(np.full(len(rows[-1]), column))
    empty = [np.empty(0, int)]
    return concepts, label_matrix(
        np.concatenate(rows or empty), np.concatenate(columns or empty), (n, len(concepts))
    )


def _tags(files: Files, listed: Sequence[str]) -> tuple[list[str], scipy.sparse.csr_array]:
    """Names of the tags, and the tags of the images (images × tags).

    A line of ``All_Tags.txt`` has the number of a photograph and its tags; the number stands
    at the end of the image's file name as well, so that the order can be checked.
    """
    names = files.lines(_TAG_NAMES)
    columns = {name: column for column, name in enumerate(names)}
    lines = files.lines(_TAGS)
    files.same_number(_TAGS, len(lines), "lines", len(listed), _ORDER)
    rows: list[int] = []
    found: list[int] = []
    for row, (line, name) in enumerate(zip(lines, listed, strict=False)):
        number, *tags = line.split() or [""]
        if number != name.rpartition(".")[0].rpartition("_")[2]:
            what = f"line {row + 1} is of photograph {number!r}, but the image there is {name}"
            files.wrong(_TAGS, f"damaged ({what})")
            break
        known = [columns[tag] for tag in tags if tag in columns]
        rows += [row] * len(known)
        found += known
    return names, label_matrix(np.array(rows, int), np.array(found, int), (len(listed), len(names)))
