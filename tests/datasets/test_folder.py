"""Anyone's own images and features."""

import json

import numpy as np
import pytest

from tagkin.datasets import load_folder
from tagkin.errors import InvalidInput, StorageError

ROWS = [
    {"file_name": "a.jpg", "labels": ["dog"], "tags": ["Rex"], "split": "train"},
    {"file_name": "b/c.jpg", "labels": ["dog", "sea"], "tags": [], "split": "test"},
    {"file_name": "d.jpg", "labels": [], "tags": ["rex", "beach"], "split": "val"},
]
CSV = """\
file_name,labels,tags,split
a.jpg,dog,Rex,train
b/c.jpg,dog;sea,,test
d.jpg,,rex;beach,val
"""


def write(folder, name="metadata.jsonl", content=None, images=True):
    if content is None:
        content = CSV if name.endswith(".csv") else "\n".join(map(json.dumps, ROWS))
    (folder / name).write_text(content)
    for row in ROWS if images else ():
        (folder / row["file_name"]).parent.mkdir(exist_ok=True)
        (folder / row["file_name"]).touch()
    return folder


@pytest.mark.parametrize("name", ["metadata.jsonl", "metadata.csv", "tags.csv"])
def test_a_folder_of_images(tmp_path, name):
    data = load_folder(write(tmp_path, name), name="mine")
    assert data.name == "mine"
    assert data.files == ["a.jpg", "b/c.jpg", "d.jpg"]
    assert data.label_names == ["dog", "sea"]
    assert data.labels.toarray().tolist() == [[1, 0], [1, 1], [0, 0]]
    assert data.tag_names == ["beach", "Rex"]
    assert data.tags.toarray().tolist() == [[0, 1], [0, 0], [1, 1]]
    assert (data.train.tolist(), data.test.tolist()) == ([0, 2], [1])


def test_features(tmp_path):
    """They are not read, only mapped."""
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.save(write(tmp_path, images=False) / "features.npy", X)
    data = load_folder(tmp_path / "features.npy")
    assert isinstance(data.features, np.memmap)
    assert data.features.tolist() == X.tolist()
    assert data.files is None
    assert data.name == "features"


def test_a_table_elsewhere(tmp_path):
    (tmp_path / "photos").mkdir()
    write(tmp_path / "photos", "notes.csv")
    table = write(tmp_path, "mine.csv", images=False) / "mine.csv"
    assert len(load_folder(tmp_path / "photos", table)) == 3


def test_only_labels_or_only_tags(tmp_path):
    content = "file_name,{}\n" + "".join(f"{r['file_name']},x;y\n" for r in ROWS)
    data = load_folder(write(tmp_path, "metadata.csv", content.format("labels")))
    assert data.tags is None
    assert data.label_names == ["x", "y"]
    data = load_folder(write(tmp_path, "metadata.csv", content.format("tags")))
    assert data.label_names == data.tag_names == ["x", "y"]
    assert (data.labels != data.tags).nnz == 0


def test_one_row_for_each_image_and_label(tmp_path):
    content = "file_name,label,split\na.jpg,dog,train\nb/c.jpg,dog,test\na.jpg,sea,train\n"
    data = load_folder(write(tmp_path, "metadata.csv", content))
    assert data.labels.toarray().tolist() == [[1, 1], [1, 0]]
    assert data.test.tolist() == [1]


def test_without_a_split_every_fifth_image_is_a_test_image(tmp_path):
    rows = "".join(f"{n},x\n" for n in range(12))
    np.save(tmp_path / "features.npy", np.ones((12, 2)))
    (tmp_path / "metadata.csv").write_text(f"file_name,tags\n{rows}")
    assert load_folder(tmp_path / "features.npy").test.tolist() == [4, 9]


def test_no_table(tmp_path):
    with pytest.raises(StorageError, match=r"looked for metadata.jsonl, metadata.csv"):
        load_folder(tmp_path)


def test_missing_images(tmp_path):
    (write(tmp_path) / "b" / "c.jpg").unlink()
    with pytest.raises(StorageError, match=r"1 of 3 files(.|\n)*missing +b/c.jpg"):
        load_folder(tmp_path)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("file_name,caption\na.jpg,x\n", "no column tags or labels or tag or label"),
        ("file_name,tags,split\na.jpg,x,both\n", "the split of a.jpg is 'both'; expected one of"),
        ("file_name,tags,split\na.jpg,x,\n", "the split of a.jpg is ''"),
        ("file_name,tag,split\na.jpg,x,test\na.jpg,y,train\n", "in train and in test"),
        ("file_name,tags\n", "names no image"),
        ("name,tags\na.jpg,x\n", "no column file_name"),
    ],
)
def test_a_table_that_cannot_be_used(tmp_path, content, what):
    with pytest.raises(InvalidInput, match=what):
        load_folder(write(tmp_path, "metadata.csv", content))


def test_features_that_cannot_be_used(tmp_path):
    path = write(tmp_path, images=False) / "features.npy"
    with pytest.raises(StorageError, match="not there"):
        load_folder(path)
    np.save(path, np.ones((2, 4)))
    with pytest.raises(InvalidInput, match=r"2 rows where .* has 3 images"):
        load_folder(path)
    np.save(path, np.ones(3))
    with pytest.raises(ValueError, match="2D"):
        load_folder(path)
    path.write_bytes(b"not an array")
    with pytest.raises(StorageError, match="cannot be read as an array"):
        load_folder(path)
