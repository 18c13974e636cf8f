"""Write small raw files: DNG, with or without a preview."""

import io
import struct

import numpy as np
from PIL import Image

_FORMS = {"B": 1, "s": 2, "H": 3, "I": 4, "i": 9}
Entry = tuple[int, str, tuple]


def dng(
    mosaic: np.ndarray, preview: bytes = b"", *, orientation: int = 1, xmp: bytes = b""
) -> bytes:
    """A DNG file with a colour mosaic, (h, w) of uint16, and perhaps a JPEG as its preview."""
    height, width = mosaic.shape
    pixels = mosaic.astype("<u2").tobytes()
    main: list[Entry] = [
        (254, "I", (0,)),  # the picture itself
        (256, "I", (width,)),
        (257, "I", (height,)),
        (258, "H", (16,)),
        (259, "H", (1,)),  # not compressed
        (262, "H", (32803,)),  # a colour mosaic
        (271, "s", (b"Maker\0",)),
        (272, "s", (b"Camera\0",)),
        (273, "I", ("pixels",)),
        (274, "H", (orientation,)),
        (277, "H", (1,)),
        (278, "I", (height,)),
        (279, "I", (len(pixels),)),
        *([(330, "I", ("preview directory",))] if preview else []),
        (33421, "H", (2, 2)),
        (33422, "B", (0, 1, 1, 2)),  # red, green, green, blue
        *([(700, "B", tuple(xmp))] if xmp else []),
        (50706, "B", (1, 4, 0, 0)),
        (50708, "s", (b"Maker Camera\0",)),
        (50717, "I", (65535,)),  # white
    ]
    wide, high = Image.open(io.BytesIO(preview)).size if preview else (0, 0)
    small: list[Entry] = [
        (254, "I", (1,)),
        (256, "I", (wide,)),
        (257, "I", (high,)),
        (258, "H", (8, 8, 8)),
        (259, "H", (7,)),  # JPEG
        (262, "H", (6,)),
        (273, "I", ("preview",)),
        (277, "H", (3,)),
        (278, "I", (high,)),
        (279, "I", (len(preview),)),
    ]
    at = {"pixels": 8, "preview": 8 + len(pixels)}
    start = 8 + len(pixels) + len(preview)
    start += start % 2
    second = _directory(small, start, at)
    at["preview directory"] = start
    first_at = start + (len(second) if preview else 0)
    body = pixels + preview
    body += bytes(start - 8 - len(body)) + (second if preview else b"")
    return b"II*\0" + struct.pack("<I", first_at) + body + _directory(sorted(main), first_at, at)


def _directory(entries: list[Entry], start: int, at: dict[str, int]) -> bytes:
    """An image directory that stands at `start`; long values follow it."""
    head, tail = struct.pack("<H", len(entries)), b""
    after = start + 2 + 12 * len(entries) + 4
    for tag, form, values in entries:
        if form == "s":
            data, count = values[0], len(values[0])
        else:
            numbers = [at.get(v, 0) if isinstance(v, str) else v for v in values]
            data, count = struct.pack(f"<{len(numbers)}{form}", *numbers), len(numbers)
        if len(data) > 4:
            place = struct.pack("<I", after + len(tail))
            tail += data + bytes(len(data) % 2)
        else:
            place = data.ljust(4, b"\0")
        head += struct.pack("<HHI", tag, _FORMS[form], count) + place
    return head + bytes(4) + tail
