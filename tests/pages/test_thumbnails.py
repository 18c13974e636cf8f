"""Small pictures, also of what is not there."""

import io

import numpy as np
import pytest
from PIL import Image

from tagkin.pages.pictures import jpeg, picture


def test_a_picture_keeps_its_shape(files):
    assert picture(files[1], 90).shape == (60, 90, 3)
    assert picture(files[0], 130).shape == (130, 90, 3)


@pytest.mark.parametrize("name", ["gone.jpg", "damaged.jpg", "folder", "zero\x00byte", "\ud800"])
def test_what_cannot_be_read_is_a_grey_square(tmp_path, name):
    (tmp_path / "damaged.jpg").write_bytes(b"\xff\xd8\xff\xe0 not a picture")
    (tmp_path / "folder").mkdir()
    thumbnail = picture(f"{tmp_path}/{name}", 80)
    assert thumbnail.shape == (80, 80, 3)
    assert np.ptp(thumbnail.astype(int), axis=2).max() < 12  # grey
    assert len(np.unique(thumbnail.reshape(-1, 3), axis=0)) > 1  # with a cross


def test_a_grey_square_says_what_is_wrong(tmp_path):
    (tmp_path / "damaged.jpg").write_bytes(b"\xff\xd8\xff\xe0 not a picture")
    gone, other, damaged = (picture(f"{tmp_path}/{n}.jpg", 160) for n in ("gone", "x", "damaged"))
    assert (gone == other).all()
    assert (gone[:100] == damaged[:100]).all()
    assert (gone[100:] != damaged[100:]).any()


def test_jpeg_says_its_size(files):
    data, width, height = jpeg(files[1], 60)
    with Image.open(io.BytesIO(data)) as image:
        assert image.size == (width, height) == (60, 40)
