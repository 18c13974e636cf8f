"""Which files of a collection were read: where tags were found, and what could not be read."""

from __future__ import annotations

from typing import NamedTuple

from tagkin.catalogue.database import Database
from tagkin.images import Failure

__all__ = ["FilesRead", "folders_of", "read_files_read"]

# The places of the lists of tags, by the end of the file's name; see `seen_lists`.
_PLACES = """
SELECT CASE WHEN f.key = '' THEN 'photograph' WHEN f.key LIKE '//%' THEN 'server'
    WHEN lower(f.key) LIKE '%.xmp' THEN 'sidecar' ELSE 'raw' END AS place, count(*)
FROM seen_lists l JOIN photographs p ON p.id = l.photograph AND p.gone IS NULL,
    json_each(l.lists) f
WHERE EXISTS (SELECT 1 FROM json_each(f.value) w WHERE w.value <> '[]') GROUP BY place
"""


class FilesRead(NamedTuple):
    """The files that the last scan read."""

    n_with_tags: dict[str, int]
    """Files with tags, by kind: photograph, sidecar, raw, server."""
    tag_file: str
    """The tag file, from the root; empty without one."""
    problems: list[Failure]
    """The first photographs that cannot be read, or whose metadata cannot be; from the root."""
    n_problems: int


def read_files_read(database: Database, n: int) -> FilesRead:
    """Return which files were read, with at most `n` problems."""
    rows = database.rows(
        "SELECT path, problem FROM photographs WHERE gone IS NULL AND problem IS NOT NULL "
        "ORDER BY id LIMIT ?",
        (n,),
    )
    n_problems: int = database.value(
        "SELECT count(*) FROM photographs WHERE gone IS NULL AND problem IS NOT NULL"
    )
    tag_file = database.settings.get("tag_file", "")
    return FilesRead(
        dict(database.rows(_PLACES)),
        tag_file if isinstance(tag_file, str) else "",
        [Failure(path, problem) for path, problem in rows],
        n_problems,
    )


def folders_of(database: Database, n: int) -> list[str]:
    """Return at most `n` folders with photographs and the folders they are in, from the root."""
    folders: set[str] = set()
    for path in database.column("SELECT path FROM photographs WHERE gone IS NULL"):
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(folders)[:n]
