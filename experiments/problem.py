"""From a dataset to a problem: images with annotations to learn from, others to measure on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from experiments.config import Config
from experiments.made import made_dataset
from experiments.standins import STANDINS
from tagkin.datasets import Dataset, open_dataset
from tagkin.features import FeatureCache, extract, get_backbone

__all__ = [
    "Problem",
    "at_hand",
    "data_folder",
    "dataset_folder",
    "expert_problem",
    "open_data",
    "split_problem",
    "tag_problem",
    "with_features",
]


def data_folder() -> Path:
    """Where the datasets are: the folder TAGKIN_DATA, or ../shared/data."""
    here = Path(__file__).parent.parent.parent / "shared" / "data"
    return Path(os.environ.get("TAGKIN_DATA", here))


def open_data(config: Config, cache: Path) -> Dataset:
    """A dataset with features; where it has photographs only, they are computed, and cached."""
    if config.dataset == "made":
        return made_dataset()
    folder = dataset_folder(config.dataset)
    standin = STANDINS.get(config.dataset)
    data = standin(folder) if standin else open_dataset(config.dataset, folder)
    if data.features is not None:
        return data
    return with_features(data, dataset_folder(config.dataset), cache)


def with_features(data: Dataset, folder: Path, cache: Path) -> Dataset:
    """The dataset with features of the default backbone."""
    assert data.files is not None
    with FeatureCache(cache) as kept:
        found = extract(
            [folder / name for name in data.files], get_backbone("efficientnet-lite0"), cache=kept
        )
    if found.failures:
        raise SystemExit(f"{data.name}: {found.failures[0]}, and {len(found.failures) - 1} more.")
    return replace(data, features=found.features)


def dataset_folder(name: str) -> Path:
    """Where a dataset's own files are."""
    return data_folder() / name if (data_folder() / name).is_dir() else data_folder()


def at_hand(name: str) -> bool:
    """Whether a dataset can be read here."""
    own = data_folder() / name
    return name == "made" or own.is_dir() or own.with_suffix(".npz").exists()


@dataclass(frozen=True, eq=False)
class Problem:
    """Images to learn from (known) and to measure on (new)."""

    kind: str
    """"expert" or "tags"."""
    known: np.ndarray
    """Visual features, shape (N, d)."""
    new: np.ndarray
    """Shape (n, d)."""
    text: scipy.sparse.csr_array
    """What a space is learned from, shape (N, T): labels, or all tags."""
    text_names: Sequence[str]
    Y: scipy.sparse.csr_array
    """What passes to other images, shape (N, D): labels, or the tags that are labels, too."""
    truth: scipy.sparse.csr_array
    """Expert labels, shape (n, D)."""
    names: Sequence[str]

    def part(self, known: np.ndarray, held_out: np.ndarray) -> Problem:
        """Learn from some of the known images, measure on others of them by their own Y."""
        return replace(
            self,
            known=self.known[known],
            new=self.known[held_out],
            text=self.text[known],
            Y=self.Y[known],
            truth=self.Y[held_out],
        )

    def small(self, n_new: int, seed: int) -> tuple[Problem, np.ndarray]:
        """The same with fewer new images, drawn once, and which they are."""
        rows = drawn(len(self.new), n_new, seed)
        return replace(self, new=self.new[rows], truth=self.truth[rows]), rows


def drawn(n: int, size: int, seed: int) -> np.ndarray:
    """Which of n images, ascending: `size` of them at random; all for 0."""
    if not size or size >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, size, replace=False))


def expert_problem(data: Dataset, config: Config) -> Problem:
    """Learn from the expert labels of the training images."""
    known = data.train[drawn(len(data.train), config.n_known, config.seed)]
    new = data.test[drawn(len(data.test), config.n_new, config.seed)]
    return _expert(data, known, new)


def tag_problem(data: Dataset, config: Config) -> Problem:
    """Learn from the tags of tagged training images; measure by expert labels."""
    known = np.intersect1d(data.train, _tagged(data))
    known = known[drawn(len(known), config.n_tagged or config.n_known, config.seed)]
    new = data.test[drawn(len(data.test), config.n_new_small or config.n_new, config.seed)]
    return _tags(data, known, new)


def split_problem(data: Dataset, config: Config, kind: str, split: int) -> Problem:
    """Another split of the images, for experiment 5; the known ones in random order."""
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
