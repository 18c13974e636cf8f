"""ESP-Game and IAPR-TC12 in synthetic folders: read as published, refused when damaged."""

import pytest

from experiments.datasets import load_espgame, load_iaprtc12
from tagkin.errors import StorageError
from tests.experiments.datasets.writers import hvecs, tagprop, write

READERS = {"iaprtc12": load_iaprtc12, "espgame": load_espgame}


@pytest.mark.parametrize("name", READERS)
def test_labels_and_split(tmp_path, name):
    data = READERS[name](tagprop(tmp_path, name))
    assert data.name == name
    assert data.label_names == ["sky", "man", "tree"]
    assert data.labels.toarray().argmax(axis=1).tolist() == [0, 1, 2, 0, 1, 2]
    assert data.labels.sum() == 6
    assert data.train.tolist() == [0, 1, 2, 3]
    assert data.test.tolist() == [4, 5]
    assert data.tags is None
    assert data.files is None
    assert data.features is None


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("iaprtc12", "iaprtc12/images/00/{}.jpg"),
        ("iaprtc12", "images/00/{}.jpg"),
        ("espgame", "ESP-ImageSet/images/{}.jpg"),
        ("espgame", "images/{}.jpg"),
    ],
)
def test_images_are_found_where_their_archives_put_them(tmp_path, name, place):
    tagprop(tmp_path, name)
    for number in range(6):
        write(tmp_path, place.format(number), b"")
    files = READERS[name](tmp_path).files
    assert files == [place.format(number) for number in range(6)]
    assert all((tmp_path / file).is_file() for file in files)


def test_some_images_are_missing(tmp_path):
    tagprop(tmp_path)
    for number in (0, 1, 2, 5):
        write(tmp_path, f"images/00/{number}.jpg", b"")
    with pytest.raises(StorageError, match=r"missing +images/00/3.jpg") as caught:
        load_iaprtc12(tmp_path)
    assert "2 of 11 files" in str(caught.value)
    assert "iaprtc12.tgz" in str(caught.value)


def test_everything_that_is_missing_is_named_at_once(tmp_path):
    tagprop(tmp_path)
    (tmp_path / "iaprtc12_train_list.txt").unlink()
    (tmp_path / "iaprtc12_test_annot.hvecs").unlink()
    with pytest.raises(StorageError) as caught:
        load_iaprtc12(tmp_path)
    lines = str(caught.value).splitlines()
    assert "2 of 5 files missing or damaged" in lines[0]
    assert [line.split() for line in lines[1:6]] == [
        ["as", "expected", "iaprtc12_dictionary.txt"],
        ["missing", "iaprtc12_train_list.txt"],
        ["as", "expected", "iaprtc12_train_annot.hvecs"],
        ["as", "expected", "iaprtc12_test_list.txt"],
        ["missing", "iaprtc12_test_annot.hvecs"],
    ]
    assert "iaprtc12.20091111.tar.bz2" in str(caught.value)


@pytest.mark.parametrize(
    ("path", "content", "what"),
    [
        ("espgame_train_annot.hvecs", hvecs([[1, 0, 0]] * 4)[:-3], "cut off"),
        (
            "espgame_train_annot.hvecs",
            hvecs([[1, 0, 0]] * 3),
            "3 images where .*list.txt has 4",
        ),
        ("espgame_test_annot.hvecs", hvecs([[1, 0]] * 2), "2 labels where .*dictionary.txt has 3"),
        ("espgame_test_annot.hvecs", hvecs([[1, 0, 0], [7, 0, 0]]), "has 7 where 0 or 1"),
        ("espgame_test_list.txt", "00/4\n", "has 2 images where espgame_test_list.txt has 1"),
        ("espgame_test_list.txt", "\n", "empty +espgame_test_list.txt"),
        ("espgame_dictionary.txt", "sky\nman\n", "3 labels where .*dictionary.txt has 2"),
        ("espgame_train_annot.hvecs", b"", "0 bytes are not a whole number"),
    ],
)
def test_damage(tmp_path, path, content, what):
    tagprop(tmp_path, "espgame")
    write(tmp_path, path, content)
    with pytest.raises(StorageError, match=what):
        load_espgame(tmp_path)


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "data").touch()
    with pytest.raises(StorageError, match="no such folder"):
        load_espgame(tmp_path / "data")
