"""Write tags into XMP sidecars or photographs, and undo it.

Tags are added to ``dc:subject``, ``lr:hierarchicalSubject`` and ``digiKam:TagsList``, or removed
there, and ``tagkin:Written`` records which tags tagkin wrote, with a mark for each write. Nothing
else in a sidecar changes. Only `embed_tags` changes photographs.

The modules in reading order: `tag_fields` maps tags to XMP properties,
`editing` adds and removes them in the bytes of a sidecar, with `markup` for text edits and
`properties` for RDF lists. `sidecar_files` changes sidecars. `embedding` changes photographs with
`exiftool`, whose reports `inside` understands.
"""

from tagkin.collection.sidecar_naming import Convention, Sidecar, SidecarNaming
from tagkin.collection.sidecars.editing import (
    drop_tags,
    provenance_of,
    put_back_values,
    tags_of,
    with_tags,
    without_tags,
)
from tagkin.collection.sidecars.embedding import (
    Embedded,
    drop_copy,
    embed_tags,
    has_mark,
    restore_embedded,
    untag_copy,
)
from tagkin.collection.sidecars.exiftool import ExifTool, check_exiftool
from tagkin.collection.sidecars.sidecar_files import (
    Written,
    add_tags,
    remove_scratch,
    restore,
    revert_values,
)
from tagkin.collection.sidecars.tag_fields import Provenance, WrittenTag

__all__ = [
    "Convention",
    "Embedded",
    "ExifTool",
    "Provenance",
    "Sidecar",
    "SidecarNaming",
    "Written",
    "WrittenTag",
    "add_tags",
    "check_exiftool",
    "drop_copy",
    "drop_tags",
    "embed_tags",
    "has_mark",
    "provenance_of",
    "put_back_values",
    "remove_scratch",
    "restore",
    "restore_embedded",
    "revert_values",
    "tags_of",
    "untag_copy",
    "with_tags",
    "without_tags",
]
