"""Read photographs: from files to pixels and thumbnails. Nothing is written."""

from tagkin.errors import UnreadableImage
from tagkin.images.decoding import MAX_PIXELS, decode, decode_preview
from tagkin.images.image_files import MAX_BYTES, Failure, content_digest, read_bytes
from tagkin.images.thumbnails import encode_jpeg, thumbnail, thumbnail_of

__all__ = [
    "MAX_BYTES",
    "MAX_PIXELS",
    "Failure",
    "UnreadableImage",
    "content_digest",
    "decode",
    "decode_preview",
    "encode_jpeg",
    "read_bytes",
    "thumbnail",
    "thumbnail_of",
]
