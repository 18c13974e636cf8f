"""NUS-WIDE in synthetic folders: read as published, refused when damaged."""

import pytest

from experiments.datasets import load_nuswide
from tagkin.errors import StorageError
from tests.experiments.datasets.writers import NUS_IMAGES, nuswide, write


def test_labels_tags_and_split(tmp_path):
    """The third image has no label and is left out."""
    data = load_nuswide(nuswide(tmp_path))
    assert data.label_names == ["animal", "sky"]
    assert data.labels.toarray().tolist() == [[0, 1], [1, 1], [1, 0]]
    assert data.tag_names == ["nature", "sky", "blue"]
    assert data.tags.toarray().tolist() == [[0, 1, 1], [0, 0, 0], [1, 0, 1]]
    assert data.train.tolist() == [0, 1]
    assert data.test.tolist() == [2]
    assert data.files == [f"Flickr/{NUS_IMAGES[i]}.jpg" for i in (0, 1, 3)]


def test_images_need_not_be_there(tmp_path):
    assert load_nuswide(nuswide(tmp_path, images=False)).files is None


def test_archives_unpacked_without_their_folders(tmp_path):
    nuswide(tmp_path)
    (tmp_path / "ConceptsList/Concepts81.txt").rename(tmp_path / "Concepts81.txt")
    (tmp_path / "Groundtruth/AllLabels").rename(tmp_path / "AllLabels")
    assert load_nuswide(tmp_path).labels.sum() == 4


def test_images_that_have_left_flickr(tmp_path):
    (nuswide(tmp_path) / f"Flickr/{NUS_IMAGES[1]}.jpg").unlink()
    (tmp_path / f"Flickr/{NUS_IMAGES[2]}.jpg").unlink()  # it has no label: nobody asks for it
    data = load_nuswide(tmp_path)
    assert data.files == [f"Flickr/{NUS_IMAGES[i]}.jpg" for i in (0, 3)]
    assert data.labels.toarray().tolist() == [[0, 1], [1, 0]]
    assert data.tags.toarray().tolist() == [[0, 1, 1], [1, 0, 1]]
    assert (data.train.tolist(), data.test.tolist()) == ([0], [1])


@pytest.mark.parametrize(
    ("path", "content", "what"),
    [
        ("Groundtruth/AllLabels/Labels_sky.txt", "1\n1\n0\n", "3 lines where .* has 4"),
        ("Groundtruth/AllLabels/Labels_sky.txt", "1\n1\n-1130179\n0\n", "line 3 has '-1130179'"),
        ("ImageList/Imagelist.txt", "a_1.jpg\na_1.jpg\n", "listed twice"),
        ("ImageList/TestImagelist.txt", "zoo\\0009_1.jpg\n", "'zoo/0009_1.jpg', which .* has not"),
        ("ImageList/TestImagelist.txt", "actor\\0002_174174086.jpg\n", "in train already"),
        ("NUS_WID_Tags/All_Tags.txt", "2124494179 sky\n", "1 lines where .* has 4"),
        ("NUS_WID_Tags/All_Tags.txt", "2124494179 sky\n77\n1\n2\n", "line 2 is of photograph '77'"),
        ("NUS_WID_Tags/All_Tags.txt", "", "empty +NUS_WID_Tags/All_Tags.txt"),
        ("NUS_WID_Tags/Final_Tag_List.txt", "", "empty +NUS_WID_Tags/Final_Tag_List.txt"),
    ],
)
def test_damage(tmp_path, path, content, what):
    write(nuswide(tmp_path), path, content)
    with pytest.raises(StorageError, match=what):
        load_nuswide(tmp_path)


def test_missing_files_are_all_named(tmp_path):
    nuswide(tmp_path)
    missing = ["ImageList/TrainImagelist.txt", "Groundtruth/AllLabels/Labels_animal.txt"]
    for path in missing:
        (tmp_path / path).unlink()
    with pytest.raises(StorageError, match="2 of 8 files") as caught:
        load_nuswide(tmp_path)
    assert all(f"missing       {path}" in str(caught.value) for path in missing)
    assert "Groundtruth.zip" in str(caught.value)
