"""The contract and the one door."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from experiments.datasets import DATASETS, Dataset, open_dataset
from tagkin.errors import InvalidInput
from tests.experiments.datasets.writers import mirflickr, nuswide, tagprop

LABELS = scipy.sparse.csr_array(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 0, 0]]))
TAGS = scipy.sparse.csr_array(np.array([[0, 0], [1, 1], [0, 0], [0, 1]]))


def dataset(**changes):
    parts = {
        "name": "synthetic",
        "files": None,
        "features": None,
        "labels": LABELS,
        "label_names": ["a", "b", "c"],
        "tags": TAGS,
        "tag_names": ["x", "y"],
        "train": np.array([0, 1, 2]),
        "test": np.array([3]),
    }
    return Dataset(**(parts | changes))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"files": ["a.jpg"]}, "found 1 files for 4 images"),
        ({"features": np.ones((5, 2))}, "found 5 features for 4 images"),
        ({"label_names": ["a"]}, "labels have shape .*4 images and 1 names"),
        ({"tags": TAGS[:2]}, "tags have shape"),
        ({"test": np.array([2, 3])}, "image 2 is in train and in test"),
        ({"test": np.array([4])}, "test must be numbers of rows from 0 to 3"),
        ({"train": np.array([1, 0])}, "train must be .* ascending"),
        ({"train": np.array([0, 0])}, "train must be .* once"),
        ({"tagged": np.array([True, False, True, True])}, "tagged must be numbers of rows"),
    ],
)
def test_what_does_not_fit_is_refused(change, what):
    with pytest.raises(InvalidInput, match=what):
        dataset(**change)


def test_one_door(tmp_path):
    assert sorted(DATASETS) == list(DATASETS)
    assert len(open_dataset("espgame", tagprop(tmp_path, "espgame"))) == 6
    assert len(open_dataset("mirflickr", mirflickr(tmp_path))) == 4
    assert len(open_dataset("nuswide", nuswide(tmp_path))) == 3


def test_an_unknown_name(tmp_path):
    with pytest.raises(InvalidInput, match="Did you mean 'nuswide'"):
        open_dataset("NUS-WIDE", tmp_path)
    with pytest.raises(InvalidInput, match="There are coco"):
        open_dataset("imagenet", tmp_path)


def test_every_dataset_is_documented():
    text = (Path(__file__).parents[3] / "experiments" / "datasets" / "README.md").read_text()
    for name, reader in DATASETS.items():
        assert f"| `{name}` | `{reader.__name__}` |" in text
