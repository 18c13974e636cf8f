"""The stand-ins, if they are available, and small synthetic files in their format."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from experiments.datasets import load_coco, load_flickr8k, load_photos
from tagkin.errors import StorageError

FOLDER = Path(os.environ.get("TAGKIN_DATA", Path(__file__).parents[4] / "shared" / "data"))


def folder_with(name):
    if not (FOLDER / name).exists():
        pytest.skip(f"{name} is not in ../shared/data; set TAGKIN_DATA to the folder that has it")
    return FOLDER


# --- as they are ---


def test_coco_has_the_figures_of_its_description():
    data = load_coco(folder_with("coco.npz"))
    assert len(data) == 112_459
    assert data.features.shape == (112_459, 256)
    assert data.features.dtype == np.float32
    norms = np.linalg.norm(data.features[:1000], axis=1)
    assert norms.max() < 1.1
    assert data.labels.shape[1] == 80
    assert data.labels.sum() / len(data) == pytest.approx(2.93, abs=0.01)
    assert len(data.test) == 33_771
    assert len(data.train) == 78_688
    assert len(data.tagged) == 38_262
    assert len(data.tag_names) == 527
    assert data.tags.sum() / 38_262 == pytest.approx(2.85, abs=0.01)
    assert not data.tags[np.setdiff1d(np.arange(len(data)), data.tagged)].nnz


def test_flickr8k_has_the_figures_of_its_description():
    data = load_flickr8k(folder_with("flickr8k.npz"))
    assert data.features.shape == (8091, 1280)
    assert data.features.min() == 0
    assert data.labels.shape == (8091, 179)
    assert (len(data.train), len(data.test)) == (7091, 1000)
    assert (data.labels[data.train].sum(axis=0) >= 10).all()
    assert (data.labels[data.test].sum(axis=0) >= 1).all()
    assert data.tags.shape == (8091, 206)


def test_flickr8k_tags_are_one_captions_worth():
    """As many as a person names; the same for a seed, others for another."""
    folder = folder_with("flickr8k.npz")
    votes = np.load(folder / "flickr8k.npz")["votes"]
    first, again, other = (load_flickr8k(folder, random_state=seed).tags for seed in (0, 0, 1))
    assert first.nnz == pytest.approx(votes.sum() / 5, rel=0.02)
    assert (first != again).nnz == 0
    assert (first != other).nnz > 0
    rows, columns = first.nonzero()
    assert (votes[rows, columns] > 0).all()
    everyone = np.argwhere(votes == 5)
    assert all(first[row, column] == 1 for row, column in everyone[:200])


def test_photos_are_a_folder_of_files():
    folder = folder_with("photos")
    data = load_photos(folder / "photos")
    assert len(data) == 1200
    assert (len(data.train), len(data.test)) == (1000, 200)
    assert data.features is None
    assert (folder / "photos" / data.files[0]).is_file()
    first = {data.label_names[column] for column in data.labels[[0]].nonzero()[1]}
    assert first == {"person", "skis"}
    assert (load_photos(folder).tags != data.tags).nnz == 0


# --- damage ---


def coco(folder, n=4, **changes):
    arrays = {
        "features": np.arange(2 * n, dtype=np.int8).reshape(n, 2),
        "scale": np.array([0.5, 2], np.float32),
        "labels": np.packbits(np.eye(n, 3, dtype=np.uint8), axis=1),
        "label_names": np.array(["cat", "dog", "car"]),
        "is_test": np.arange(n) == 1,
        "tag_rows": np.array([2, 2, 3], np.int32),
        "tag_cols": np.array([0, 1, 1], np.int16),
        "tag_names": np.array(["pet", "red"]),
        "has_tags": np.arange(n) >= 2,
    } | changes
    np.savez(folder / "coco.npz", **{k: v for k, v in arrays.items() if v is not None})
    return folder


def test_a_synthetic_coco(tmp_path):
    data = load_coco(coco(tmp_path))
    assert data.features.tolist() == [[0, 2], [1, 6], [2, 10], [3, 14]]
    assert data.labels.toarray().tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert data.tags.toarray().tolist() == [[0, 0], [0, 0], [1, 1], [0, 1]]
    assert data.train.tolist() == [0, 2, 3]
    assert data.test.tolist() == [1]
    assert data.tagged.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"labels": None}, "damaged .*labels is not a file in the archive"),
        ({"is_test": np.array([True])}, "different numbers of images"),
        ({"scale": np.ones(3, np.float32)}, "damaged .*broadcast"),
        ({"tag_rows": np.array([2, 9, 3])}, "damaged .*exceeds"),
        ({"label_names": np.array(["cat"] * 9)}, "damaged .*9 names"),
        ({"scale": np.array([None, 2])}, "damaged .*allow_pickle=False"),
    ],
)
def test_a_damaged_archive(tmp_path, change, what):
    with pytest.raises(StorageError, match=what):
        load_coco(coco(tmp_path, **change))


def test_half_an_archive(tmp_path):
    path = coco(tmp_path) / "coco.npz"
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(StorageError, match="damaged"):
        load_coco(tmp_path)


def test_no_archive(tmp_path):
    with pytest.raises(StorageError, match=r"COCO is not in .*coco.npz"):
        load_coco(tmp_path)
    with pytest.raises(StorageError, match=r"Flickr8k is not in .*nowhere"):
        load_flickr8k(tmp_path / "nowhere")
    with pytest.raises(StorageError, match="photos is not in"):
        load_photos(tmp_path)


def test_photographs_that_are_not_there(tmp_path):
    rows = [{"file_name": f"{i}.jpg", "labels": ["dog"], "tags": []} for i in range(3)]
    (tmp_path / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "1.jpg").touch()
    with pytest.raises(StorageError, match=r"2 of 4(.|\n)*missing +0.jpg(.|\n)*missing +2.jpg"):
        load_photos(tmp_path)
