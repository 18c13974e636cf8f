"""From a dataset to a problem: annotated images to learn from, and images to evaluate on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from experiments.config import Config
from experiments.datasets import Dataset, open_dataset
from experiments.synthetic import synthetic_dataset
from tagkin.features import FeatureCache, extract, get_backbone

__all__ = [
    "Problem",
    "data_folder",
    "dataset_folder",
    "expert_problem",
    "is_available",
    "open_data",
    "split_problem",
    "tag_problem",
    "with_features",
]


def data_folder() -> Path:
    """Folder with the datasets: TAGKIN_DATA, or ../shared/data."""
    here = Path(__file__).parent.parent.parent / "shared" / "data"
    return Path(os.environ.get("TAGKIN_DATA", here))


def open_data(config: Config, cache: Path) -> Dataset:
    """A dataset with features; if it has photographs only, they are computed and cached."""
    if config.dataset == "synthetic":
        return synthetic_dataset()
    folder = dataset_folder(config.dataset)
    data = open_dataset(config.dataset, folder)
    if data.features is not None:
        return data
    return with_features(data, folder, cache)


def with_features(data: Dataset, folder: Path, cache: Path) -> Dataset:
    """Add features of EfficientNet-Lite0 to a dataset of photographs, as other stand-ins have."""
    assert data.files is not None
    with FeatureCache(cache) as kept:
        found = extract(
            [folder / name for name in data.files], get_backbone("efficientnet-lite0"), cache=kept
        )
    if found.failures:
        raise SystemExit(f"{data.name}: {found.failures[0]}, and {len(found.failures) - 1} more.")
    return replace(data, features=found.features)


def dataset_folder(name: str) -> Path:
    """Folder with the files of a dataset."""
    return data_folder() / name if (data_folder() / name).is_dir() else data_folder()


def is_available(name: str) -> bool:
    """Whether the files of a dataset are there."""
    own = data_folder() / name
    return name == "synthetic" or own.is_dir() or own.with_suffix(".npz").exists()


@dataclass(frozen=True, eq=False)
class Problem:
    """Images to learn from (known) and images to evaluate on (new)."""

    kind: str
    """"expert" or "tags"."""
    known: np.ndarray
    """Visual features, shape (N, d)."""
    new: np.ndarray
    """Shape (n, d)."""
    text: scipy.sparse.csr_array
    """Annotations that a space is learned from, shape (N, T): labels, or all tags."""
    text_names: Sequence[str]
    Y: scipy.sparse.csr_array
    """Labels to transfer, shape (N, D): expert labels, or the tags that are also labels."""
    truth: scipy.sparse.csr_array
    """Expert labels, shape (n, D)."""
    names: Sequence[str]

    def part(self, known: np.ndarray, held_out: np.ndarray) -> Problem:
        """Split the known images: learn from some, evaluate on others by their own Y."""
        return replace(
            self,
            known=self.known[known],
            new=self.known[held_out],
            text=self.text[known],
            Y=self.Y[known],
            truth=self.Y[held_out],
        )

    def small(self, n_new: int, seed: int) -> tuple[Problem, np.ndarray]:
        """The same problem with a fixed sample of the new images, and their rows."""
        rows = sample(len(self.new), n_new, seed)
        return replace(self, new=self.new[rows], truth=self.truth[rows]), rows


def sample(n: int, size: int, seed: int) -> np.ndarray:
    """A random sample of `size` of n rows, ascending; all rows if size is 0."""
    if not size or size >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, size, replace=False))


def expert_problem(data: Dataset, config: Config) -> Problem:
    """Learn from the expert labels of the training images."""
    known = data.train[sample(len(data.train), config.n_known, config.seed)]
    new = data.test[sample(len(data.test), config.n_new, config.seed)]
    return _expert(data, known, new)


def tag_problem(data: Dataset, config: Config) -> Problem:
    """Learn from the tags of tagged training images; evaluate by expert labels."""
    known = np.intersect1d(data.train, _tagged(data))
    known = known[sample(len(known), config.n_tagged or config.n_known, config.seed)]
    new = data.test[sample(len(data.test), config.n_new_small or config.n_new, config.seed)]
    return _tags(data, known, new)


def split_problem(data: Dataset, config: Config, kind: str, split: int) -> Problem:
    """A random split for experiment 5; the known images are in random order."""
    pool = np.arange(len(data)) if kind == "expert" else _tagged(data)
    order = np.random.default_rng([config.seed, split]).permutation(pool)
    n_new = config.sub_new or len(data.test)
    n_known = min(config.sub_known or len(data.train), len(pool) - n_new)
    known, new = order[:n_known], order[n_known : n_known + n_new]
    return _expert(data, known, new) if kind == "expert" else _tags(data, known, new)


def _tagged(data: Dataset) -> np.ndarray:
    return np.arange(len(data)) if data.tagged is None else data.tagged


def _features(data: Dataset, rows: np.ndarray) -> np.ndarray:
    return np.asarray(data.features[rows], dtype=np.float32)


def _expert(data: Dataset, known: np.ndarray, new: np.ndarray) -> Problem:
    Y: Any = data.labels[known]
    names = list(data.label_names)
    truth = data.labels[new]
    return Problem(
        "expert", _features(data, known), _features(data, new), Y, names, Y, truth, names
    )


def _tags(data: Dataset, known: np.ndarray, new: np.ndarray) -> Problem:
    if data.tags is None:
        raise SystemExit(f"{data.name} has no users' tags.")
    column = {name: i for i, name in enumerate(data.tag_names)}
    both = [(i, column[name]) for i, name in enumerate(data.label_names) if name in column]
    of_label, of_tag = np.array(both).T
    return Problem(
        "tags",
        _features(data, known),
        _features(data, new),
        data.tags[known],
        list(data.tag_names),
        data.tags[known][:, of_tag],
        data.labels[new][:, of_label],
        [data.label_names[i] for i in of_label],
    )
