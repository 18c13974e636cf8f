"""Read photographs: from files to pixels and thumbnails. Nothing is written."""

from typing import TYPE_CHECKING

from tagkin.errors import UnreadableImage
from tagkin.images.image_files import MAX_BYTES, Failure, content_digest, read_bytes
from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.images.decoding import MAX_PIXELS as MAX_PIXELS
    from tagkin.images.decoding import decode as decode
    from tagkin.images.thumbnails import encode_jpeg as encode_jpeg
    from tagkin.images.thumbnails import thumbnail as thumbnail

__all__ = [
    "MAX_BYTES",
    "MAX_PIXELS",
    "Failure",
    "UnreadableImage",
    "content_digest",
    "decode",
    "encode_jpeg",
    "read_bytes",
    "thumbnail",
]

# Imported at first use, because a photograph whose features are in the cache is not decoded.
_HOMES = {
    "MAX_PIXELS": "decoding",
    "decode": "decoding",
    "encode_jpeg": "thumbnails",
    "thumbnail": "thumbnails",
}
__getattr__ = lazy_names(__name__, _HOMES)
