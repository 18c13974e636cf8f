"""Small synthetic photographs for the tests."""

import io
import struct
import zlib
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


def coded(form: str, image: Any, **options: Any) -> bytes:
    """The bytes of a file, also in HEIF, which Pillow does not write."""
    if form == "HEIF":
        import pillow_heif

        out = io.BytesIO()
        pillow_heif.from_pillow(image).save(out, quality=95, **options)
        return out.getvalue()
    return saved(image, form, quality=95, **options)


def tiff(values: np.ndarray, bits: int, **tags: int) -> bytes:
    """An uncompressed little-endian TIFF with one strip, of those tags."""
    height, width = values.shape
    numbers = {256: width, 257: height, 258: bits, 259: 1, 262: 1, 273: 0, 277: 1, 278: height}
    numbers[279] = values.nbytes
    numbers |= {int(tag.removeprefix("t")): value for tag, value in tags.items()}
    numbers[273] = 8 + 2 + 12 * len(numbers) + 4
    entries = b"".join(struct.pack("<HHII", t, 4, 1, v) for t, v in sorted(numbers.items()))
    directory = struct.pack("<H", len(numbers)) + entries + struct.pack("<I", 0)
    return b"II*\0" + struct.pack("<I", 8) + directory + values.tobytes()


def psd(pixels: np.ndarray, resources: bytes = b"") -> bytes:
    """A Photoshop file without layers: its resources, and the picture in planes."""
    height, width, n_channels = pixels.shape
    head = b"8BPS" + struct.pack(">H6xHIIHH", 1, n_channels, height, width, 8, 3)
    sections = struct.pack(">II", 0, len(resources)) + resources + struct.pack(">I", 0)
    return head + sections + struct.pack(">H", 0) + np.moveaxis(pixels, -1, 0).tobytes()


def resource(kind: int, content: bytes) -> bytes:
    """One of Photoshop's image resources."""
    head = b"8BIM" + struct.pack(">HHI", kind, 0, len(content))
    return head + content + bytes(len(content) % 2)


def chunk(kind: bytes, content: bytes) -> bytes:
    """A piece of a PNG file."""
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)
