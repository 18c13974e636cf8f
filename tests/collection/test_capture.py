"""When and by which camera: EXIF as Pillow writes it, in every container, and times in names."""

import io
from datetime import datetime

import pytest
from PIL import Image

from tagkin.collection import Capture, Shot, read_capture, read_metadata

TAKEN = datetime(2024, 1, 31, 15, 45, 7)


def photograph(path, taken="2024:01:31 15:45:07", make="Canon", model="EOS R5", **more):
    exif = Image.Exif()
    exif[0x010F], exif[0x0110] = make, model
    exif[0x8769] = ({} if taken is None else {0x9003: taken}) | more.get("below", {})
    written = io.BytesIO()
    Image.new("RGB", (8, 8), "teal").save(written, "JPEG", exif=exif)
    with Image.open(written) as image:
        image.save(path, exif=image.getexif())
    return path


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp", "a.tif"])
def test_exif_of_every_container(tmp_path, name):
    capture = read_capture(photograph(tmp_path / name))
    assert capture == Capture(TAKEN, "Canon EOS R5")


def test_two_cameras_of_one_model_have_numbers(tmp_path):
    path = photograph(tmp_path / "a.jpg", below={0xA431: "012345"})
    assert read_capture(path) == Capture(TAKEN, "Canon EOS R5 012345")


@pytest.mark.parametrize("taken", [None, "", "0000:00:00 00:00:00", "    :  :     :  :  ", "noon"])
def test_a_clock_that_was_never_set_says_nothing(tmp_path, taken):
    assert read_capture(photograph(tmp_path / "a.jpg", taken)) is None


def test_the_time_of_the_last_change_is_not_the_time_of_capture(tmp_path):
    exif = Image.Exif()
    exif[0x0132] = "2024:01:31 15:45:07"
    Image.new("RGB", (8, 8)).save(tmp_path / "a.jpg", exif=exif)
    assert read_capture(tmp_path / "a.jpg") is None


@pytest.mark.parametrize(
    "name",
    [
        "IMG_20240131_154507.jpg",
        "PXL_20240131_154507123.jpg",
        "2024-01-31 15.45.07.jpg",
        "IMG_20240131_154507_BURST002_COVER.jpg",
        "20240131154507.jpg",
    ],
)
def test_a_time_in_the_name_serves_where_there_is_no_exif(tmp_path, name):
    Image.new("RGB", (8, 8)).save(tmp_path / name)
    assert read_capture(tmp_path / name) == Capture(TAKEN, "")
    assert read_capture(tmp_path / "not-there" / name) == Capture(TAKEN, "")
    photograph(tmp_path / name, "2020:02:02 02:02:02")
    assert read_capture(tmp_path / name).time == datetime(2020, 2, 2, 2, 2, 2)


@pytest.mark.parametrize("name", ["IMG_0001.jpg", "000000581929.jpg", "20249931_154507.jpg"])
def test_other_digits_are_no_time(tmp_path, name):
    Image.new("RGB", (8, 8)).save(tmp_path / name)
    assert read_capture(tmp_path / name) is None


@pytest.mark.parametrize("content", [b"", b"\xff\xd8\xff\xe1\x00\x10Exif\0\0II*\0", b"text"])
def test_a_damaged_file_has_no_time(tmp_path, content):
    (tmp_path / "a.jpg").write_bytes(content)
    assert read_capture(tmp_path / "a.jpg") is None
    assert read_capture(tmp_path) is None


def test_lens_and_stars_of_one_pass(tmp_path):
    path = photograph(tmp_path / "a.jpg", below={0xA434: "50mm", 0xA431: "7"})
    assert read_metadata(path).shot == Shot(TAKEN, "Canon EOS R5", "7", "50mm", None)
    sidecar = tmp_path / "a.jpg.xmp"
    for stars, expected in (('xmp:Rating="4"', 4), ("<xmp:Rating>-1</xmp:Rating>", -1)):
        sidecar.write_text(f"<x {stars}/>")
        assert read_metadata(path).shot.rating == expected
    sidecar.write_text('<x xmp:Rating="9"/>')
    assert read_metadata(path).shot.rating is None


@pytest.mark.parametrize(("stars", "expected"), [(3, 3), (0, None), (99, None)])
def test_stars_in_exif(tmp_path, stars, expected):
    exif = Image.Exif()
    exif[0x4746] = stars
    Image.new("RGB", (8, 8)).save(tmp_path / "a.jpg", exif=exif)
    assert read_metadata(tmp_path / "a.jpg").shot.rating == expected


def test_endless_names_are_cut(tmp_path):
    path = photograph(tmp_path / "a.jpg", model="x" * 5000, below={0xA434: "y" * 5000})
    shot = read_metadata(path).shot
    assert len(shot.camera) < 200
    assert len(shot.lens) == 100
