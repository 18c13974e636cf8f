"""Previews that cameras write into files: which stand for the photograph, and which do not."""

import io
import tracemalloc

import numpy as np
import pytest
from PIL import Image

from benchmarks.camera_files import camera_file
from tagkin.images import decode, decode_preview
from tests.collection.xmp_samples import packet, with_xmp

RED, BLUE = (200, 30, 30), (30, 30, 200)
SIDE = 96


def picture(width: int, height: int, colour: tuple[int, int, int] = RED) -> np.ndarray:
    """A colour, and a white corner at the top left."""
    pixels = np.full((height, width, 3), colour, np.uint8)
    pixels[: height // 4, : width // 4] = 255
    return pixels


def colour_of(pixels: np.ndarray) -> str:
    red, _, blue = pixels[pixels.shape[0] // 2, pixels.shape[1] // 2].tolist()
    return "red" if red > blue else "blue"


FULL, SMALL = picture(600, 400), picture(150, 100, BLUE)


@pytest.mark.parametrize("place", ["mpf", "trailer"])
def test_a_preview_is_found_wherever_cameras_put_it(place):
    preview = decode_preview(camera_file(FULL, SMALL, place), min_side=SIDE)
    assert preview is not None
    pixels, camera = preview
    assert (pixels.shape, colour_of(pixels), camera) == ((100, 150, 3), "blue", "Kin K-1")
    assert colour_of(decode(camera_file(FULL, SMALL, place))) == "red"  # only where it is asked for


def test_a_preview_is_turned_as_its_photograph():
    data = camera_file(FULL, SMALL, orientation=6)
    pixels, _ = decode_preview(data, min_side=SIDE)
    full = decode(data)
    assert (pixels.shape, full.shape) == ((150, 100, 3), (600, 400, 3))
    for turned in (pixels, full):  # the corner is at the top right
        assert turned[2, -3].min() > 230
        assert turned[2, 2].min() < 100


@pytest.mark.parametrize(
    ("small", "exif"),
    [
        (None, {}),
        (picture(90, 60, BLUE), {}),  # too small
        (picture(150, 112, BLUE), {}),  # of other proportions
        (picture(450, 300, BLUE), {}),  # hardly smaller
        (SMALL, {"maker": ""}),
        (SMALL, {"software": "Adobe Photoshop 25.0"}),
        (SMALL, {"changed": "2025:01:01 00:00:00"}),
        (SMALL, {"rendered": 8}),  # a portrait of a phone, with a computed blur
    ],
)
@pytest.mark.parametrize("place", ["mpf", "trailer"])
def test_what_cannot_stand_for_the_photograph_is_left(small, exif, place):
    assert decode_preview(camera_file(FULL, small, place, **exif), min_side=SIDE) is None


def test_a_file_that_a_program_wrote_is_decoded_in_full():
    exif = Image.Exif()
    exif[0x010F] = "Kin"
    saved = io.BytesIO()
    Image.fromarray(FULL).save(saved, "JPEG", exif=exif)  # which writes a header of JFIF
    trailing = camera_file(FULL, SMALL, "trailer")[len(camera_file(FULL, None)) :]
    assert decode_preview(saved.getvalue() + trailing, min_side=SIDE) is None


@pytest.mark.parametrize("name", ["GDepth:Format", "depthBlurEffect:Portrait", "GImage:Data"])
def test_a_computed_picture_is_decoded_in_full(name):
    data = camera_file(FULL, SMALL)
    assert decode_preview(with_xmp(data, packet("<a:b xmlns:a='urn:a'/>")), min_side=SIDE)
    xmp = packet(f"<{name} xmlns:{name.split(':')[0]}='urn:x'/>")
    assert decode_preview(with_xmp(data, xmp), min_side=SIDE) is None


def test_another_picture_in_the_index_is_no_preview():
    """As the map of brightness that phones write, which has the photograph's proportions."""
    data = camera_file(FULL, SMALL)
    entry = (0x010002).to_bytes(4, "little")
    assert data.count(entry) == 1
    assert decode_preview(data.replace(entry, bytes(4)), min_side=SIDE) is None


def test_many_entries_for_one_preview_take_the_memory_of_one():
    noise = np.random.default_rng(0).integers(0, 256, (400, 600, 3), np.uint8)
    data = camera_file(np.repeat(np.repeat(FULL, 2, 0), 2, 1), noise, n_entries=4000)
    assert decode_preview(data, min_side=SIDE) is not None
    tracemalloc.start()
    try:
        decode_preview(data, min_side=SIDE)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * len(data) + 4 * noise.nbytes


@pytest.mark.parametrize("place", ["mpf", "trailer"])
def test_damage_anywhere_gives_no_preview_or_a_whole_one(place):
    data = camera_file(FULL, SMALL, place)
    for length in range(0, len(data), 7):
        preview = decode_preview(data[:length], min_side=SIDE)
        assert preview is None or preview[0].shape == (100, 150, 3)
    rng = np.random.default_rng(0)
    for _ in range(300):
        broken = bytearray(data)
        for at in rng.integers(0, len(data), 4):
            broken[at] = rng.integers(256)
        preview = decode_preview(bytes(broken), min_side=SIDE)
        assert preview is None or min(preview[0].shape[:2]) >= SIDE


def test_a_file_that_is_no_jpeg_has_no_preview():
    saved = io.BytesIO()
    Image.fromarray(FULL).save(saved, "PNG")
    assert decode_preview(saved.getvalue(), min_side=SIDE) is None
    assert decode_preview(b"", min_side=SIDE) is None
