"""Small photographs of every kind that tagkin reads, to begin with."""

import functools
import io
import struct
from pathlib import Path

import numpy as np
import pillow_heif
from PIL import Image, PngImagePlugin, features

from tests.images.synthetic import psd, resource

__all__ = ["exif_block", "iptc_block", "photographs", "xmp_packet"]

_XMP_HEAD = b"http://ns.adobe.com/xap/1.0/\0"


def xmp_packet(*words: str) -> bytes:
    """XMP with keywords, as programs write it."""
    items = "".join(f"<rdf:li>{word}</rdf:li>" for word in words)
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>'
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF '
        'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" '
        'xmlns:lr="http://ns.adobe.com/lightroom/1.0/">'
        f"<dc:subject><rdf:Bag>{items}</rdf:Bag></dc:subject>"
        "<lr:hierarchicalSubject><rdf:Bag><rdf:li>place|sea</rdf:li></rdf:Bag>"
        "</lr:hierarchicalSubject></rdf:Description></rdf:RDF></x:xmpmeta>"
        '<?xpacket end="w"?>'
    ).encode()


def iptc_block(*words: str) -> bytes:
    """Photoshop's resources with IPTC keywords, as in a JPEG's segment."""
    fields = b"".join(
        b"\x1c\x02\x19" + struct.pack(">H", len(word.encode())) + word.encode() for word in words
    )
    body = b"8BIM\x04\x04\0\0" + struct.pack(">I", len(fields)) + fields
    return b"Photoshop 3.0\0" + body


def exif_block() -> bytes:
    """EXIF with an orientation, a time, a camera and Windows' keywords."""
    exif = Image.Exif()
    exif[0x0112], exif[0x010F], exif[0x9C9E] = 6, "Camera", "sea;tree\0".encode("utf-16-le")
    exif.get_ifd(0x8769)[0x9003] = "2024:01:31 15:45:00"
    return exif.tobytes()


def _segment(marker: int, content: bytes) -> bytes:
    return bytes((0xFF, marker)) + struct.pack(">H", len(content) + 2) + content


def with_segments(jpeg: bytes, *pairs: tuple[int, bytes]) -> bytes:
    """A JPEG file with further segments (marker, content) at its start."""
    return jpeg[:2] + b"".join(_segment(*pair) for pair in pairs) + jpeg[2:]


def _pixels(height: int = 48, width: int = 64) -> np.ndarray:
    rng = np.random.default_rng(0)
    ramp = np.linspace(0, 200, height * width * 3).reshape(height, width, 3)
    return (ramp + rng.integers(0, 55, ramp.shape)).astype(np.uint8)


def _saved(image: Image.Image, form: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


@functools.cache
def photographs() -> dict[str, bytes]:
    """Files by a name that says what is special about each."""
    rgb = Image.fromarray(_pixels())
    grey, alpha = rgb.convert("L"), rgb.convert("RGBA")
    deep = Image.fromarray(np.asarray(grey).astype(np.uint16) * 257)
    floats = Image.fromarray(np.asarray(grey, np.float32) / 255)
    exif, xmp = exif_block(), xmp_packet("sea", "two words", "größe")
    text = PngImagePlugin.PngInfo()
    text.add_itxt("XML:com.adobe.xmp", xmp.decode(), zip=True)
    jpeg = _saved(rgb, "JPEG", exif=exif)
    keywords = [(0xE1, _XMP_HEAD + xmp), (0xED, iptc_block("sea", "boat"))]
    by_kind = {
        "jpeg": with_segments(jpeg, *keywords),
        "jpeg-progressive": _saved(rgb, "JPEG", progressive=True),
        "jpeg-grey": _saved(grey, "JPEG"),
        "jpeg-cmyk": _saved(rgb.convert("CMYK"), "JPEG"),
        "png": _saved(alpha, "PNG", exif=exif, pnginfo=text),
        "png-palette": _saved(rgb.convert("P"), "PNG", transparency=3),
        "png-16": _saved(deep, "PNG"),
        "png-1": _saved(rgb.convert("1"), "PNG"),
        "webp": _saved(rgb, "WEBP", exif=exif, xmp=xmp),
        "webp-lossless": _saved(alpha, "WEBP", lossless=True),
        "gif": _saved(rgb.convert("P"), "GIF", save_all=True, append_images=[grey.convert("P")]),
        "bmp": _saved(rgb, "BMP"),
        "bmp-palette": _saved(rgb.convert("P"), "BMP"),
        "tiff": _saved(rgb, "TIFF", tiffinfo={700: xmp}),
        "tiff-deep": _saved(deep, "TIFF"),
        "tiff-float": _saved(floats, "TIFF", compression="tiff_deflate"),
        "tiff-lzw": _saved(alpha, "TIFF", compression="tiff_lzw"),
        "tiff-packbits": _saved(rgb.convert("1"), "TIFF", compression="packbits"),
        "tiff-jpeg": _saved(rgb, "TIFF", compression="jpeg"),
        "tiff-fax": _saved(rgb.convert("1"), "TIFF", compression="group4"),
        "tiff-big": _saved(rgb.convert("CMYK"), "TIFF", big_tiff=True),
        "psd": psd(_pixels(), resource(0x0424, xmp) + iptc_block("sea")[14:]),
        "jpeg2000": _saved(rgb, "JPEG2000"),
        "jpeg2000-alpha": _saved(alpha, "JPEG2000", tile_size=(32, 32), num_resolutions=3),
    }
    return by_kind | _modern(rgb, exif, xmp)


def _modern(rgb: Image.Image, exif: bytes, xmp: bytes) -> dict[str, bytes]:
    """Those that need more than the oldest Pillow has."""
    by_kind = {}
    if "avif" in features.modules and features.check("avif"):
        by_kind["avif"] = _saved(rgb, "AVIF", exif=exif, xmp=xmp)
    out = io.BytesIO()
    pillow_heif.from_pillow(rgb).save(out, exif=exif, xmp=xmp)
    return by_kind | {"heif": out.getvalue()}


def photographs_in(folder: Path, max_bytes: int = 1 << 20) -> list[bytes]:
    """The content of all files in a folder that are not too large to be changed many times."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path.read_bytes() for path in paths if 0 < path.stat().st_size <= max_bytes]
