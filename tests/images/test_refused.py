"""What is refused: files that are no photographs, too large, truncated or damaged."""

import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from PIL import Image

from tagkin.errors import InvalidInput, UnreadableImage
from tagkin.images import MAX_PIXELS, decode
from tests.images.synthetic import chunk, picture, saved, tiff

RGB = Image.fromarray(picture())


def refused(data, **options):
    with pytest.raises(UnreadableImage) as caught:
        decode(data, **options)
    assert isinstance(caught.value, InvalidInput)
    return str(caught.value)


def test_what_is_no_photograph_is_named():
    named = {
        b"": "empty file",
        b"%PDF-1.7\n%\xe2\xe3": "not an image tagkin reads (found PDF)",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n": "(found PostScript)",
        b"\xc5\xd0\xd3\xc6" + bytes(40): "(found PostScript)",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>": "(found SVG)",
        b"<?xml version='1.0'?>\n<!-- x --><svg width='1'/>": "(found SVG)",
        b"<!DOCTYPE html><p>404": "(found a web page)",
        b"404 not found\n": "(found text)",
        bytes(5000): "(found nothing but zeros)",
        b"\0\0\0\x18ftypmp42" + bytes(20): "(found a film)",
        b"PK\x03\x04" + bytes(20): "(found a ZIP archive)",
        b"\x07\x06\x05\x04": "(found unknown data)",
    }
    for data, reason in named.items():
        assert reason in refused(data)


def test_other_formats_of_pillow_are_not_tried():
    for form in ("PPM", "TGA", "ICO", "PCX", "EPS", "PDF", "DDS", "SGI", "MSP"):
        image = RGB.convert("1") if form == "MSP" else RGB
        try:
            data = saved(image, form)
        except (KeyError, OSError):
            continue
        assert "not an image tagkin reads" in refused(data)


def png_header(width, height):
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header


def test_bombs_are_refused_by_their_header():
    body = chunk(b"IDAT", zlib.compress(bytes(10**6)))
    assert refused(png_header(20000, 15000) + body) == "300 megapixels, above the cap of 256"
    assert "above the cap" in refused(png_header(2**31 - 1, 2**31 - 1) + body[:20])
    assert refused(png_header(100000, 100000)).startswith("truncated")  # no pixel to decode
    jpeg = bytearray(saved(RGB, "JPEG"))
    at = jpeg.index(b"\xff\xc0")
    jpeg[at + 5 : at + 9] = struct.pack(">HH", 65000, 65000)
    assert "megapixels, above the cap" in refused(bytes(jpeg))
    assert "megapixels, above the cap" in refused(bytes(jpeg), min_side=64)
    values = np.zeros((1, 1), np.uint8)
    assert "above the cap" in refused(tiff(values, 8, t256=200_000, t257=200_000))
    gif = bytearray(saved(RGB, "GIF"))
    gif[6:10] = struct.pack("<HH", 65535, 65535)
    assert "above the cap" in refused(bytes(gif))
    bmp = bytearray(saved(RGB, "BMP"))
    bmp[18:26] = struct.pack("<ii", 100000, 100000)
    assert "above the cap" in refused(bytes(bmp))


def test_the_cap_can_be_set_and_is_met_exactly():
    data = saved(RGB, "PNG")
    assert decode(data, max_pixels=48 * 32).shape == (32, 48, 3)
    assert "above the cap" in refused(data, max_pixels=48 * 32 - 1)
    assert MAX_PIXELS > 200_000_000  # telephones have that many


def test_a_picture_above_pillows_cap_and_under_ours_is_not_a_bomb():
    """Pillow warns at 89 megapixels and refuses 179; the header alone is asked here."""
    jpeg = bytearray(saved(RGB, "JPEG"))
    at = jpeg.index(b"\xff\xc0")
    jpeg[at + 5 : at + 9] = struct.pack(">HH", 12000, 16000)
    assert refused(bytes(jpeg), min_side=64).endswith("cannot hold 16,000 × 12,000 pixels")
    # with as many bytes as the flattest picture of that size has, grey is what is in it
    assert decode(bytes(jpeg) + bytes([1]) * 400_000, min_side=64).shape == (1500, 2000, 3)


def test_a_tiff_above_pillows_cap_is_refused():
    data = tiff(np.zeros((1, 1), np.uint8), 8, t256=192_000_000, t257=1) + bytes(400_000)
    assert refused(data).startswith("too many pixels: ")


def test_padding_that_decoders_forgive():
    data = saved(RGB, "JPEG")
    padded = data[:20] + b"\xff\x00" + data[20:]
    np.testing.assert_array_equal(decode(padded), decode(data))
    np.testing.assert_array_equal(decode(padded + bytes(100)), decode(data))


def test_the_emptiest_jpeg_is_not_taken_for_truncated():
    for mode in ("L", "RGB"):
        for options in ({}, {"progressive": True}, {"optimize": True, "quality": 1}):
            data = saved(Image.new(mode, (3000, 2000)), "JPEG", **options)
            assert decode(data, min_side=100).shape == (250, 375, 3)


FORMS = [
    ("JPEG", {}),
    ("JPEG", {"progressive": True}),
    ("PNG", {}),
    ("WEBP", {"lossless": True}),
    ("WEBP", {"quality": 80}),
    ("TIFF", {}),
    ("TIFF", {"compression": "tiff_lzw"}),
    ("TIFF", {"compression": "jpeg"}),
    ("GIF", {}),
    ("BMP", {}),
]


@pytest.mark.parametrize(("form", "options"), FORMS)
def test_truncated_anywhere_it_is_whole_or_refused(form, options):
    data = saved(picture(40, 40), form, **options)
    whole = decode(data)
    reasons = set()
    for cut in sorted({*range(0, 60), *range(0, len(data), 37), *range(len(data) - 40, len(data))}):
        try:
            image = decode(data[:cut])
        except UnreadableImage as error:
            reasons.add(str(error))
        else:
            assert cut > len(data) * 0.5
            np.testing.assert_array_equal(image, whole)
    assert any("truncated" in reason for reason in reasons)


def test_a_truncated_file_is_named():
    webp = saved(picture(640, 480), "WEBP")
    assert refused(webp[:5000]).startswith("truncated or damaged WebP file (")
    jpeg = saved(picture(640, 480), "JPEG")
    assert refused(jpeg[:9000]).startswith("truncated or damaged JPEG file (")
    assert refused(jpeg[:9000] + bytes(20000)) == ("truncated: the last 20 KB of 29 KB are zeros")
    np.testing.assert_array_equal(decode(jpeg + bytes(20000)), decode(jpeg))


def test_damaged_files_give_pixels_or_a_reason():
    """Bytes changed, cut out and put in, in every format: never another error."""
    rng = np.random.default_rng(5)
    reasons = []
    for form, options in [*FORMS, ("MPO", {})]:
        data = np.frombuffer(saved(picture(24, 16), form, **options), np.uint8)
        for _ in range(60):
            changed = data.copy()
            at = rng.integers(0, min(len(data), 700), rng.integers(1, 9))
            changed[at] = rng.integers(0, 256, len(at))
            try:
                image = decode(changed.tobytes(), max_pixels=10**7)
            except UnreadableImage as error:
                reasons.append(str(error))
            else:
                assert image.dtype == np.uint8
                assert image.ndim == 3
                assert image.shape[2] == 3
    assert all(reasons)
    assert len(reasons) > 50


def test_random_bytes_behind_every_signature():
    rng = np.random.default_rng(6)
    reasons = []
    heads = [saved(picture(8, 8), form)[:n] for form, _ in FORMS[2:] for n in (4, 12, 16, 40)]
    for head in [b"", b"\xff\xd8\xff\xe0", b"\0\0\0\x18ftypavif", b"\0\0\0\x18ftypheic", *heads]:
        for size in (0, 1, 30, 500):
            try:
                decode(head + rng.bytes(size), max_pixels=10**7)
            except UnreadableImage as error:
                reasons.append(str(error))
    assert all(reasons)
    assert len(reasons) > 50


def test_pillow_logs_nothing_to_a_program_without_logging(tmp_path):
    file = tmp_path / "many-samples.tif"
    file.write_bytes(tiff(np.zeros((4, 4), np.uint8), 8, t277=9))  # samples per pixel
    code = (
        "import sys, tagkin.images\n"
        "try:\n    tagkin.images.decode(open(sys.argv[1], 'rb').read())\n"
        "except tagkin.errors.UnreadableImage:\n    print('refused')"
    )
    command = [sys.executable, "-c", code, file]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("refused\n", "")
