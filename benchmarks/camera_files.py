"""JPEG files as cameras write them: EXIF first, and a preview inside."""

import io
import struct
from typing import Literal

import numpy as np
from PIL import Image

Place = Literal["mpf", "trailer"]
TAKEN = "2024:05:06 07:08:09"
_FULL_HD = 0x010002  # the type of a large thumbnail in MPF


def camera_file(
    pixels: np.ndarray,
    preview: np.ndarray | None,
    place: Place = "mpf",
    *,
    quality: int = 92,
    n_entries: int = 1,
    **exif: str | int,
) -> bytes:
    """A JPEG file with a preview in one of the places where cameras put it.

    The index of pictures names the preview in `n_entries` entries. `exif` are the values of
    "maker", "software", "changed", "orientation" and "rendered".
    """
    body = _jpeg(pixels, quality)
    small = b"" if preview is None else _jpeg(preview, 90)
    start = b"\xff\xd8" + _exif_segment(exif)
    if place == "mpf" and small:
        # the index comes before the picture, and its offsets count from its own header
        header = len(start) + 8
        length = len(start) + len(_mpf_segment(0, 0, 0, n_entries)) + len(body) - 2
        start += _mpf_segment(length, len(small), length - header, n_entries)
    return start + body[2:] + small


def _jpeg(pixels: np.ndarray, quality: int) -> bytes:
    """A JPEG file without the header of JFIF."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=quality, subsampling="4:2:2")
    data = file.getvalue()
    (length,) = struct.unpack(">H", data[4:6])
    return data[:2] + data[4 + length :]


def _exif_segment(values: dict[str, str | int]) -> bytes:
    exif = Image.Exif()
    exif[0x010F] = values.get("maker", "Kin")
    exif[0x0110] = "K-1"
    exif[0x0131] = values.get("software", "Ver.1.00")
    exif[0x0132] = values.get("changed", TAKEN)
    exif[0x0112] = values.get("orientation", 1)
    exif.get_ifd(0x8769)[0x9003] = TAKEN
    exif.get_ifd(0x8769)[0xA401] = values.get("rendered", 0)
    content = exif.tobytes()
    return b"\xff\xe1" + struct.pack(">H", len(content) + 2) + content


def _mpf_segment(n_bytes: int, n_preview: int, offset: int, n_entries: int) -> bytes:
    """The index of pictures: the photograph and a large thumbnail."""
    entries = struct.pack("<III4x", 0x030000, n_bytes, 0)
    entries += struct.pack("<III4x", _FULL_HD, n_preview, offset) * n_entries
    tags = struct.pack("<HHI4s", 0xB000, 7, 4, b"0100")
    tags += struct.pack("<HHII", 0xB001, 4, 1, 1 + n_entries)
    tags += struct.pack("<HHII", 0xB002, 7, len(entries), 8 + 2 + 36 + 4)
    content = b"MPF\0II*\0" + struct.pack("<IH", 8, 3) + tags + struct.pack("<I", 0) + entries
    return b"\xff\xe2" + struct.pack(">H", len(content) + 2) + content
