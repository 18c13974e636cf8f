"""Pixels of every kind of file, and what is refused: nothing half decoded, no surprise."""

import io
import struct
import subprocess
import sys
import threading
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image, ImageOps

from tagkin.errors import InvalidInput, UnreadableImage
from tagkin.images import MAX_PIXELS, decode
from tagkin.images.formats import format_of_file
from tagkin.images.raw import RAW
from tests.images.raw_writer import dng
from tests.images.synthetic import HAS_AVIF, picture, saved

RGB = Image.fromarray(picture())
ALPHA = Image.fromarray(np.tile(np.linspace(0, 255, 48).astype(np.uint8), (32, 1)))
LOSSLESS = [
    ("PNG", {}),
    ("PNG", {"optimize": True}),
    ("WEBP", {"lossless": True}),
    ("TIFF", {}),
    ("TIFF", {"compression": "tiff_lzw"}),
    ("TIFF", {"compression": "tiff_adobe_deflate", "big_tiff": True}),
    ("BMP", {}),
]


def with_alpha(image):
    image = image.convert("RGBA")
    image.putalpha(ALPHA)
    return image


def over_white(image):
    """The picture that a person sees on paper, in real numbers."""
    pixels = np.asarray(image.convert("RGBA"), float)
    alpha = pixels[..., 3:] / 255
    return pixels[..., :3] * alpha + 255 * (1 - alpha)


def close(found, expected, tolerance):
    assert found.dtype == np.uint8
    assert found.shape == expected.shape
    assert np.abs(found.astype(float) - expected).max() <= tolerance


# --- modes and formats ---


@pytest.mark.parametrize(("form", "options"), LOSSLESS)
def test_lossless_rgb_comes_back_as_it_was(form, options):
    found = decode(saved(RGB, form, **options))
    np.testing.assert_array_equal(found, np.asarray(RGB))
    assert found.flags.writeable
    assert found.flags.c_contiguous


@pytest.mark.parametrize(("form", "options"), LOSSLESS)
@pytest.mark.parametrize("mode", ["L", "1", "P", "LA", "RGBA", "PA", "CMYK", "YCbCr"])
def test_every_mode_in_every_format_that_holds_it(mode, form, options):
    made = with_alpha(RGB).convert(mode) if mode in ("LA", "RGBA", "PA") else RGB.convert(mode)
    try:
        data = saved(made, form, **options)
    except (OSError, KeyError, SystemError):
        pytest.skip(f"{form} does not hold {mode}")
    has_alpha = "A" in mode and form != "BMP"  # there the fourth byte has no meaning
    expected = over_white(made) if has_alpha else np.asarray(made.convert("RGB"))
    close(decode(data), expected, 1 + 2 * (mode == "YCbCr"))


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}])
def test_jpeg(options):
    close(decode(saved(RGB, "JPEG", quality=98, **options)), np.asarray(RGB), 90)
    assert np.abs(decode(saved(RGB, "JPEG", quality=98)) - np.asarray(RGB, float)).mean() < 4


def test_grey_and_cmyk_jpeg():
    grey = decode(saved(RGB.convert("L"), "JPEG", quality=98))
    close(grey, np.asarray(RGB.convert("L").convert("RGB")), 12)
    # Pillow writes CMYK inverted, as Adobe does
    data = saved(RGB.convert("CMYK"), "JPEG", quality=100, subsampling=0)
    assert b"Adobe" in data
    close(decode(data), np.asarray(RGB), 12)


def test_transparent_palette_in_bytes_and_as_one_colour():
    palette = RGB.quantize(16)
    palette.info["transparency"] = 3
    for form in ("PNG", "GIF"):
        image = Image.open(io.BytesIO(saved(palette, form, transparency=3)))
        found = decode(saved(palette, form, transparency=3))
        close(found, over_white(image), 1)
        assert (found == 255).all(axis=2).any()
    levels = bytes(range(0, 256, 16))
    found = decode(saved(RGB.quantize(16), "PNG", transparency=levels))
    index = np.asarray(RGB.quantize(16))
    colours = np.array(RGB.quantize(16).getpalette()).reshape(-1, 3)[index]
    alpha = np.frombuffer(levels, np.uint8)[index][..., None] / 255
    close(found, colours * alpha + 255 * (1 - alpha), 1)


@pytest.mark.parametrize("mode", ["L", "RGB", "1"])
def test_a_transparent_colour_without_palette_is_white(mode):
    image = Image.new(mode, (4, 2), 0)
    data = saved(image, "PNG", transparency=(0, 0, 0) if mode == "RGB" else 0)
    assert (decode(data) == 255).all()


def test_16_bit_grey_is_scaled_by_the_bits_of_the_file():
    deep = np.arange(0, 65536, 13, dtype=np.uint16)[:5000].reshape(50, 100)
    expected = np.rint(deep / 257)[..., None].repeat(3, axis=2)
    for form in ("PNG", "TIFF"):
        close(decode(saved(deep, form)), expected, 0)
    big_endian = saved(Image.frombytes("I;16B", (100, 50), deep.astype(">u2").tobytes()), "TIFF")
    assert big_endian[:2] == b"MM" or big_endian[:2] == b"II"
    close(decode(big_endian), expected, 0)


def tiff(values, bits, **tags):
    """An uncompressed little-endian TIFF with one strip, of those tags."""
    height, width = values.shape
    numbers = {256: width, 257: height, 258: bits, 259: 1, 262: 1, 273: 0, 277: 1, 278: height}
    numbers[279] = values.nbytes
    numbers |= {int(tag.removeprefix("t")): value for tag, value in tags.items()}
    numbers[273] = 8 + 2 + 12 * len(numbers) + 4
    entries = b"".join(struct.pack("<HHII", t, 4, 1, v) for t, v in sorted(numbers.items()))
    directory = struct.pack("<H", len(numbers)) + entries + struct.pack("<I", 0)
    return b"II*\0" + struct.pack("<I", 8) + directory + values.tobytes()


def test_tiff_says_what_is_white():
    values = np.arange(0, 4096, dtype="<u2").reshape(64, 64)
    expected = np.rint(values / 4095 * 255)[..., None].repeat(3, axis=2)
    close(decode(tiff(values, 16, t281=4095)), expected, 0)
    inverted = decode(tiff(values, 16, t281=4095, t262=0))
    close(inverted, 255 - expected, 0)


@pytest.mark.parametrize(
    ("values", "white"),
    [
        (np.linspace(0, 1, 600), 1),
        (np.linspace(0, 255, 600), 255),
        (np.linspace(0, 60000, 600), 65535),
    ],
)
def test_floats_and_32_bits_are_scaled_by_what_they_hold(values, white):
    grid = values.reshape(20, 30)
    expected = np.rint(grid / white * 255)[..., None].repeat(3, axis=2)
    close(decode(saved(grid.astype(np.float32), "TIFF")), expected, 1)
    if white > 1:
        whole = grid.astype(np.int32)
        expected = np.rint(whole / white * 255)[..., None].repeat(3, axis=2)
        close(decode(saved(whole, "TIFF")), expected, 0)


def test_numbers_out_of_all_ranges_are_spread_and_what_is_no_number_is_survived():
    grid = np.linspace(-5, 1e9, 600).reshape(20, 30)
    found = decode(saved(grid.astype(np.float32), "TIFF"))
    assert found.min() == 0
    assert found.max() == 255
    assert (np.diff(found[..., 0].ravel().astype(int)) >= 0).all()
    grid = np.linspace(0, 1, 600).reshape(20, 30).astype(np.float32)
    grid[0, :3] = np.nan, np.inf, -np.inf
    assert (decode(saved(grid, "TIFF"))[0, :3] == 0).all()
    for constant in (-7, 0, 2**31 - 1):
        decode(saved(np.full((3, 4), constant, np.int32), "TIFF"))
    decode(saved(np.array([[-3e38, 3e38]], np.float32), "TIFF"))


def test_16_bit_colour():
    """Pillow writes none, so the PNG is put together here."""
    deep = (picture().astype(np.uint16) * 257).astype(">u2")
    rows = b"".join(b"\0" + row.tobytes() for row in deep)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 48, 32, 16, 2, 0, 0, 0))
    data += chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    np.testing.assert_array_equal(decode(data), picture())


def chunk(kind, content):
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


def test_lab():
    found = decode(
        saved(Image.merge("LAB", [ALPHA, *[Image.new("L", ALPHA.size, 128)] * 2]), "TIFF")
    )
    assert (np.ptp(found, axis=2) <= 3).all()  # grey
    assert (np.diff(found[0, :, 0].astype(int)) >= 0).all()


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG", "TIFF", "MPO"])
def test_the_first_of_several_pictures(form):
    others = [Image.new("RGB", RGB.size, colour) for colour in ("blue", "green")]
    data = saved(Image.new("RGB", RGB.size, "red"), form, save_all=True, append_images=others)
    found = decode(data)
    assert found.shape == (32, 48, 3)
    assert np.abs(found.astype(int) - (255, 0, 0)).max() <= 3


@pytest.mark.parametrize(("form", "package"), [("AVIF", "PIL"), ("HEIF", "pillow_heif")])
def test_heif_and_avif_where_they_can_be_decoded(form, package):
    pytest.importorskip(package)
    if form == "AVIF" and not HAS_AVIF:
        pytest.skip("this Pillow has no AVIF")
    data = coded(form, RGB)
    assert np.abs(decode(data) - np.asarray(RGB, float)).mean() < 8
    for cut in (12, 40, 200, len(data) // 2, len(data) - 60):
        with pytest.raises(UnreadableImage):
            decode(data[:cut])
    with pytest.raises(UnreadableImage, match="megapixels, above the cap"):
        decode(data, max_pixels=100)


def coded(form, image, **options):
    if form == "HEIF":
        import pillow_heif

        out = io.BytesIO()
        pillow_heif.from_pillow(image).save(out, quality=95, **options)
        return out.getvalue()
    return saved(image, form, quality=95, **options)


def test_heif_without_the_extra_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(UnreadableImage, match=r"pip install pillow-heif"):
        decode(b"\0\0\0\x18ftypheic" + bytes(40))


# --- raw files ---

MOSAIC = np.full((128, 192), 20_000, np.uint16)


def upright(orientation):
    turned = {1: RGB, 6: RGB.transpose(Image.Transpose.ROTATE_270)}[orientation]
    return np.asarray(turned, float)


@pytest.mark.parametrize("orientation", [1, 6])
def test_raw_files_are_seen_through_their_preview(orientation):
    pytest.importorskip("rawpy")
    data = dng(MOSAIC, saved(RGB, "JPEG", quality=95), orientation=orientation)
    found = decode(data)
    assert found.shape == upright(orientation).shape
    assert np.abs(found - upright(orientation)).mean() < 8
    with pytest.raises(UnreadableImage, match="megapixels, above the cap"):
        decode(data, max_pixels=100)


@pytest.mark.parametrize("orientation", [1, 6])
def test_raw_files_without_a_preview_or_with_a_small_one_are_developed(orientation):
    pytest.importorskip("rawpy")
    shape = (64, 96, 3) if orientation == 1 else (96, 64, 3)
    none = dng(MOSAIC, orientation=orientation)
    small = dng(MOSAIC, saved(RGB, "JPEG"), orientation=orientation)
    for data, min_side in ((none, 0), (none, 40), (small, 40)):
        found = decode(data, min_side=min_side)
        assert found.shape == shape
        assert found.std(axis=(0, 1)).max() < 3  # the mosaic is of one colour
    assert decode(small, min_side=30).shape == upright(orientation).shape
    tiny = dng(MOSAIC[:32, :64], saved(RGB, "JPEG"), orientation=orientation)
    assert decode(tiny, min_side=40).shape == upright(orientation).shape  # larger than developed


def test_damaged_raw_files():
    pytest.importorskip("rawpy")
    for head in (b"IIU\0", b"FUJIFILMCCD-RAW ", b"II*\0\x10\0\0\0CR\2\0", b"....ftypcrx "):
        with pytest.raises(UnreadableImage, match="a raw file of a camera that cannot be read"):
            decode(head + bytes(300))
    jpeg = saved(RGB, "JPEG")
    whole = dng(MOSAIC, jpeg)
    for n in (4, 200, len(jpeg) - 300):
        damaged = whole.replace(jpeg[n:], bytes(len(jpeg) - n))
        assert decode(damaged).shape == (64, 96, 3)  # what the sensor saw is still there


def test_a_raw_file_without_the_extra_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "rawpy", None)
    for data in (dng(MOSAIC), b"....ftypcrx " + bytes(40)):
        with pytest.raises(UnreadableImage, match=r"a raw file .* pip install rawpy"):
            decode(data)


def test_raw_files_are_known_by_their_content():
    assert format_of_file(dng(MOSAIC)) == format_of_file(dng(MOSAIC, saved(RGB, "JPEG"))) == RAW
    # not by their version, either: a mosaic below the first directory is enough
    assert format_of_file(dng(MOSAIC).replace(b"\x12\xc6\1\0", b"\x11\xc6\1\0")) == RAW
    scans = saved(RGB, "TIFF", tiffinfo={330: (8,)})  # points to a directory that makes no sense
    for data in (saved(RGB, "TIFF"), scans, b"II*\0", b"II*\0\xff\xff\xff\xff"):
        assert format_of_file(data) == "TIFF"


# --- orientation ---


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
def test_orientation_is_applied(form, orientation):
    if form == "AVIF" and not HAS_AVIF:
        pytest.skip("this Pillow has no AVIF")
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"WEBP": {"lossless": True}, "JPEG": {"quality": 95}}.get(form, {})
    found = decode(saved(RGB, form, exif=exif, **options))
    upright = np.asarray(RGB)
    expected = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: np.rot90(upright, -1),
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(upright),
    }[orientation]
    assert found.shape == expected.shape
    assert np.abs(found - expected.astype(float)).mean() < 8


def test_orientation_as_pillow_has_it_and_odd_values_are_upright():
    for orientation in (0, 1, 6, 8, 9, 255):
        exif = Image.Exif()
        exif[0x0112] = orientation
        data = saved(RGB, "PNG", exif=exif)
        expected = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        np.testing.assert_array_equal(decode(data), np.asarray(expected))


def test_damaged_tags_of_tiff_do_not_cost_the_photograph():
    values = np.arange(12, dtype=np.uint8).reshape(3, 4)
    for tags in ({"t700": 10**6}, {"t34665": 10**6}, {"t700": 7, "t274": 6}, {"t33723": 2**32 - 1}):
        assert decode(tiff(values, 8, **tags)).size == 36


@pytest.mark.parametrize(
    "exif", [b"Exif\0\0", b"Exif\0\0MM\0*\0\0\0\x08\xff\xff", b"Exif\0\0garbage"]
)
def test_damaged_exif_does_not_cost_the_photograph(exif):
    for form in ("JPEG", "PNG", "WEBP"):
        assert decode(saved(RGB, form, exif=exif)).shape == (32, 48, 3)


# --- smaller at once ---


def test_min_side_makes_a_jpeg_smaller_but_never_too_small():
    data = saved(picture(900, 640), "JPEG", quality=92)
    whole = decode(data)
    for min_side in (1, 79, 80, 81, 160, 161, 300, 320, 321, 640, 5000):
        found = decode(data, min_side=min_side)
        assert found.shape[0] >= min(min_side, 640)
        factor = 640 // found.shape[0]
        assert factor == max(f for f in (1, 2, 4, 8) if f == 1 or 640 // f >= min_side)
        boxes = whole[: 640 // factor * factor, : 900 // factor * factor].astype(float)
        boxes = boxes.reshape(640 // factor, factor, 900 // factor, factor, 3).mean(axis=(1, 3))
        height, width = boxes.shape[:2]
        assert np.abs(found[:height, :width] - boxes).mean() < 3
    assert decode(saved(picture(900, 640), "PNG"), min_side=80).shape == (640, 900, 3)


def test_min_side_with_orientation_and_grey():
    exif = Image.Exif()
    exif[0x0112] = 6
    data = saved(Image.fromarray(picture(800, 400)).convert("L"), "JPEG", exif=exif)
    assert decode(data, min_side=90).shape == (200, 100, 3)


# --- refused ---


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
        b"8BPS\0\1" + bytes(20): "(found a Photoshop file)",
        b"\0\0\0\x18ftypmp42" + bytes(20): "(found a film)",
        b"PK\x03\x04" + bytes(20): "(found a ZIP archive)",
        b"\x07\x06\x05\x04": "(found unknown data)",
    }
    for data, reason in named.items():
        assert reason in refused(data)


def test_other_formats_of_pillow_are_not_tried():
    for form in ("PPM", "TGA", "ICO", "PCX", "JPEG2000", "EPS", "PDF", "DDS", "SGI", "MSP"):
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
            found = decode(data[:cut])
        except UnreadableImage as error:
            reasons.add(str(error))
        else:
            assert cut > len(data) * 0.5
            np.testing.assert_array_equal(found, whole)
    assert any("truncated" in reason for reason in reasons)


def test_a_truncated_file_says_how_much_is_there():
    webp = saved(picture(640, 480), "WEBP")
    assert refused(webp[:5000]).startswith("truncated after 5 KB of ")
    jpeg = saved(picture(640, 480), "JPEG")
    assert refused(jpeg[:9000]) == (
        "truncated: the JPEG file ends after 9 KB, before its picture does"
    )
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
                found = decode(changed.tobytes(), max_pixels=10**7)
            except UnreadableImage as error:
                reasons.append(str(error))
            else:
                assert found.dtype == np.uint8
                assert found.ndim == 3
                assert found.shape[2] == 3
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


# --- quiet, in threads, the same every time ---


def test_no_warning_leaks_and_none_becomes_an_error(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)  # more give a warning of a bomb
    data = [
        saved(RGB, "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x02\x01\x12\0\x03\0\xff\xff\xff"),
        saved(RGB.quantize(8), "PNG", transparency=bytes(8)),
        saved(RGB, "GIF"),
        tiff(np.zeros((2, 2), np.uint8), 8, t700=10**6),
    ]
    for action in ("error", "always"):
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter(action)
            for item in data:
                decode(item)
        assert shown == []


def test_threads_get_the_same_and_leave_the_warnings_as_they_were():
    files = [saved(picture(60, 40, seed), form) for seed in range(6) for form in ("JPEG", "PNG")]
    alone = [decode(data, min_side=16) for data in files]
    before = list(warnings.filters)
    barrier = threading.Barrier(4)

    def work(first):
        barrier.wait()
        return [decode(data, min_side=16) for data in files[first:] + files[:first]]

    with ThreadPoolExecutor(4) as pool:
        for first, found in enumerate(pool.map(work, range(4))):
            for a, b in zip(alone[first:] + alone[:first], found, strict=True):
                np.testing.assert_array_equal(a, b)
    assert list(warnings.filters) == before


def test_nothing_of_pillows_is_changed_for_others():
    code = (
        "from PIL import Image, ImageFile; before = Image.MAX_IMAGE_PIXELS;"
        "import tagkin.images; from tests.images.synthetic import HAS_AVIF, picture, saved;"
        "tagkin.images.decode(saved(picture(), 'JPEG'));"
        "print(Image.MAX_IMAGE_PIXELS == before, ImageFile.LOAD_TRUNCATED_IMAGES)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
