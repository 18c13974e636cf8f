"""Catalogues of other programs: SQLite files that tagkin reads from a private copy.

The copy includes the log that SQLite keeps beside the file, so it is complete while the program
runs. A journal is never copied: rolling it back can delete any file that it names. The original is
only ever opened for reading. A catalogue may come from anyone: every value is checked, and the
numbers of bytes, rows and steps are limited.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from tagkin.collection.keywords import MAX_LENGTH
from tagkin.collection.levels import tidy
from tagkin.collection.matching import TagTable
from tagkin.errors import InvalidInput, StorageError
from tagkin.sqlite import check_journal, connect, has_hot_journal

__all__ = [
    "MAX_BYTES",
    "MAX_CHARACTERS",
    "MAX_PHOTOGRAPHS",
    "MAX_ROWS",
    "MAX_STEPS",
    "MAX_TAGS",
    "ProgramDatabase",
    "copy_file",
    "open_database",
]

MAX_BYTES = 16 << 30  # of a catalogue
MAX_ROWS = 20_000_000  # of a query: tags of photographs
MAX_TAGS = 1_000_000
MAX_PHOTOGRAPHS = 2_000_000  # with tags
MAX_CHARACTERS = 1 << 28  # of all paths, and of all tags
_MAX_PATH = 4096  # characters
MAX_STEPS = 5_000  # million instructions of SQLite; 100,000 photographs take less than 1 % of it
_STEP = 1_000_000
_MAX_VALUE = 1 << 16  # bytes of a value, except in a catalogue whose reader needs larger ones
_BLOCK = 1 << 20  # bytes
_LOG = "-wal"  # the file beside a database that is copied with it
_ATTEMPTS = 3  # to copy a file that changes meanwhile
_NAMES = {int: "a number", str: "a text", float: "a fraction", bytes: "bytes", type(None): "empty"}


class ProgramDatabase:
    """The open copy of a program's catalogue."""

    def __init__(self, connection: sqlite3.Connection, copy: Path, path: Path, program: str):
        self._connection = connection
        self.copy = copy
        self.path = path
        self.program = program

    def fault(self, problem: str) -> InvalidInput:
        """Return the error for a file that is not as the program writes it."""
        return InvalidInput(f"{self.path} is not as {self.program} writes it: {problem}.")

    def check_tables(self) -> None:
        """Reject columns that are computed: a few bytes can stand for days of work."""
        query = (
            "SELECT s.name FROM sqlite_schema s, pragma_table_xinfo(s.name) x WHERE x.hidden > 1 "
            "AND s.type = 'table' AND s.sql NOT LIKE 'CREATE VIRTUAL TABLE%' LIMIT 1"
        )
        for (table,) in self.rows(query, str):
            raise self.fault(f"{table!r:.80} computes a column")

    def check_version(self, query: str, known: range, advice: str) -> None:
        """Reject a database whose version, the result of a query, is not known."""
        (version,) = next(self.rows(query, (int, str, type(None))), (None,))
        if not str(version).isdecimal() or int(str(version)[:9]) not in known:
            raise InvalidInput(
                f"{self.path} is of a {self.program} that tagkin does not know: its version is "
                f"{str(version)[:20]}, not {known[0]} to {known[-1]}. {advice}"
            )

    def rows(self, query: str, *types: type | tuple[type, ...]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query, whose columns have these types (sqlite3 knows them as Any)."""
        for n, row in enumerate(self._connection.execute(query)):
            if n >= MAX_ROWS:
                raise self.fault(f"it has more than {MAX_ROWS:,} entries")
            if not all(map(isinstance, row, types)):
                kinds = ", ".join(_NAMES[type(value)] for value in row)
                raise self.fault(f"{query.split(' FROM ')[0]} finds {kinds}")
            yield row

    def tag_names(self, query: str) -> dict[int, str]:
        """Return tags with all their levels, by number.

        `query` gives the number, the parent's number or NULL, and the name of each level. A level
        without a name is the root. A ``|`` in a name would be read as two levels, so it becomes a
        slash, as in files.
        """
        levels: dict[int, tuple[int | None, str]] = {}
        n_characters = 0
        for number, parent, name in self.rows(query, int, (int, type(None)), (str, type(None))):
            name = tidy((name or "").replace("|", "/"))
            self._check_tag(name)
            levels[number] = parent, name
            n_characters += len(name)
            if len(levels) > MAX_TAGS:
                raise self.fault(f"it has more than {MAX_TAGS:,} tags")
        names: dict[int, str] = {}
        for number in levels:
            chain: list[int] = []
            above: int | None = number
            while above is not None and above in levels and above not in names:
                chain.append(above)
                if len(chain) > len(levels):
                    raise self.fault(f"the tag {levels[number][1]!r} is below itself")
                above = levels[above][0]
            for level in reversed(chain):
                parent, name = levels[level]
                upper = "" if parent is None else names.get(parent, "")
                names[level] = "|".join(filter(None, (upper, name)))
                self._check_tag(names[level])
                n_characters += len(names[level])
            if n_characters > MAX_CHARACTERS:
                raise self.fault(f"its tags have more than {MAX_CHARACTERS:,} characters")
        return names

    def _check_tag(self, tag: str) -> None:
        if len(tag) > MAX_LENGTH:
            raise self.fault(f"a tag has more than {MAX_LENGTH} characters")

    def tag_table(self, roots: Mapping[int, str], query: str, names: Mapping[int, str]) -> TagTable:
        """Return the tags of all photographs.

        `query` gives, for each tag of a photograph, the number of the root, the folder below it,
        the name of the file, and the number of the tag. Tags without a name are left out.
        """
        folders = {root: _join(path.replace("\\", "/").split("/")) for root, path in roots.items()}
        tags: dict[str, list[str]] = {}
        n_characters = 0
        # photographs need not be in order
        for photograph, rows in groupby(self.rows(query, int, str, str, int), itemgetter(0, 1, 2)):
            row_tags = [names[tag] for *_, tag in rows if names.get(tag)]
            root, album, file = photograph
            if root not in folders or not row_tags:
                continue
            if len(folders[root]) + len(album) + len(file) > _MAX_PATH:
                raise self.fault(f"a path has more than {_MAX_PATH:,} characters")
            parts = [folders[root], *album.replace("\\", "/").split("/")]
            if not file or "/" in file or ".." in (*parts, file):
                raise self.fault(f"{album!r} and {file!r} are not a path below a folder")
            path = _join([*parts, file])
            tags.setdefault(path, []).extend(row_tags)
            n_characters += len(path)
            if len(tags) > MAX_PHOTOGRAPHS:
                raise self.fault(f"it has tags of more than {MAX_PHOTOGRAPHS:,} photographs")
            if n_characters > MAX_CHARACTERS:
                raise self.fault(f"its paths have more than {MAX_CHARACTERS:,} characters")
        known = sorted(set(folders.values()))
        return TagTable(list(tags), list(tags.values()), known)


def _join(parts: Sequence[str]) -> str:
    """Join the levels of a path; an absolute path stays absolute."""
    start = "/" if parts[0][:1] in ("", "/") else ""
    return start + "/".join(level.strip("/") for level in parts if level.strip("/"))


@contextmanager
def open_database(
    path: Path, program: str, max_value: int = _MAX_VALUE
) -> Iterator[ProgramDatabase]:
    """Open a private copy of a program's catalogue, for reading.

    Queries must not sort, because rows that are sorted can fill the disk.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="tagkin-") as folder:
            copy = _copy(path, Path(folder), program)
            with closing(connect(copy, "ro")) as connection:
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max_value)
                connection.text_factory = lambda data: data.decode("utf-8", "replace")
                for pragma in ("query_only = 1", "trusted_schema = 0", "cell_size_check = 1"):
                    connection.execute(f"PRAGMA {pragma}")
                connection.execute("PRAGMA automatic_index = 0")  # it would be on the disk
                connection.set_authorizer(_deny_views)
                steps = count()
                connection.set_progress_handler(lambda: next(steps) >= MAX_STEPS, _STEP)
                database = ProgramDatabase(connection, copy, path, program)
                database.check_tables()
                yield database
    except (sqlite3.Error, OverflowError, UnicodeError) as error:  # the last in messages of SQLite
        raise InvalidInput(
            f"{path} is damaged or not a catalogue of {program} ({error})."
        ) from error
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}.") from error


def _deny_views(action: int, *names: str | None) -> int:
    """Deny what a view reads: a few bytes of it can stand for any number of rows."""
    return sqlite3.SQLITE_OK if names[-1] is None else sqlite3.SQLITE_DENY


def _copy(path: Path, folder: Path, program: str) -> Path:
    """Copy a database with the log beside it, in one state."""
    copy = folder / "catalogue"
    path = Path(os.path.realpath(path))  # the log is beside the file that a link leads to
    for _ in range(_ATTEMPTS):
        before = _states(path)
        check_journal(path)
        if has_hot_journal(path):
            raise StorageError(
                f"Close {program} first: it is changing {path}, or was interrupted, so there is a "
                f"{path.name}-journal. If the journal stays, open the catalogue in {program} once."
            )
        n_bytes = sum(state[0] for state in before.values())
        if n_bytes > min(MAX_BYTES, shutil.disk_usage(folder).free):
            raise StorageError(
                f"{path} has {n_bytes:,} bytes, and tagkin reads a copy: there is no room for it "
                f"in {folder.parent}, or it is above {MAX_BYTES >> 30} GB. Set TMPDIR to a folder "
                "on a larger disk."
            )
        for suffix in ("", _LOG):
            target = Path(f"{copy}{suffix}")
            if suffix in before:
                copy_file(f"{path}{suffix}", target, before[suffix][0])
            else:
                target.unlink(missing_ok=True)
        if _states(path) == before:
            return copy
    raise StorageError(f"{path} changes while tagkin copies it. Close {program} and try again.")


def copy_file(source: str, target: Path, n_bytes: int) -> None:
    """Copy the first bytes of a file; a file that grows has no end."""
    with open(source, "rb") as reader, target.open("wb") as writer:
        while n_bytes > 0 and (block := reader.read(min(n_bytes, _BLOCK))):
            writer.write(block)
            n_bytes -= len(block)


def _states(path: Path) -> dict[str, tuple[int, int, int]]:
    """Return size, time and inode of a database and the files beside it, by suffix."""
    states = {}
    for suffix in ("", _LOG, "-journal"):
        if not suffix or os.path.isfile(f"{path}{suffix}"):
            status = os.stat(f"{path}{suffix}")
            if not stat.S_ISREG(status.st_mode):
                raise StorageError(f"{path} is not a file.")
            states[suffix] = (status.st_size, status.st_mtime_ns, status.st_ino)
    return states
