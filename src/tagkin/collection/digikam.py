"""Tags in digiKam's database, ``digikam4.db``.

A photograph is a file of an album, and albums are folders below a root. digiKam names the root by
its path, or by the volume and the path there. Tags are a tree, below which digiKam also keeps
labels and flags of its own.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from tagkin.collection.program_databases import ProgramDatabase, open_database
from tagkin.collection.tag_tables import TagTable
from tagkin.errors import InvalidInput

__all__ = ["read_digikam"]

_VERSIONS = range(6, 18)  # of digiKam 2.0 to 9.1; the tables below are the same in all of them
_TABLES = {
    "Settings": "keyword value",
    "AlbumRoots": "id identifier specificPath",
    "Albums": "id albumRoot relativePath",
    "Images": "id album name status category",
    "Tags": "id pid name",
    "TagProperties": "tagid property",
    "ImageTags": "imageid tagid",
}
_INTERNAL = "_Digikam_Internal_Tags_"


def read_digikam(path: Path) -> TagTable:
    """Read the tags of all photographs in a database of digiKam."""
    with open_database(path, "digiKam") as database:
        database.check_tables(_TABLES)
        _check_version(database)
        text = (str, type(None))
        roots = {
            root: _root_path(identifier or "", specific_path or "")
            for root, identifier, specific_path in database.rows(
                "SELECT id, identifier, specificPath FROM AlbumRoots", int, text, text
            )
        }
        names = database.tag_names("SELECT id, pid, nullif(name, '_Digikam_root_tag_') FROM Tags")
        # faces without a name, and what digiKam marks as its own
        internal = {tag for tag, name in names.items() if name.split("|", 1)[0] == _INTERNAL}
        internal |= {
            tag
            for (tag,) in database.rows(
                "SELECT tagid FROM TagProperties WHERE property IN ('internalTag', "
                "'unknownPerson', 'unconfirmedPerson', 'ignoredPerson') AND tagid IS NOT NULL",
                int,
            )
        }
        return database.tag_table(
            roots,
            "SELECT a.albumRoot, a.relativePath, i.name, t.tagid FROM ImageTags t "
            "JOIN Images i ON i.id = t.imageid JOIN Albums a ON a.id = i.album "
            # shown, not in the trash; and a picture, not a film
            "WHERE i.status = 1 AND i.category = 1 ORDER BY i.id, t.tagid",
            {tag: name for tag, name in names.items() if tag not in internal},
        )


def _check_version(database: ProgramDatabase) -> None:
    rows = database.rows("SELECT value FROM Settings WHERE keyword = 'DBVersion'", (str, int))
    version = str(next(rows, ("none",))[0])
    if not version.isdecimal() or int(version[:9]) not in _VERSIONS:
        raise InvalidInput(
            f"{database.path} is a database of a digiKam that tagkin does not know: its version is "
            f"{version[:20]}, not {_VERSIONS[0]} to {_VERSIONS[-1]}. Let digiKam write its tags "
            "to the photographs or to sidecars (Item › Write Metadata to File), and scan those."
        )


def _root_path(identifier: str, specific_path: str) -> str:
    """Return the folder of an album root; on a volume, the path there."""
    pairs = (pair.partition("=") for pair in identifier.partition("?")[2].split("&"))
    query = {key: unquote(value) for key, _, value in pairs}
    mount = query.get("path") or query.get("mountpath") or ""
    return f"{mount}/{specific_path}"
