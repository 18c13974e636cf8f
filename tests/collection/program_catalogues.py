"""Catalogues as digiKam and Lightroom Classic make them: their tables, and their ways.

The tables have the columns that the programs give them; tables of other things are left out.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

DIGIKAM = """
CREATE TABLE AlbumRoots (id INTEGER PRIMARY KEY, label TEXT, status INTEGER NOT NULL,
    type INTEGER NOT NULL, identifier TEXT, specificPath TEXT, caseSensitivity INTEGER,
    UNIQUE (identifier, specificPath));
CREATE TABLE Albums (id INTEGER PRIMARY KEY, albumRoot INTEGER NOT NULL,
    relativePath TEXT NOT NULL, date DATE, caption TEXT, collection TEXT, icon INTEGER,
    UNIQUE (albumRoot, relativePath));
CREATE TABLE Images (id INTEGER PRIMARY KEY, album INTEGER, name TEXT NOT NULL,
    status INTEGER NOT NULL, category INTEGER NOT NULL, modificationDate DATETIME,
    fileSize INTEGER, uniqueHash TEXT, manualOrder INTEGER, UNIQUE (album, name));
CREATE TABLE Tags (id INTEGER PRIMARY KEY, pid INTEGER, name TEXT NOT NULL, icon INTEGER,
    iconkde TEXT, UNIQUE (name, pid));
CREATE TABLE TagsTree (id INTEGER NOT NULL, pid INTEGER NOT NULL, UNIQUE (id, pid));
CREATE TABLE TagProperties (tagid INTEGER, property TEXT, value TEXT);
CREATE TABLE ImageTags (imageid INTEGER NOT NULL, tagid INTEGER NOT NULL,
    UNIQUE (imageid, tagid));
CREATE TABLE Settings (keyword TEXT NOT NULL UNIQUE, value TEXT);
CREATE INDEX tag_index ON ImageTags (tagid);
CREATE TRIGGER insert_tagstree AFTER INSERT ON Tags BEGIN
    INSERT INTO TagsTree SELECT NEW.id, NEW.pid
        UNION SELECT NEW.id, pid FROM TagsTree WHERE id = NEW.pid;
END;
INSERT INTO Tags (id, pid, name) VALUES (1, 0, '_Digikam_Internal_Tags_'),
    (2, 1, 'Color Label Red'), (3, 1, 'Pick Label Accepted');
"""

LIGHTROOM = """
CREATE TABLE Adobe_variablesTable (id_local INTEGER PRIMARY KEY, id_global UNIQUE NOT NULL,
    name, type, value NOT NULL DEFAULT '');
CREATE TABLE AgLibraryRootFolder (id_local INTEGER PRIMARY KEY, id_global UNIQUE NOT NULL,
    absolutePath UNIQUE NOT NULL DEFAULT '', name NOT NULL DEFAULT '', relativePathFromCatalog);
CREATE TABLE AgLibraryFolder (id_local INTEGER PRIMARY KEY, id_global UNIQUE NOT NULL,
    parentId INTEGER, pathFromRoot NOT NULL DEFAULT '', rootFolder INTEGER NOT NULL DEFAULT 0,
    visibility INTEGER);
CREATE TABLE AgLibraryFile (id_local INTEGER PRIMARY KEY, id_global UNIQUE NOT NULL,
    baseName NOT NULL DEFAULT '', extension NOT NULL DEFAULT '',
    folder INTEGER NOT NULL DEFAULT 0, idx_filename NOT NULL DEFAULT '', sidecarExtensions);
CREATE TABLE Adobe_images (id_local INTEGER PRIMARY KEY, id_global UNIQUE NOT NULL, copyName,
    fileFormat NOT NULL DEFAULT 'unset', masterImage INTEGER, rating,
    rootFile INTEGER NOT NULL DEFAULT 0);
CREATE TABLE AgLibraryKeyword (id_local INTEGER PRIMARY KEY, id_global UNIQUE NOT NULL,
    genealogy NOT NULL DEFAULT '', includeOnExport INTEGER NOT NULL DEFAULT 1,
    includeParents INTEGER NOT NULL DEFAULT 1, includeSynonyms INTEGER NOT NULL DEFAULT 1,
    keywordType, lc_name, name, parent INTEGER);
CREATE TABLE AgLibraryKeywordImage (id_local INTEGER PRIMARY KEY,
    image INTEGER NOT NULL DEFAULT 0, tag INTEGER NOT NULL DEFAULT 0);
CREATE TABLE AgLibraryKeywordSynonym (id_local INTEGER PRIMARY KEY,
    keyword INTEGER NOT NULL DEFAULT 0, lc_name, name);
CREATE INDEX index_keywordImage_image ON AgLibraryKeywordImage (image);
INSERT INTO AgLibraryKeyword (id_local, id_global, name, parent) VALUES (1, 'root', NULL, NULL);
"""

Tagged = Mapping[str, Sequence[str]]


def change(path: Path, script: str, *values: object) -> None:
    """Run one statement, or a script without values."""
    with closing(sqlite3.connect(path)) as connection:
        if values:
            connection.execute(script, values)
        else:
            connection.executescript(script)
        connection.commit()


def make_digikam(
    path: Path, tagged: Tagged, identifier: str, specific_path: str = "/", version: str = "16"
) -> Path:
    """A ``digikam4.db`` with one root; tags are by path from it, with ``/`` between levels."""
    change(path, DIGIKAM)
    change(path, "INSERT INTO Settings VALUES ('DBVersion', ?)", version)
    change(path, "INSERT INTO AlbumRoots VALUES (1, '', 0, 1, ?, ?, 2)", identifier, specific_path)
    with closing(sqlite3.connect(path)) as connection:
        albums: dict[str, int] = {}
        for image, (name, tags) in enumerate(tagged.items(), 1):
            album, _, file = f"/{name}".rpartition("/")
            if album not in albums:
                albums[album] = len(albums) + 1
                values = (albums[album], album or "/")
                connection.execute(
                    "INSERT INTO Albums (id, albumRoot, relativePath) VALUES (?, 1, ?)", values
                )
            connection.execute(
                "INSERT INTO Images (id, album, name, status, category) VALUES (?, ?, ?, 1, 1)",
                (image, albums[album], file),
            )
            for tag in tags:
                number = _add_level(connection, "Tags (pid, name)", "id", "pid", 0, tag.split("/"))
                connection.execute("INSERT INTO ImageTags VALUES (?, ?)", (image, number))
        connection.commit()
    return path


def make_lightroom(path: Path, tagged: Tagged, root: str, version: str = "1300025") -> Path:
    """An ``.lrcat`` with one root; keywords are by path from it, with ``/`` between levels."""
    change(path, LIGHTROOM)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "INSERT INTO Adobe_variablesTable VALUES (1, 'v', 'Adobe_DBVersion', NULL, ?)",
            (version,),
        )
        connection.execute("INSERT INTO AgLibraryRootFolder VALUES (5, 'r', ?, '', NULL)", (root,))
        folders: dict[str, int] = {}
        for i, (name, tags) in enumerate(tagged.items()):
            folder, slash, file = name.rpartition("/")
            if folder not in folders:
                folders[folder] = 100 + len(folders)
                connection.execute(
                    "INSERT INTO AgLibraryFolder VALUES (?1, 'f' || ?1, NULL, ?2, 5, NULL)",
                    (folders[folder], folder + slash),
                )
            stem, _, suffix = file.rpartition(".")
            connection.execute(
                "INSERT INTO AgLibraryFile VALUES (?1, 'f' || ?1, ?2, ?3, ?4, ?5, NULL)",
                (1000 + i, stem, suffix, folders[folder], file),
            )
            connection.execute(
                "INSERT INTO Adobe_images VALUES (?1, 'i' || ?1, NULL, 'JPG', NULL, NULL, ?2)",
                (2000 + i, 1000 + i),
            )
            for tag in tags:
                number = _add_level(
                    connection,
                    "AgLibraryKeyword (parent, name, id_global)",
                    "id_local",
                    "parent",
                    1,
                    tag.split("/"),
                )
                connection.execute(
                    "INSERT INTO AgLibraryKeywordImage (image, tag) VALUES (?, ?)",
                    (2000 + i, number),
                )
        connection.commit()
    return path


def _add_level(
    connection: sqlite3.Connection,
    table: str,
    key: str,
    parent_key: str,
    parent: int,
    levels: Sequence[str],
) -> int:
    """Add a tag below its parent, unless it is there; return its number."""
    for name in levels:
        table_name = table.split()[0]
        row = connection.execute(
            f"SELECT {key} FROM {table_name} WHERE {parent_key} = ? AND name = ?", (parent, name)
        ).fetchone()
        if row is None:
            values = "?, ?, lower(hex(randomblob(8)))" if "id_global" in table else "?, ?"
            cursor = connection.execute(f"INSERT INTO {table} VALUES ({values})", (parent, name))
            row = (cursor.lastrowid,)
        parent = row[0]
    return parent
