"""Folders of photographs: their files, tag files, embedded keywords and sidecars.

The modules in reading order:

- `discovery` finds photographs in folders.
- `reading` reads photographs with their tags as a `Collection`.
- `tag_files` reads and writes tag files, and `matching` matches their rows with photographs.
- `keywords` reads the tags of a photograph: `containers` finds metadata in image files, `iptc` and
  `xmp` read them, `levels` normalizes tags with levels.
- `capture` reads when and by which camera a photograph was taken.
- `synonyms` reads lists of tags.
- `sidecars` is a package that writes tags and undoes that.
"""

from tagkin.collection.capture import Capture, read_capture
from tagkin.collection.discovery import find_photographs
from tagkin.collection.keywords import find_keywords, locate_keywords, read_keywords
from tagkin.collection.matching import match_table
from tagkin.collection.reading import METADATA, Collection, Progress, read_collection
from tagkin.collection.sidecars.names import sidecar_names
from tagkin.collection.synonyms import read_synonyms, read_tag_list
from tagkin.collection.tag_files import TagTable, read_tags, write_tags

__all__ = [
    "METADATA",
    "Capture",
    "Collection",
    "Progress",
    "TagTable",
    "find_keywords",
    "find_photographs",
    "locate_keywords",
    "match_table",
    "read_capture",
    "read_collection",
    "read_keywords",
    "read_synonyms",
    "read_tag_list",
    "read_tags",
    "sidecar_names",
    "write_tags",
]
