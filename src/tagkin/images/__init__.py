"""Photographs: finding them, reading their pixels and the tags that they carry. All read only."""

from tagkin.errors import UnreadableImage
from tagkin.images.decoding import MAX_PIXELS, decode
from tagkin.images.discovery import find_photographs
from tagkin.images.files import MAX_BYTES, Failure, content_digest, read_bytes
from tagkin.images.keywords import find_keywords, read_keywords
from tagkin.images.thumbnails import encode_jpeg, encode_png, thumbnail

__all__ = [
    "MAX_BYTES",
    "MAX_PIXELS",
    "Failure",
    "UnreadableImage",
    "content_digest",
    "decode",
    "encode_jpeg",
    "encode_png",
    "find_keywords",
    "find_photographs",
    "read_bytes",
    "read_keywords",
    "thumbnail",
]
