"""The pictures of a page, each embedded once."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from tagkin.annotator.suggestions import Kin
from tagkin.errors import UnreadableImage
from tagkin.images import encode_jpeg, read_bytes, thumbnail

__all__ = ["Picture", "Pictures", "data_uri", "jpeg", "picture", "pictures_of"]

_N_KIN = 6  # shown per suggestion; the others are summed up
_LARGE, _SMALL = 200, 104  # pixels of the longer side
_GREY, _DARKER, _WORD = (214, 214, 218), (168, 168, 176), "#6b6b70"


class Picture(NamedTuple):
    """A small copy of a photograph."""

    id: str
    src: str
    width: int
    height: int


class Pictures(NamedTuple):
    """Photographs by their files: large ones for cards, small ones for kin."""

    large: dict[str, Picture]
    small: dict[str, Picture]
    n_kin: int = _N_KIN


def pictures_of(files: Iterable[str], kin: Iterable[Sequence[Kin]]) -> Pictures:
    """Return small copies of the cards' photographs and kin; read each photograph once."""
    kin_files = (relative.file for relatives in kin for relative in relatives[:_N_KIN])
    return Pictures(_make_copies(files, _LARGE, "p"), _make_copies(kin_files, _SMALL, "k"))


def _make_copies(files: Iterable[str], size: int, prefix: str) -> dict[str, Picture]:
    copies = {}
    for k, file in enumerate(dict.fromkeys(files)):
        data, width, height = jpeg(file, size)
        copies[file] = Picture(f"{prefix}{k}", data_uri(data, "image/jpeg"), width, height)
    return copies


def data_uri(data: bytes, kind: str) -> str:
    """Return a file's content as a data URI."""
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def picture(file: str, size: int) -> np.ndarray:
    """Return a photograph with its longer side at most `size` pixels, (h, w, 3) of uint8.

    A grey square with a note replaces a missing or damaged photograph.
    """
    try:
        return thumbnail(read_bytes(file), size)
    except (UnreadableImage, OSError, ValueError):  # ValueError: a name with a zero byte
        return _placeholder(size, "unreadable" if os.path.exists(file) else "missing")


def jpeg(file: str, size: int) -> tuple[bytes, int, int]:
    """Return a small copy as a JPEG file, and its width and height."""
    pixels = picture(file, size)
    height, width = pixels.shape[:2]
    return encode_jpeg(pixels, quality=70), width, height


def _placeholder(size: int, word: str) -> np.ndarray:
    image = Image.new("RGB", (size, size), _GREY)
    near, far, width = round(0.36 * size), round(0.64 * size), max(1, size // 40)
    draw = ImageDraw.Draw(image)
    draw.line([(near, near), (far, far)], _DARKER, width)
    draw.line([(near, far), (far, near)], _DARKER, width)
    font = ImageFont.load_default(max(10, size // 8))
    draw.text((size / 2, 0.72 * size), word, fill=_WORD, font=font, anchor="mt")
    return np.asarray(image)
