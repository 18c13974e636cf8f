"""Folders of photographs: their files, tag files, embedded keywords and sidecars.

In reading order: `discovery` and `reading` for folders, `tag_files` and `matching` for tag
files, `program_catalogues` and `program_databases` for catalogues of other programs,
`keywords`, `containers`, `xmp` and `levels` for metadata, `facts` for when, where and with what
photographs were taken, `capture` and `times` for what follows from that, `tag_lists` for lists of
tags that several programs write, `sidecar_naming` for the names of sidecars, and `sidecars` for
writing tags.
"""

from typing import TYPE_CHECKING

from tagkin.collection.capture import Capture, capture_of
from tagkin.collection.discovery import find_photographs
from tagkin.collection.keywords import read_keywords, read_metadata
from tagkin.collection.reading import Collection, read_collection
from tagkin.collection.sidecar_naming import sidecar_names
from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.collection.matching import TagTable as TagTable
    from tagkin.collection.tag_files import read_tags as read_tags
    from tagkin.collection.word_lists import read_tag_list as read_tag_list

__all__ = [
    "Capture",
    "Collection",
    "TagTable",
    "capture_of",
    "find_photographs",
    "read_collection",
    "read_keywords",
    "read_metadata",
    "read_tag_list",
    "read_tags",
    "sidecar_names",
]

# Imported at first use, because few collections have such files.
_HOMES = {
    "TagTable": "matching",
    "read_tag_list": "word_lists",
    "read_tags": "tag_files",
}
__getattr__ = lazy_names(__name__, _HOMES)
