"""The contract, the statistics and the one door."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from experiments.datasets import DATASETS, Dataset, open_dataset, statistics_table
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


def test_statistics():
    statistics = dataset().statistics()
    assert (statistics.n_images, statistics.n_train, statistics.n_test) == (4, 3, 1)
    assert (statistics.n_labels, statistics.n_tags) == (3, 2)
    assert statistics.labels_per_image == (1.0, 1.0, 2, pytest.approx(4 / 3), 1)
    assert statistics.images_per_label == (pytest.approx(4 / 3), 1.0, 3, 2.0, 1)
    assert statistics.tags_per_image == (0.75, 0.5, 2, 1.5, 2)
    assert statistics.images_per_tag == (1.5, 1.5, 2, 1.5, 0)


def test_tags_are_counted_where_they_were_asked_for():
    statistics = dataset(tagged=np.array([1, 3])).statistics()
    assert statistics.tags_per_image == (1.5, 1.5, 2, 1.5, 0)
    none = dataset(tags=None, tag_names=[]).statistics()
    assert none.tags_per_image is None
    assert none.n_tags == 0


def test_statistics_as_markdown():
    table = statistics_table(
        [dataset().statistics(), dataset(tags=None, tag_names=[]).statistics()]
    )
    assert table.splitlines()[2:] == [
        "| synthetic | 4 | 3 | 1 | 3 | 2 | 1.00 | 0.75 |",
        "| synthetic | 4 | 3 | 1 | 3 | – | 1.00 | – |",
    ]
    lines = dataset().statistics().markdown().splitlines()
    assert "| labels per image: mean / median / most | 1.00 / 1 / 2 |" in lines
    assert "| tags on no image | 0 |" in lines
    assert len({line.count("|") for line in [*lines, table.splitlines()[0]]}) == 2


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
