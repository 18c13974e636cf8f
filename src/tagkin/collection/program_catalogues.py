"""Tags in the catalogues of digiKam, Lightroom Classic and Apple Photos.

digiKam (``digikam4.db``): a photograph is a file of an album, and albums are folders below a root,
named by its path, or by the volume and the path there. Tags are a tree, below which digiKam also
keeps labels and flags of its own.

Lightroom Classic (``.lrcat``): a photograph is a file of a folder, below a root with an absolute
path. Virtual copies are images of the same file. Keywords are a tree below one root without a name.

Apple Photos (``.photoslibrary``, a folder): the package osxphotos reads the library. It would open
the database in place, where SQLite may leave a file, so it gets the private copy.
"""

from __future__ import annotations

import logging
import os
import plistlib
from pathlib import Path
from urllib.parse import unquote

from tagkin.collection.keywords import MAX_LENGTH
from tagkin.collection.levels import tidy
from tagkin.collection.matching import TagTable
from tagkin.collection.program_databases import ProgramDatabase, open_database
from tagkin.errors import InvalidInput, MissingExtra
from tagkin.installing import install_command

__all__ = ["read_apple_photos", "read_digikam", "read_lightroom"]

_OPTIONAL = (str, type(None))


# --- digiKam -----------------------------------------------------------------------------

_DIGIKAM_VERSIONS = range(6, 18)  # of digiKam 2.0 to 9.1; the tables are the same in all of them
_INTERNAL = "_Digikam_Internal_Tags_"


def read_digikam(path: Path) -> TagTable:
    """Read the tags of all photographs in a database of digiKam."""
    with open_database(path, "digiKam") as database:
        database.check_version(
            "SELECT value FROM Settings WHERE keyword = 'DBVersion'",
            _DIGIKAM_VERSIONS,
            "Let digiKam write its tags to the photographs or to sidecars (Item › Write Metadata "
            "to File), and scan those.",
        )
        roots = {
            root: _digikam_root(identifier or "", specific_path or "")
            for root, identifier, specific_path in database.rows(
                "SELECT id, identifier, specificPath FROM AlbumRoots WHERE "
                "length(ifnull(identifier, '')) + length(ifnull(specificPath, '')) <= 4096",
                int,
                _OPTIONAL,
                _OPTIONAL,
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
            # cut where they are longer than a path can be
            "SELECT a.albumRoot, substr(a.relativePath, 1, 4097), substr(i.name, 1, 4097), t.tagid "
            "FROM ImageTags t JOIN Images i ON i.id = t.imageid JOIN Albums a ON a.id = i.album "
            # shown, not in the trash; and a picture, not a film
            "WHERE i.status = 1 AND i.category = 1",
            {tag: name for tag, name in names.items() if tag not in internal},
        )


def _digikam_root(identifier: str, specific_path: str) -> str:
    """Return the folder of an album root; on a volume, the path there."""
    pairs = (pair.partition("=") for pair in identifier.partition("?")[2].split("&"))
    query = {key: unquote(value) for key, _, value in pairs}
    mount = query.get("path") or query.get("mountpath") or ""
    return f"{mount}/{specific_path}"


# --- Lightroom ---------------------------------------------------------------------------

_LIGHTROOM_VERSIONS = range(3, 16)  # of Lightroom; the tables are the same in all of them


def read_lightroom(path: Path) -> TagTable:
    """Read the keywords of all photographs in a catalogue of Lightroom Classic."""
    with open_database(path, "Lightroom") as database:
        database.check_version(  # 1300025 is of Lightroom 13
            "SELECT CAST(value AS INTEGER) / 100000 FROM Adobe_variablesTable "
            "WHERE name = 'Adobe_DBVersion'",
            _LIGHTROOM_VERSIONS,
            "Choose Metadata › Save Metadata to Files in Lightroom, and scan the photographs.",
        )
        roots = dict(
            database.rows(
                "SELECT id_local, absolutePath FROM AgLibraryRootFolder "
                "WHERE length(absolutePath) <= 4096",
                int,
                str,
            )
        )
        names = database.tag_names("SELECT id_local, parent, name FROM AgLibraryKeyword")
        return database.tag_table(
            roots,
            "SELECT d.rootFolder, substr(d.pathFromRoot, 1, 4097), substr(f.baseName, 1, 4097) || "
            "CASE WHEN f.extension <> '' THEN '.' || substr(f.extension, 1, 4097) ELSE '' END, "
            "k.tag FROM AgLibraryKeywordImage k "
            "JOIN Adobe_images i ON i.id_local = k.image "
            "JOIN AgLibraryFile f ON f.id_local = i.rootFile "
            "JOIN AgLibraryFolder d ON d.id_local = f.folder "
            "WHERE i.fileFormat IS NOT 'VIDEO'",
            names,
        )


# --- Apple Photos ------------------------------------------------------------------------

# model versions of Photos 5 to 12, as osxphotos knows them; it would take others for the latest
_APPLE_VERSIONS = (range(13_000, 19_000), range(19_063, 20_000), range(270_000_000, 271_000_000))


def read_apple_photos(path: Path) -> TagTable:
    """Read the keywords of all photographs on this disk, by the library's ``Photos.sqlite``."""
    library = Path(os.path.abspath(path)).parent.parent
    with open_database(path, "Apple Photos", max_value=16 << 20) as database:
        _check_apple_version(database)
        tags = _read_with_osxphotos(database, library)
        for file, names in tags.items():
            if ".." in file.split("/"):
                raise database.fault(f"{file!r} is not a path below a folder")
            if max(map(len, names)) > MAX_LENGTH:
                raise database.fault(f"a tag has more than {MAX_LENGTH} characters")
    # photographs that were not copied into the library are in folders of their own
    folders = {file.rpartition("/")[0] or "/" for file in tags if library not in Path(file).parents}
    return TagTable(list(tags), list(tags.values()), [library.as_posix(), *sorted(folders)])


def _check_apple_version(database: ProgramDatabase) -> None:
    query = "SELECT Z_PLIST FROM Z_METADATA ORDER BY Z_VERSION DESC LIMIT 1"
    (properties,) = next(database.rows(query, bytes), (b"",))
    try:
        version = plistlib.loads(properties)["PLModelVersion"]
    except Exception as error:  # plistlib raises nearly everything on damaged data
        raise database.fault("it does not say its version") from error
    if not any(version in versions for versions in _APPLE_VERSIONS):
        raise InvalidInput(
            f"{database.path} is of an Apple Photos that tagkin does not know: its version is "
            f"{str(version)[:20]}. Export the photographs in Photos (File › Export › Export "
            "Unmodified Originals, with IPTC as XMP), and scan those."
        )


def _read_with_osxphotos(database: ProgramDatabase, library: Path) -> dict[str, list[str]]:
    """Return the keywords of each file."""
    try:
        import osxphotos
    except ImportError as error:
        raise MissingExtra(
            f"A library of Apple Photos needs osxphotos: {install_command('apple-photos')}"
        ) from error
    # it warns of things that keywords do not need, such as the index of Photos' search
    logging.getLogger("osxphotos").setLevel(logging.ERROR)
    try:
        photos = osxphotos.PhotosDB(str(database.copy), library_path=str(library))
        return {
            Path(photo.path).as_posix(): sorted(tidy(k.replace("|", "/")) for k in photo.keywords)
            for photo in photos.photos(movies=False)
            if photo.keywords and photo.path  # no path: only in iCloud
        }
    except Exception as error:  # osxphotos expects a library as Photos makes it
        problem = f"osxphotos cannot read it ({type(error).__name__}: {error})"
        raise database.fault(problem) from error
