"""Reader of anyone's own images or features with a table of labels or tags."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from tagkin.arrays import check_features
from tagkin.collection.tag_files import read_tags
from tagkin.datasets.base import Dataset
from tagkin.datasets.files import Files, Source
from tagkin.errors import InvalidInput, StorageError
from tagkin.labels import Vocabulary

__all__ = ["load_folder"]

_TABLES = ("metadata.jsonl", "metadata.csv", "tags.jsonl", "tags.csv")
_PARTS = {"train": "train", "val": "train", "validation": "train", "dev": "train", "test": "test"}
_TEST_EVERY = 5


def load_folder(
    images: str | os.PathLike[str],
    table: str | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
) -> Dataset:
    """Anyone's own images or features, with a table of their labels or tags.

    Parameters
    ----------
    images : path
        A folder of images, or an ``.npy`` file of features with a row for each image of the
        table, in its order; that is mapped into memory, not read.
    table : path or None
        A CSV or JSON Lines file with a column ``file_name`` (relative to the folder), a column
        ``labels`` (or ``label``) or ``tags`` (or ``tag``) or both, and perhaps ``split``; see
        `tagkin.collection.tag_files.read_tags` for its form. None: the first there is of
        ``metadata.jsonl``, ``metadata.csv``, ``tags.jsonl`` and ``tags.csv`` in the folder.
    name : str or None
        The dataset's name; None takes the name of `images`.

    Returns
    -------
    dataset : Dataset
        Images in the order of the table. Where the table has only tags, they are the labels as
        well. ``split`` says train, val, validation or dev (all are training images) or test;
        without it, every fifth image of the table is a test image.
    """
    images = Path(images)
    is_array = images.suffix.lower() == ".npy"
    path = Path(table) if table is not None else _find_table(images, is_array)
    first = read_tags(path)  # says what is wrong with the file, if anything
    if not len(first):
        raise InvalidInput(f"{path} names no image. It needs a row for each.")
    rows = _rows(path)
    columns = {column for row in rows for column in row}
    named = {
        kind: next((column for column in (f"{kind}s", kind) if column in columns), None)
        for kind in ("label", "tag")
    }
    learned = {kind: _matrix(path, column) for kind, column in named.items() if column is not None}
    if not learned:
        raise InvalidInput(
            f"{path} has no column file_name with labels or tags; found {', '.join(columns)}."
        )
    label_names, labels = learned.get("label") or learned["tag"]
    tag_names, tags = learned.get("tag") or ([], None)
    is_test = _is_test(path, rows, list(first.file_names), "split" in columns)
    features = _features(images, len(first), path) if is_array else None
    if not is_array:
        _check_images(images, list(first.file_names))
    return Dataset(
        name=name or images.resolve().stem,
        files=None if is_array else list(first.file_names),
        features=features,
        labels=labels,
        label_names=label_names,
        tags=tags,
        tag_names=tag_names,
        train=np.flatnonzero(~is_test),
        test=np.flatnonzero(is_test),
    )


def _find_table(images: Path, is_array: bool) -> Path:
    folder = images.parent if is_array else images
    found = next((folder / name for name in _TABLES if (folder / name).is_file()), None)
    if found is None:
        raise StorageError(
            f"{folder} has no table of labels or tags; looked for {', '.join(_TABLES)}. Put one "
            "there, or say where it is with table=…"
        )
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a table that is known to be well formed."""
    text = path.read_text("utf-8-sig")
    if path.suffix.lower() == ".csv":
        reader = csv.reader(io.StringIO(text, newline=""))
        header, *cells = (row for row in reader if row)
        keys = [key.strip() for key in header]
        return [dict(zip(keys, row, strict=True)) for row in cells]
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _matrix(path: Path, column: str) -> tuple[list[str], Any]:
    """Names, and labels or tags (images × names), of a column of the table."""
    vocabulary = Vocabulary()
    matrix = vocabulary.fit_transform(read_tags(path, column=column).tags)
    return vocabulary.names_, matrix


def _is_test(
    path: Path, rows: list[dict[str, Any]], file_names: list[str], has_split: bool
) -> np.ndarray:
    """Whether each image is a test image."""
    if not has_split:
        return np.arange(len(file_names)) % _TEST_EVERY == _TEST_EVERY - 1
    parts: dict[str, str] = {}
    for row in rows:
        image, found = row["file_name"], row.get("split")
        part = _PARTS.get(found.strip().lower()) if isinstance(found, str) else None
        if part is None:
            raise InvalidInput(
                f"{path}: the split of {image} is {found!r}; expected one of {', '.join(_PARTS)}."
            )
        if parts.setdefault(image, part) != part:
            raise InvalidInput(f"{path}: {image} is in train and in test. Choose one.")
    return np.array([parts[image] == "test" for image in file_names], dtype=bool)


def _features(path: Path, n: int, table: Path) -> np.ndarray:
    try:
        features = np.load(path, mmap_mode="r")
    except FileNotFoundError as error:
        raise StorageError(f"{path} is not there. Write it with numpy.save.") from error
    except (OSError, ValueError, EOFError) as error:
        raise StorageError(f"{path} cannot be read as an array: {error}") from error
    check_features(features, name=path.name)
    if len(features) != n:
        raise InvalidInput(
            f"{path} has {len(features):,} rows where {table} has {n:,} images. Features need a "
            "row for each image, in the order of the table."
        )
    return features


def _check_images(folder: Path, file_names: list[str]) -> None:
    source = Source("Your dataset", "where they are now", {"images": "named as in the table"})
    files = Files(folder, source)
    for name in file_names:
        files.exists(name)
    files.check()
