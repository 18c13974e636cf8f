"""Pixels of every kind of file: nothing half decoded, no surprise."""

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
from PIL import Image

from tagkin.errors import UnreadableImage
from tagkin.images import decode
from tests.images.synthetic import HAS_AVIF, chunk, coded, picture, psd, saved, tiff

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


def close(actual, expected, tolerance):
    assert actual.dtype == np.uint8
    assert actual.shape == expected.shape
    assert np.abs(actual.astype(float) - expected).max() <= tolerance


# --- modes and formats ---


@pytest.mark.parametrize(("form", "options"), LOSSLESS)
def test_lossless_rgb_comes_back_as_it_was(form, options):
    image = decode(saved(RGB, form, **options))
    np.testing.assert_array_equal(image, np.asarray(RGB))
    assert image.flags.writeable
    assert image.flags.c_contiguous


MODES = ["L", "1", "P", "LA", "RGBA", "PA", "CMYK", "YCbCr"]
NOT_HELD = {"PNG": ["PA", "CMYK", "YCbCr"], "BMP": ["LA", "PA", "CMYK", "YCbCr"]}


@pytest.mark.parametrize(
    ("mode", "form", "options"),
    [
        (mode, form, options)
        for mode in MODES
        for form, options in LOSSLESS
        if mode not in NOT_HELD.get(form, [])
    ],
)
def test_every_mode_in_every_format_that_holds_it(mode, form, options):
    made = with_alpha(RGB).convert(mode) if mode in ("LA", "RGBA", "PA") else RGB.convert(mode)
    data = saved(made, form, **options)
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
        decoded = decode(saved(palette, form, transparency=3))
        close(decoded, over_white(image), 1)
        assert (decoded == 255).all(axis=2).any()
    levels = bytes(range(0, 256, 16))
    decoded = decode(saved(RGB.quantize(16), "PNG", transparency=levels))
    index = np.asarray(RGB.quantize(16))
    colours = np.array(RGB.quantize(16).getpalette()).reshape(-1, 3)[index]
    alpha = np.frombuffer(levels, np.uint8)[index][..., None] / 255
    close(decoded, colours * alpha + 255 * (1 - alpha), 1)


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


def test_tiff_says_what_is_white():
    values = np.arange(0, 4096, dtype="<u2").reshape(64, 64)
    expected = np.rint(values / 4095 * 255)[..., None].repeat(3, axis=2)
    close(decode(tiff(values, 16, t281=4095)), expected, 0)
    inverted = decode(tiff(values, 16, t281=4095, t262=0))
    close(inverted, 255 - expected, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_numbers_of_32_bits_are_refused(dtype):
    with pytest.raises(UnreadableImage, match="numbers of 32 bits"):
        decode(saved(np.ones((20, 30), dtype), "TIFF"))


def test_16_bit_colour():
    """Pillow writes none, so the PNG is put together here."""
    deep = (picture().astype(np.uint16) * 257).astype(">u2")
    rows = b"".join(b"\0" + row.tobytes() for row in deep)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 48, 32, 16, 2, 0, 0, 0))
    data += chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    np.testing.assert_array_equal(decode(data), picture())


@pytest.mark.parametrize("order", ["<", ">"])
def test_16_bit_colours_one_after_the_other(order):
    """As Photoshop and scanners can write them; Pillow took the bytes of each for pixels."""
    deep = (picture().astype(np.uint16) * 257).astype(f"{order}u2")
    np.testing.assert_array_equal(decode(planes(deep, order, photometric=2)), picture())
    inks = np.concatenate([picture(), picture()[:, :, :1]], axis=2)
    deep = (inks.astype(np.uint16) * 257).astype(f"{order}u2")
    expected = Image.frombytes("CMYK", (48, 32), inks.tobytes()).convert("RGB")
    shown = decode(planes(deep, order, photometric=5))
    np.testing.assert_array_equal(shown, np.asarray(expected))


def planes(deep, order, photometric):
    """An uncompressed TIFF of 16 bits with a strip for each colour."""
    height, width, n = deep.shape
    behind = 8 + 2 + 12 * 10 + 4
    starts = [behind + 10 * n + i * 2 * height * width for i in range(n)]
    lists = struct.pack(f"{order}{n}H{n}I{n}I", *[16] * n, *starts, *[2 * height * width] * n)
    numbers = {256: width, 257: height, 259: 1, 262: photometric, 277: n, 278: height, 284: 2}
    entries = [(tag, 4, 1, value) for tag, value in numbers.items()]
    entries += [(258, 3, n, behind), (273, 4, n, behind + 2 * n), (279, 4, n, behind + 6 * n)]
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}IH", 8, len(entries))
    directory = b"".join(struct.pack(f"{order}HHII", *entry) for entry in sorted(entries))
    pixels = np.moveaxis(deep, 2, 0).tobytes()
    return head + directory + bytes(4) + lists + pixels


def test_one_grey_in_planes_is_a_grey():
    grey = picture()[:, :, 0]
    for bits, values in ((8, grey), (16, grey.astype("<u2") * 257)):
        for white in (0, 1):
            shown = decode(tiff(values, bits, t262=white, t284=2))
            np.testing.assert_array_equal(shown[:, :, 1], grey if white else 255 - grey)


def test_lab():
    image = decode(
        saved(Image.merge("LAB", [ALPHA, *[Image.new("L", ALPHA.size, 128)] * 2]), "TIFF")
    )
    assert (np.ptp(image, axis=2) <= 3).all()  # grey
    assert (np.diff(image[0, :, 0].astype(int)) >= 0).all()


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG", "TIFF", "MPO"])
def test_the_first_of_several_pictures(form):
    others = [Image.new("RGB", RGB.size, colour) for colour in ("blue", "green")]
    data = saved(Image.new("RGB", RGB.size, "red"), form, save_all=True, append_images=others)
    image = decode(data)
    assert image.shape == (32, 48, 3)
    assert np.abs(image.astype(int) - (255, 0, 0)).max() <= 3


@pytest.mark.parametrize("form", ["AVIF", "HEIF"])
def test_heif_and_avif_where_they_can_be_decoded(form):
    if form == "AVIF" and not HAS_AVIF:
        pytest.skip("this Pillow has no AVIF")
    data = coded(form, RGB)
    assert np.abs(decode(data) - np.asarray(RGB, float)).mean() < 8
    for cut in (12, 40, 200, len(data) // 2, len(data) - 60):
        with pytest.raises(UnreadableImage):
            decode(data[:cut])
    with pytest.raises(UnreadableImage, match="megapixels, above the cap"):
        decode(data, max_pixels=100)


@pytest.mark.parametrize("form", ["PSD", "JPEG 2000"])
def test_formats_of_archives_and_editors(form):
    lossless = {"irreversible": False}
    data = psd(np.asarray(RGB)) if form == "PSD" else saved(RGB, "JPEG2000", **lossless)
    np.testing.assert_array_equal(decode(data), np.asarray(RGB))
    for cut in (12, 40, 200, len(data) // 2):
        with pytest.raises(UnreadableImage):
            decode(data[:cut])
    with pytest.raises(UnreadableImage, match="megapixels, above the cap"):
        decode(data, max_pixels=100)


# --- smaller at once ---


def test_min_side_makes_a_jpeg_smaller_but_never_too_small():
    data = saved(picture(900, 640), "JPEG", quality=92)
    whole = decode(data)
    for min_side in (1, 79, 80, 81, 160, 161, 300, 320, 321, 640, 5000):
        image = decode(data, min_side=min_side)
        assert image.shape[0] >= min(min_side, 640)
        factor = 640 // image.shape[0]
        assert factor == max(f for f in (1, 2, 4, 8) if f == 1 or 640 // f >= min_side)
        boxes = whole[: 640 // factor * factor, : 900 // factor * factor].astype(float)
        boxes = boxes.reshape(640 // factor, factor, 900 // factor, factor, 3).mean(axis=(1, 3))
        height, width = boxes.shape[:2]
        assert np.abs(image[:height, :width] - boxes).mean() < 3
    assert decode(saved(picture(900, 640), "PNG"), min_side=80).shape == (640, 900, 3)


def test_min_side_with_orientation_and_grey():
    exif = Image.Exif()
    exif[0x0112] = 6
    data = saved(Image.fromarray(picture(800, 400)).convert("L"), "JPEG", exif=exif)
    assert decode(data, min_side=90).shape == (200, 100, 3)


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
        for first, images in enumerate(pool.map(work, range(4))):
            for a, b in zip(alone[first:] + alone[:first], images, strict=True):
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
