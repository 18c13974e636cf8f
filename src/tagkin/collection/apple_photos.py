"""Keywords in a library of Apple Photos, a folder such as ``Photos Library.photoslibrary``.

The package osxphotos reads the library. It would open the database in place, where SQLite may
leave a file, so it gets a private copy, as all catalogues of other programs do.
"""

from __future__ import annotations

import logging
import os
import plistlib
from pathlib import Path
from typing import Any

from tagkin.collection.keywords import MAX_LENGTH
from tagkin.collection.levels import tidy
from tagkin.collection.program_databases import ProgramDatabase, open_database
from tagkin.collection.tag_tables import TagTable
from tagkin.errors import InvalidInput, MissingExtra, pip_install

__all__ = ["read_apple_photos"]

# model versions of Photos 5 to 12, as osxphotos knows them; it would take others for the latest
_VERSIONS = (range(13_000, 19_000), range(19_063, 20_000), range(270_000_000, 271_000_000))


def read_apple_photos(path: Path) -> TagTable:
    """Read the keywords of all photographs on this disk, by the library's ``Photos.sqlite``."""
    library = Path(os.path.abspath(path)).parent.parent
    tags: dict[str, list[str]] = {}
    with open_database(path, "Apple Photos") as database:
        database.check_tables({"Z_METADATA": "Z_VERSION Z_PLIST"})
        _check_version(database)
        osxphotos = _import_osxphotos()
        try:
            photos = osxphotos.PhotosDB(str(database.copy), library_path=str(library))
            for photo in photos.photos(movies=False):
                if photo.keywords and photo.path:  # no path: only in iCloud
                    names = [tidy(keyword.replace("|", "/")) for keyword in photo.keywords]
                    tags[Path(photo.path).as_posix()] = sorted(names)
        except Exception as error:  # osxphotos expects a library as Photos makes it
            problem = f"osxphotos cannot read it ({type(error).__name__}: {error})"
            raise database.fault(problem) from error
        for file, names in tags.items():
            if ".." in file.split("/"):
                raise database.fault(f"{file!r} is not a path below a folder")
            if max(map(len, names)) > MAX_LENGTH:
                raise database.fault(f"a tag has more than {MAX_LENGTH} characters")
    # photographs that were not copied into the library are in folders of their own
    folders = {file.rpartition("/")[0] or "/" for file in tags if library not in Path(file).parents}
    return TagTable(list(tags), list(tags.values()), [library.as_posix(), *sorted(folders)])


def _import_osxphotos() -> Any:
    try:
        import osxphotos
    except ImportError as error:
        raise MissingExtra(
            f"A library of Apple Photos needs osxphotos: {pip_install('apple-photos')}"
        ) from error
    # it warns of things that keywords do not need, such as the index of Photos' search
    logging.getLogger("osxphotos").setLevel(logging.ERROR)
    return osxphotos


def _check_version(database: ProgramDatabase) -> None:
    query = "SELECT Z_PLIST FROM Z_METADATA ORDER BY Z_VERSION DESC LIMIT 1"
    (properties,) = next(database.rows(query, bytes), (b"",))
    try:
        version = plistlib.loads(properties)["PLModelVersion"]
    except Exception as error:  # plistlib raises nearly everything on damaged data
        raise database.fault("it does not say its version") from error
    if not any(version in versions for versions in _VERSIONS):
        raise InvalidInput(
            f"{database.path} is of an Apple Photos that tagkin does not know: its version is "
            f"{str(version)[:20]}. Export the photographs in Photos (File › Export › Export "
            "Unmodified Originals, with IPTC as XMP), and scan those."
        )
