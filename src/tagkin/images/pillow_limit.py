"""Pillow's own limit on the size of pictures, set to tagkin's while pictures are decoded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from PIL import Image

__all__ = ["pillow_limit"]

_lock = threading.Lock()
_inside = 0
_before: int | None = None


@contextmanager
def pillow_limit(n_pixels: int) -> Iterator[None]:
    """While any thread is inside, Pillow rejects pictures of more than `n_pixels`.

    Pillow's limit, 179 megapixels by default, holds for the whole process. The first thread in
    sets it, and the last thread out restores it.
    """
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = Image.MAX_IMAGE_PIXELS
            Image.MAX_IMAGE_PIXELS = n_pixels // 2  # Pillow rejects more than twice as many
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                Image.MAX_IMAGE_PIXELS = _before
