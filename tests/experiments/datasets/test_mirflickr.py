"""MIRFlickr in synthetic folders: read as published, refused when damaged."""

import pytest

from experiments.datasets import MIRFLICKR_LABELS, load_mirflickr
from tagkin.errors import StorageError
from tests.experiments.datasets.writers import mirflickr, write


def test_labels_tags_and_split(tmp_path):
    data = load_mirflickr(mirflickr(tmp_path))
    assert len(MIRFLICKR_LABELS) == 18
    assert data.label_names == list(MIRFLICKR_LABELS)
    labels = data.labels.toarray()
    assert labels[:, data.label_names.index("sky")].tolist() == [1, 1, 1, 1]
    assert labels[:, data.label_names.index("dog")].tolist() == [0, 0, 1, 0]
    assert labels[:, data.label_names.index("sea")].tolist() == [0, 1, 0, 0]
    assert data.tag_names == ["common", "t1", "t3"]
    assert data.tags.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [1, 0, 1], [1, 0, 0]]
    assert data.train.tolist() == [0, 2]
    assert data.test.tolist() == [1, 3]
    assert data.files == [f"mirflickr/im{n}.jpg" for n in range(1, 5)]
    assert data.features is None


def test_images_need_not_be_there(tmp_path):
    assert load_mirflickr(mirflickr(tmp_path, images=False)).files is None


def test_an_image_without_tags(tmp_path):
    write(mirflickr(tmp_path), "mirflickr/meta/tags/tags3.txt", "")
    assert load_mirflickr(tmp_path).tags[[2]].nnz == 0


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("mirflickr/meta/tags/tags2.txt", r"missing +mirflickr/meta/tags/tags2.txt"),
        ("mirflickr/im3.jpg", r"missing +mirflickr/im3.jpg"),
        ("mirflickr/doc/common_tags.txt", r"missing +mirflickr/doc/common_tags.txt"),
        ("mirflickr25k_annotations_v080/sea.txt", r"missing +.*/sea.txt"),
    ],
)
def test_a_missing_file(tmp_path, path, what):
    (mirflickr(tmp_path) / path).unlink()
    with pytest.raises(StorageError, match=what) as caught:
        load_mirflickr(tmp_path)
    assert "mirflickr25k.zip" in str(caught.value)


@pytest.mark.parametrize(
    ("path", "content", "what"),
    [
        ("mirflickr25k_annotations_v080/sea.txt", "2\n5\n", "'5', not the number of an image"),
        ("mirflickr25k_annotations_v080/sea.txt", "2\n\n3\n", "'', not the number of an image"),
        ("mirflickr25k_annotations_v080/sea.txt", "<html>", "not the number of an image"),
        ("mirflickr25k_annotations_v080/sea.txt", "", "empty +.*sea.txt"),
        ("mirflickr/doc/common_tags.txt", "sky 12\nsea\n", "line 2 is not a tag and a number"),
    ],
)
def test_damage(tmp_path, path, content, what):
    write(mirflickr(tmp_path), path, content)
    with pytest.raises(StorageError, match=what):
        load_mirflickr(tmp_path)


def test_where_nothing_is_there_one_sentence_says_so(tmp_path):
    with pytest.raises(StorageError) as caught:
        load_mirflickr(tmp_path)
    assert str(caught.value) == (
        f"MIRFlickr-25k is not in {tmp_path}. Set TAGKIN_DATA to the folder that has it, or get it "
        "(mirflickr25k.zip, mirflickr25k_annotations_v080.zip) from LIACS Medialab, Leiden "
        "University (press.liacs.nl/mirflickr)."
    )


def test_very_many_missing_files_are_counted(tmp_path):
    mirflickr(tmp_path, n=2)
    write(tmp_path, "mirflickr/meta/tags/tags200.txt", "")
    with pytest.raises(StorageError, match="197 of 219 files") as caught:
        load_mirflickr(tmp_path)
    assert "and 179 more files" in str(caught.value)
