"""Photographs that ask for far more memory than they weigh."""

import numpy as np
import pytest
from PIL import Image

from tagkin.features import Backbone, Preprocessing, extract
from tagkin.images import UnreadableImage, decode
from tests.forking import needs_fork
from tests.hardening import hostile
from tests.hardening.limits import within
from tests.hardening.samples import photographs
from tests.images.synthetic import chunk

MB = 1 << 20


@needs_fork
@pytest.mark.parametrize(
    ("make", "bytes_per_pixel"),
    [
        (lambda: hostile.deep_tiff(7000, 7000), 2),
        (lambda: hostile.bomb_png(7000, 7000), 4),
        (lambda: hostile.small_bomb_png(7000, 7000), 1),
    ],
    ids=["a TIFF of 16 bits", "a PNG with alpha", "a PNG of bits"],
)
def test_no_more_memory_than_the_decoder_itself_needs(make, bytes_per_pixel):
    """49 megapixels in the memory that Pillow has them in, and a little beside it.

    They once took 29, 14 and 10 bytes per pixel.
    """
    data = make() + bytes(96_000)  # so large that it may be a photograph
    assert len(data) < 300_000
    decode(photographs()["tiff"])  # whatever is loaded at first use is no part of it

    def work():
        pixels = decode(data, min_side=384)
        assert min(pixels.shape[:2]) >= 384
        assert pixels.size < 10**7

    within(49_000_000 * bytes_per_pixel + 96 * MB, work)


class Means(Backbone):
    """A network that needs no memory: the mean colour."""

    name, dimension, fingerprint = "means", 3, "0"
    preprocessing = Preprocessing(8)

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        return batch.mean(axis=(1, 2)).astype(np.float32)


@needs_fork
def test_what_does_not_fit_costs_one_photograph(tmp_path):
    """Where the memory is limited, a huge photograph fails, by name, and the run goes on."""
    Image.new("RGB", (64, 48), "red").save(tmp_path / "a.png")
    # 576 MB in Pillow, far more than the memory that earlier tests have let go of
    colours = hostile.deflated((1 + 3 * 12_000) * 12_000)
    (tmp_path / "b.png").write_bytes(hostile.png(12_000, 12_000, 8, 2, colours))
    Image.new("RGB", (64, 48), "blue").save(tmp_path / "c.png")
    files = [str(tmp_path / name) for name in ("a.png", "b.png", "c.png")]

    def work():
        extraction = extract(files, Means())
        assert extraction.files == [files[0], files[2]]
        assert [failure.file for failure in extraction.failures] == [files[1]]
        assert "memory" in extraction.failures[0].reason
        np.testing.assert_allclose(extraction.features, [[255, 0, 0], [0, 0, 255]])

    within(200 * MB, work)


@pytest.mark.parametrize("make", [hostile.deep_tiff, hostile.small_bomb_png])
def test_no_photograph_is_that_plain(make):
    """Hundreds of megapixels in some kilobytes: they took seconds to decode."""
    data = make()
    assert len(data) < 50_000
    with pytest.raises(UnreadableImage, match=r"megapixels in a file of .* KB"):
        decode(data, min_side=224)


@needs_fork
def test_a_tile_takes_no_more_memory_than_its_picture():
    """libtiff takes memory for a whole tile: here 1.6 GB for 100 × 100 pixels."""
    entries = {256: (4, 1, 100), 257: (4, 1, 100), 322: (4, 1, 40_000), 323: (4, 1, 40_000)}
    entries |= {tag: (3, 1, value) for tag, value in ((258, 8), (259, 8), (262, 1), (277, 1))}
    pixels = hostile.deflated(1 << 20)
    start = 8 + 2 + 12 * (len(entries) + 2) + 4
    entries |= {324: (4, 1, start), 325: (4, 1, len(pixels))}
    data = hostile.tiff(entries, pixels)
    decode(photographs()["tiff"])  # whatever is loaded at first use is no part of it

    def work():
        with pytest.raises(UnreadableImage, match="in tiles of 40,000 × 40,000"):
            decode(data)

    within(64 * MB, work)


def test_a_file_of_many_empty_segments_is_refused_at_once():
    data = hostile.empty_segments(1_000_000)
    with pytest.raises(UnreadableImage, match="more than 16,384 segments before its picture"):
        decode(data)


def test_padding_is_no_way_around_it():
    with pytest.raises(UnreadableImage, match="segments"):
        decode(b"\xff\xd8" + b"\xff" * 10**6 + photographs()["jpeg"][2:])


def shredded_gif(n: int, piece: bytes) -> bytes:
    data = photographs()["gif"]
    at = 13 + 3 * (2 << (data[10] & 7))
    return data[:at] + piece * n + b"\0" + data[at:]


@pytest.mark.parametrize(
    "make",
    [
        lambda n: photographs()["png"][:33] + chunk(b"te_t", b"") * n,
        lambda n: shredded_gif(n, b"\x21\xff\x01a\0"),
        lambda n: shredded_gif(1, b"\x21\xfe" + b"\x01a" * n),
        lambda n: shredded_gif(n, b"\0"),
    ],
    ids=["PNG", "GIF of extensions", "GIF of one comment", "GIF of padding"],
)
def test_shredded_files_are_refused_at_once(make):
    """Pillow takes seconds and hundreds of bytes of memory for each few bytes of these."""
    with pytest.raises(UnreadableImage, match=r"more than 262,144 (chunks|blocks)"):
        decode(make(300_000))


@pytest.mark.parametrize("piece", [b"\x21\xff\x01a\0", b"\x21\xfe\x03abc\0", b"\0"])
def test_some_blocks_are_no_matter(piece):
    np.testing.assert_array_equal(decode(shredded_gif(50, piece)), decode(photographs()["gif"]))
