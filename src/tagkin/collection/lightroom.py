"""Keywords in the catalogue of Lightroom Classic, an ``.lrcat`` file.

A photograph is a file of a folder, below a root with an absolute path. Virtual copies are images
of the same file. Keywords are a tree below one root without a name, and may have synonyms.
"""

from __future__ import annotations

from pathlib import Path

from tagkin.collection.levels import tidy
from tagkin.collection.program_databases import ProgramDatabase, open_database
from tagkin.collection.tag_tables import TagTable
from tagkin.errors import InvalidInput

__all__ = ["read_lightroom"]

_VERSIONS = range(3, 16)  # of Lightroom; the tables below are the same in all of them
_TABLES = {
    "Adobe_variablesTable": "name value",
    "AgLibraryRootFolder": "id_local absolutePath",
    "AgLibraryFolder": "id_local rootFolder pathFromRoot",
    "AgLibraryFile": "id_local folder baseName extension",
    "Adobe_images": "id_local rootFile fileFormat",
    "AgLibraryKeyword": "id_local parent name",
    "AgLibraryKeywordImage": "image tag",
    "AgLibraryKeywordSynonym": "keyword name",
}


def read_lightroom(path: Path) -> TagTable:
    """Read the keywords of all photographs in a catalogue of Lightroom Classic."""
    with open_database(path, "Lightroom") as database:
        database.check_tables(_TABLES)
        _check_version(database)
        roots = dict(
            database.rows("SELECT id_local, absolutePath FROM AgLibraryRootFolder", int, str)
        )
        names = database.tag_names("SELECT id_local, parent, name FROM AgLibraryKeyword")
        synonyms = database.rows(
            "SELECT keyword, name FROM AgLibraryKeywordSynonym WHERE length(name) <= 500 "
            "ORDER BY keyword, name LIMIT 1000000",
            int,
            str,
        )
        return database.tag_table(
            roots,
            "SELECT d.rootFolder, d.pathFromRoot, f.baseName || CASE WHEN f.extension <> '' "
            "THEN '.' || f.extension ELSE '' END, k.tag FROM AgLibraryKeywordImage k "
            "JOIN Adobe_images i ON i.id_local = k.image "
            "JOIN AgLibraryFile f ON f.id_local = i.rootFile "
            "JOIN AgLibraryFolder d ON d.id_local = f.folder "
            "WHERE i.fileFormat IS NOT 'VIDEO' ORDER BY f.id_local, k.tag",
            names,
            {
                tidy(synonym.replace("|", "/")): names[keyword]
                for keyword, synonym in synonyms
                if names.get(keyword)
            },
        )


def _check_version(database: ProgramDatabase) -> None:
    """Reject a version such as 1300025, of Lightroom 13, if that is not known."""
    rows = database.rows(
        "SELECT CAST(value AS TEXT) FROM Adobe_variablesTable WHERE name = 'Adobe_DBVersion'",
        (str, type(None)),
    )
    version = str(next(rows, ("none",))[0])
    major = version[:-5]
    if not major.isdecimal() or int(major[:9]) not in _VERSIONS:
        raise InvalidInput(
            f"{database.path} is a catalogue of a Lightroom that tagkin does not know: its version "
            f"is {version[:20]}, not of Lightroom {_VERSIONS[0]} to {_VERSIONS[-1]}. Choose "
            "Metadata › Save Metadata to Files in Lightroom, and scan the photographs."
        )
