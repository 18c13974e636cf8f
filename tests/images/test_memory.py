"""What decoding takes of the memory, over all threads, and for one photograph."""

import threading

import numpy as np
import pytest
from PIL import Image

from tagkin.images import UnreadableImage, pixels
from tagkin.images.memory import DecodingMemory
from tagkin.images.pixels import rgb_pixels
from tagkin.machine import available_memory

PATIENCE = 300.0  # seconds


class Decoding(threading.Thread):
    """A thread that takes memory until it is told to give it back."""

    def __init__(self, memory: DecodingMemory, n_bytes: int):
        super().__init__(daemon=True)
        self.memory, self.n_bytes = memory, n_bytes
        self.has_it, self.may_end = threading.Event(), threading.Event()
        self.start()

    def run(self) -> None:
        with self.memory.reserve(self.n_bytes):
            self.has_it.set()
            self.may_end.wait(PATIENCE)

    def end(self) -> None:
        self.may_end.set()
        self.join(PATIENCE)


def test_photographs_wait_for_memory():
    memory = DecodingMemory(100)
    first, second = Decoding(memory, 60), Decoding(memory, 40)
    assert first.has_it.wait(PATIENCE)
    assert second.has_it.wait(PATIENCE)
    third = Decoding(memory, 50)
    assert not third.has_it.wait(0.05)
    first.end()
    assert third.has_it.wait(PATIENCE)
    second.end()
    third.end()


def test_a_huge_one_goes_alone_and_is_not_overtaken_for_ever():
    memory = DecodingMemory(100)
    small = Decoding(memory, 10)
    assert small.has_it.wait(PATIENCE)
    huge = Decoding(memory, 5000)
    assert not huge.has_it.wait(0.05)
    late = Decoding(memory, 10)  # there is room for it, but the huge one came first
    assert not late.has_it.wait(0.05)
    small.end()
    assert huge.has_it.wait(PATIENCE)
    assert not late.has_it.wait(0.05)
    huge.end()
    assert late.has_it.wait(PATIENCE)
    late.end()


def test_memory_comes_back_after_a_failure():
    memory = DecodingMemory(100)
    with pytest.raises(OSError, match="damaged"), memory.reserve(100):
        raise OSError("damaged")
    with memory.reserve(100):
        pass


def test_more_than_the_machine_has_is_refused():
    memory = DecodingMemory(100, available=1000)
    with memory.reserve(1000):
        pass
    with pytest.raises(UnreadableImage, match="takes 5 GB of memory; this machine has 1 KB"):
        memory.reserve(5 * 10**9).__enter__()


def test_the_machine_says_how_much_it_has():
    memory = available_memory()
    assert memory is None or memory > 1 << 20


def image_of(mode: str) -> Image.Image:
    """An image of 53 × 37 pixels, with all that its mode can have."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 256, (37, 53, 4)).astype(np.uint8)
    if mode == "I;16":
        image = Image.fromarray(values[..., 0].astype(np.uint16) * 257)
        image.info["transparency"] = 257 * 7
        return image
    if mode == "transparent P":
        image = Image.fromarray(values[..., :3]).convert("P")
        image.info["transparency"] = 3
        return image
    return Image.fromarray(values).convert(mode)


MODES = "1,L,LA,P,RGB,RGBA,RGBa,RGBX,CMYK,YCbCr,LAB,HSV,I;16,transparent P"


@pytest.mark.parametrize("mode", MODES.split(","))
def test_strips_change_nothing(mode, monkeypatch):
    image = image_of(mode)
    whole = rgb_pixels(image)
    for n_pixels in (53 * 5, 1):
        with monkeypatch.context() as patch:
            patch.setattr(pixels, "STRIP", n_pixels)
            np.testing.assert_array_equal(rgb_pixels(image), whole)
    # a smaller one is the mean of squares, as Pillow makes it of the whole
    smaller = np.asarray(Image.fromarray(whole).reduce(4))
    np.testing.assert_array_equal(rgb_pixels(image, 4), smaller)
    monkeypatch.setattr(pixels, "STRIP", 53 * 9)
    np.testing.assert_array_equal(rgb_pixels(image, 4), smaller)
