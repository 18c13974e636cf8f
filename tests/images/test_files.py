"""Files as they are met: gone, closed, pipes, too large; and pixels made small and written."""

import hashlib
import os

import numpy as np
import pytest
from PIL import Image

from tagkin.errors import InvalidInput, UnreadableImage
from tagkin.images import (
    MAX_BYTES,
    Failure,
    content_digest,
    decode,
    encode_jpeg,
    read_bytes,
    thumbnail,
)
from tests.images.synthetic import picture, saved
from tests.privileges import without_privileges


def reason(call, *arguments):
    with pytest.raises(UnreadableImage) as caught:
        call(*arguments)
    return str(caught.value)


def test_reading(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(b"abc")
    assert read_bytes(path) == read_bytes(str(path)) == b"abc"
    assert read_bytes(path, max_bytes=3) == b"abc"
    assert reason(read_bytes, path, 2) == "3 bytes, above the cap of 2 bytes"
    (tmp_path / "link").symlink_to(path)
    assert read_bytes(tmp_path / "link") == b"abc"
    path.write_bytes(b"")
    assert read_bytes(path) == b""


def test_what_cannot_be_read_and_why(tmp_path):
    (tmp_path / "dead").symlink_to(tmp_path / "gone")
    (tmp_path / "self").symlink_to(tmp_path / "self")
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(MAX_BYTES + 1)  # takes no space
    for call in (read_bytes, lambda path: thumbnail(read_bytes(path), 10)):
        assert reason(call, tmp_path / "gone") == "there is no such file"
        assert reason(call, tmp_path / "dead") == "there is no such file"
        assert reason(call, tmp_path / "self") == "a link that leads back to itself"
        assert reason(call, tmp_path) == "a folder, not a file"
        assert reason(call, tmp_path / "pipe").startswith("not a regular file")
        assert reason(call, "/dev/zero").startswith("not a regular file")
        assert reason(call, tmp_path / "huge") == "1.07 GB, above the cap of 1.07 GB"
        assert reason(call, "a\0b").startswith("not a possible file name")
        assert "name too long" in reason(call, tmp_path / ("x" * 300))


def test_a_closed_file(open_folder):
    path = open_folder / "a.jpg"
    path.write_bytes(b"abc")
    path.chmod(0)
    with without_privileges():
        assert reason(read_bytes, path) == "permission denied"


def test_a_file_in_a_folder_that_may_not_be_entered(open_folder):
    (open_folder / "shut").mkdir()
    (open_folder / "shut" / "a.jpg").write_bytes(b"abc")
    (open_folder / "shut").chmod(0o444)
    with without_privileges():
        assert reason(read_bytes, open_folder / "shut" / "a.jpg") == "permission denied"


def test_content_digest():
    assert content_digest(b"abc") == hashlib.sha256(b"abc").hexdigest()
    assert len(content_digest(b"")) == 64


def test_a_failure_is_plain_data():
    failure = Failure("a.jpg", "vanished")
    assert failure == Failure("a.jpg", "vanished")
    with pytest.raises(AttributeError):
        failure.reason = "x"


@pytest.mark.parametrize(
    ("shape", "size", "expected"),
    [
        ((600, 900), 90, (60, 90)),
        ((900, 600), 90, (90, 60)),
        ((600, 900), 2000, (600, 900)),
        ((3, 900), 90, (1, 90)),
        ((600, 900), 1, (1, 1)),
    ],
)
@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_thumbnails(form, shape, size, expected, tmp_path):
    path = tmp_path / "a"
    path.write_bytes(saved(picture(shape[1], shape[0]), form))
    small = thumbnail(path.read_bytes(), size)
    assert small.shape == (*expected, 3)
    assert small.dtype == np.uint8
    whole = Image.fromarray(decode(path.read_bytes()))
    best = np.asarray(whole.resize(expected[::-1], Image.Resampling.LANCZOS), float)
    assert np.abs(small - best).mean() < 6


def test_thumbnails_are_upright(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 8
    path = tmp_path / "a.jpg"
    path.write_bytes(saved(picture(300, 200), "JPEG", exif=exif))
    assert thumbnail(path.read_bytes(), 60).shape == (60, 40, 3)


def test_a_thumbnail_has_a_size(tmp_path):
    (tmp_path / "a.jpg").write_bytes(saved(picture(), "JPEG"))
    with pytest.raises(InvalidInput, match="size is 0"):
        thumbnail(tmp_path / "a.jpg", 0)


def test_encoding():
    pixels = picture()
    assert np.abs(decode(encode_jpeg(pixels, quality=95)) - pixels.astype(float)).mean() < 6
    assert len(encode_jpeg(pixels, quality=30)) < len(encode_jpeg(pixels, quality=95))
    assert encode_jpeg(pixels) == encode_jpeg(pixels[:, ::-1][:, ::-1])
    assert b"Exif" not in encode_jpeg(pixels)
    for wrong in (pixels.astype(float), pixels[..., 0], pixels[..., :2], pixels[:0]):
        with pytest.raises(InvalidInput, match="expected uint8 in the shape"):
            encode_jpeg(wrong)
