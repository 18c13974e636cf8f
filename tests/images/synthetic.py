"""Small synthetic photographs for the tests."""

import io
from typing import Any

import numpy as np
from PIL import Image, features

HAS_AVIF = "avif" in features.modules and features.check("avif")


def picture(width: int = 48, height: int = 32, seed: int = 0) -> np.ndarray:
    """Smooth colours with a corner that tells all eight orientations apart."""
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([255 * x / width, 255 * y / height, 128 + 60 * np.sin((x + 2 * y) / 9)], -1)
    pixels[: height // 4, : width // 3] = (250, 20, 20)
    noise = np.random.default_rng(seed).integers(-3, 4, pixels.shape)
    return np.clip(pixels + noise, 0, 255).astype(np.uint8)


def saved(image: Any, form: str, **options: Any) -> bytes:
    """The bytes of a file with that image, or those pixels."""
    if isinstance(image, np.ndarray):
        image = Image.fromarray(image)
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()
