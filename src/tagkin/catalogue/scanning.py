"""A scan: what is in the folder now, against what the catalogue knows of it.

Files whose size, time and inode stayed as they were are not read. What is new or changed is read
once: its content is known by its digest, so a photograph that was moved, renamed or copied is the
same photograph.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tagkin.catalogue.catalogue import Catalogue, Run
from tagkin.catalogue.database import sql_text
from tagkin.catalogue.following import Move, embedded_writes, writes_follow, writes_go_along
from tagkin.catalogue.found import Places, TagNumbers, replace_places
from tagkin.catalogue.listing import RACY, Listed, Listing, State, check_listing, list_folder
from tagkin.catalogue.tag_table import read_tag_file
from tagkin.collection import Progress, locate_keywords
from tagkin.errors import UnreadableImage
from tagkin.images import Failure, content_digest, read_bytes

__all__ = ["Scan", "scan"]

_BATCH = 256  # photographs in one transaction: what an interrupted scan has read stays read
_EDITED = "kept by path: the photograph was edited"


@dataclass
class Scan:
    """What a scan found; photographs by their paths from the root."""

    run: int = 0
    n_photographs: int = 0
    n_unchanged: int = 0
    added: list[str] = field(default_factory=list)
    moved: list[tuple[str, str]] = field(default_factory=list)
    """From where, to where: renamed ones as well."""
    copied: list[str] = field(default_factory=list)
    """New ones whose content is that of a photograph that is still where it was."""
    edited: list[str] = field(default_factory=list)
    """Their content is another one now; decisions were kept, with a note."""
    retagged: list[str] = field(default_factory=list)
    """Their files carry other tags than before."""
    gone: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    """Photographs that the tag file names and that are not there."""
    raw_of: dict[str, str] = field(default_factory=dict)
    unread_raw: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """How many of each kind."""
        lists = ("added", "moved", "copied", "edited", "retagged", "gone", "failures")
        return {
            "photographs": self.n_photographs,
            "unchanged": self.n_unchanged,
            **{name: len(getattr(self, name)) for name in lists},
        }


class _Known(NamedTuple):
    """A photograph as the catalogue has it."""

    id: int
    content: int | None
    state: State
    beside: bytes | None
    is_gone: bool


class _Read(NamedTuple):
    """What reading a photograph told."""

    listed: Listed
    digest: str | None
    places: Places | None
    """None where it could not be read: then it carries what it carried."""
    failures: list[Failure]


def scan(
    catalogue: Catalogue,
    tags: str | None = None,
    column: str | None = None,
    *,
    progress: Progress | None = None,
) -> Scan:
    """Bring a catalogue up to date with its folder.

    Parameters
    ----------
    catalogue : Catalogue
        Open for writing.
    tags : path or "embedded", optional
        A tag file that is read besides the keywords in photographs and sidecars. Without it the
        one of the last scan; at first, ``metadata.jsonl`` or ``metadata.csv`` in the folder.
        "embedded": keywords alone.
    column : str, optional
        The column of tags in that file.
    progress : function of (what, done, all), optional

    Notes
    -----
    Nothing in the folder is written. A folder that cannot be searched tells nothing: what was in
    it is taken to be there still.
    """
    step = progress or (lambda what, done, total: None)
    root = catalogue.root
    step("Looking for photographs", 0, 1)
    listing = list_folder(root)
    check_listing(root, listing)
    asked = {"tags": tags, "column": column} if tags is not None else {}
    with catalogue.run("scan", {key: value for key, value in asked.items() if value}) as run:
        found = _Scanner(catalogue, run, listing, step).work(asked)
        run.outcome |= found.counts()
    return found


class _Scanner:
    def __init__(self, catalogue: Catalogue, run: Run, listing: Listing, step: Progress):
        self.catalogue, self.run, self.listing, self.step = catalogue, run, listing, step
        self.result = Scan(
            run.id,
            len(listing.photographs),
            failures=list(listing.failures),
            raw_of=listing.raw_of,
            unread_raw=listing.unread_raw,
        )
        self.known = _known(catalogue)
        self.tag_file = str(catalogue.settings.get("tag_file", ""))
        self._numbers: TagNumbers | None = None
        self._noted: set[str] = set()
        self._written_into: dict[str, int] | None = None
        # contents that appeared at a path where they were not, and there
        self.placed: dict[int, tuple[int, str]] = {}
        self.left: set[int] = set()  # photographs whose path has another content now

    def work(self, asked: dict[str, Any]) -> Scan:
        new, changed, beside = self._compared()
        todo = len(new) + len(changed) + len(beside)
        done = 0
        # changed ones last: whether one was edited or replaced, the new ones tell
        for some, with_content, put in (
            (new, True, self._put_new),
            (beside, False, self._put_known),
            (changed, True, self._put_known),
        ):
            for batch in self._read(some, with_content):
                with self.catalogue.transaction() as connection:
                    for one in batch:
                        put(connection, one)
                done += len(batch)
                self.step("Reading photographs", done, todo)
        self._put_swapped()
        self._put_gone()
        table = read_tag_file(self.catalogue, self.listing, asked, is_stale=bool(todo))
        if table is not None:
            self.result.absent = table.absent
            self._note_retagged(table.changed)
        if todo or self.result.gone:
            self._drop_orphans()
        return self.result

    def numbers(self, connection: sqlite3.Connection) -> TagNumbers:
        """Of tags, read once: there may be many."""
        if self._numbers is None:
            self._numbers = TagNumbers(connection)
        return self._numbers

    # --- looking -------------------------------------------------------------------------

    def _compared(self) -> tuple[list[Listed], list[Listed], list[Listed]]:
        """Photographs that are new, that changed, and beside which something changed."""
        new, changed, beside = [], [], []
        for path, listed in self.listing.photographs.items():
            known = self.known.get(path)
            if known is None:
                new.append(listed)
            elif known.state != listed.state or listed.state.mtime == RACY or known.is_gone:
                changed.append(listed)
            elif known.beside != listed.beside:
                beside.append(listed)
            else:
                self.result.n_unchanged += 1
        return new, changed, beside

    def _read(self, some: Sequence[Listed], with_content: bool) -> Iterator[list[_Read]]:
        """Photographs in batches, read on all cores."""
        with ThreadPoolExecutor() as pool:
            for start in range(0, len(some), _BATCH):
                batch = some[start : start + _BATCH]
                yield list(pool.map(lambda one: _read_one(one, with_content), batch))

    # --- storing -------------------------------------------------------------------------

    def _put_new(self, connection: sqlite3.Connection, one: _Read) -> None:
        """A path that was not there: of a new photograph, a moved one or a copy."""
        path, content, was_known = one.listed.path, None, False
        if one.digest is not None:
            content, was_known = _content(connection, one.digest)
        before = self._elsewhere(connection, content) if was_known else []
        lost = next(((id, old) for id, old, is_there in before if not is_there), None)
        if content is not None and not was_known:
            lost = self._embedded(connection, one, content)
        if lost is not None:
            photograph, old = lost
            self.result.moved.append((old, path))
            self.known.pop(old, None)
            connection.execute(
                "UPDATE photographs SET path = CAST(? AS TEXT), gone = NULL WHERE id = ?",
                (sql_text(path), photograph),
            )
            writes_follow(self.catalogue, connection, photograph, old, path)
        else:
            (self.result.copied if before else self.result.added).append(path)
            added = connection.execute(
                "INSERT INTO photographs (path, content, size, mtime, inode, added) "
                "VALUES (CAST(? AS TEXT), ?, 0, 0, 0, ?)",
                (sql_text(path), content, self.run.id),
            )
            photograph = int(added.lastrowid or 0)
        if content is not None:
            self.placed.setdefault(content, (photograph, path))
        self._put_rest(connection, photograph, content, one)

    def _embedded(
        self, connection: sqlite3.Connection, one: _Read, content: int
    ) -> tuple[int, str] | None:
        """A photograph that tagkin wrote into, and that was moved before a scan saw what it is."""
        photograph = self._written(connection).get(one.digest or "")
        if photograph is None:
            return None
        old, was = connection.execute(
            "SELECT path, content FROM photographs WHERE id = ?", (photograph,)
        ).fetchone()
        if old in self.listing.photographs or was is None:
            return None
        self._put_edited(connection, was, content, one.listed.path)
        return photograph, old

    def _written(self, connection: sqlite3.Connection) -> dict[str, int]:
        """Photographs that tagkin wrote into, read once."""
        if self._written_into is None:
            self._written_into = embedded_writes(connection)
        return self._written_into

    def _written_elsewhere(
        self, connection: sqlite3.Connection, digest: str, photograph: int
    ) -> int | None:
        """What another photograph was that tagkin wrote into, and that is here now."""
        other = self._written(connection).get(digest, photograph)
        if other == photograph:
            return None
        row = connection.execute("SELECT path FROM photographs WHERE id = ?", (other,)).fetchone()
        known = self.known.get(row[0])
        return None if known is None else known.content

    def _elsewhere(
        self, connection: sqlite3.Connection, content: int | None
    ) -> list[tuple[int, str, bool]]:
        """Other paths of a content, and whether it is there still; moved ones first."""
        rows = connection.execute(
            "SELECT id, path FROM photographs WHERE content = ?", (content,)
        ).fetchall()
        there = self.listing.photographs
        return [
            (id, path, path in there or self.listing.is_hidden(self.catalogue.absolute(path)))
            for id, path in rows
        ]

    def _put_known(self, connection: sqlite3.Connection, one: _Read) -> None:
        """A path that was there, with another content, other tags, or only another time."""
        known = self.known[one.listed.path]
        content = known.content
        if one.digest is not None:
            content, was_known = _content(connection, one.digest)
            if content != known.content:
                here = (known.id, one.listed.path)
                was = self._written_elsewhere(connection, one.digest, known.id)
                if not was_known and was is not None:
                    self._put_edited(connection, was, content, one.listed.path)
                    self.placed.setdefault(was, here)
                elif not was_known and known.content is not None:
                    self._put_edited(connection, known.content, content, one.listed.path)
                self.placed.setdefault(content, here)
                self.left.add(known.id)
        if known.is_gone:
            self.result.added.append(one.listed.path)
        self._put_rest(connection, known.id, content, one)

    def _put_edited(self, connection: sqlite3.Connection, old: int, new: int, path: str) -> None:
        """Another content at a path: edited, unless the old content was moved away from there."""
        if old in self.placed:
            self.result.added.append(path)
            return
        self.result.edited.append(path)
        connection.execute(
            "INSERT INTO decisions (run, content, tag, verdict, made_at, suggested_by, "
            "confidence, evidence, note) SELECT run, ?, tag, verdict, made_at, suggested_by, "
            "confidence, evidence, ? FROM decisions WHERE content = ? AND holds",
            (new, _EDITED, old),
        )

    def _put_rest(
        self,
        connection: sqlite3.Connection,
        photograph: int,
        content: int | None,
        one: _Read,
    ) -> None:
        listed, state = one.listed, one.listed.state
        if one.places is None:
            state = state._replace(mtime=RACY)  # tried again by the next scan
        self.result.failures += one.failures
        problem = one.failures[0].reason if one.failures else None
        connection.execute(
            "UPDATE photographs SET size = ?, mtime = ?, inode = ?, beside = ?, problem = ? "
            "WHERE id = ?",
            (*state, listed.beside, problem, photograph),
        )
        connection.execute(
            "UPDATE photographs SET content = ?, gone = NULL "
            "WHERE id = ? AND (content IS NOT ? OR gone IS NOT NULL)",
            (content, photograph, content),
        )
        if one.places is not None and replace_places(
            connection, self.numbers(connection), photograph, one.places, self._is_not_tag_file
        ):
            self._note_retagged([listed.path])

    def _is_not_tag_file(self, file: str) -> bool:
        return not file or file != self.tag_file

    def _note_retagged(self, paths: Sequence[str]) -> None:
        """Photographs that were there before, and carry other tags now."""
        known = {path: self.known[path] for path in paths if path in self.known}
        there = {path for path, one in known.items() if not one.is_gone} - self._noted
        self._noted |= there
        self.result.retagged += [path for path in paths if path in there]

    def _put_swapped(self) -> None:
        """Photographs at paths that others had: what was written for them goes along."""
        there = self.listing.photographs
        moves = [
            Move(known.id, path, *self.placed[known.content])
            for path, known in self.known.items()
            if known.content in self.placed
            and known.id != self.placed[known.content][0]
            and (known.id in self.left or path not in there)
        ]
        if moves:
            with self.catalogue.transaction() as connection:
                writes_go_along(self.catalogue, connection, moves)

    def _put_gone(self) -> None:
        """Photographs that are not there any more; their decisions stay."""
        there = self.listing.photographs
        gone = [
            (known.id, path)
            for path, known in self.known.items()
            if path not in there
            and not known.is_gone
            and not self.listing.is_hidden(self.catalogue.absolute(path))
        ]
        self.result.gone += [path for _, path in gone]
        with self.catalogue.transaction() as connection:
            for photograph, _ in gone:
                connection.execute("DELETE FROM found WHERE photograph = ?", (photograph,))
                connection.execute(
                    "UPDATE photographs SET gone = ? WHERE id = ?", (self.run.id, photograph)
                )

    def _drop_orphans(self) -> None:
        """Suggestions for contents that no file has any more; a later run makes them again."""
        with self.catalogue.transaction() as connection:
            for table in ("suggestions", "doubts"):
                connection.execute(
                    f"DELETE FROM {table} WHERE content IN ("
                    "SELECT id FROM contents WHERE NOT EXISTS (SELECT 1 FROM photographs "
                    "WHERE content = contents.id AND gone IS NULL))"
                )


def _known(catalogue: Catalogue) -> dict[str, _Known]:
    rows = catalogue.rows(
        "SELECT path, id, content, size, mtime, inode, beside, gone IS NOT NULL FROM photographs"
    )
    return {
        path: _Known(id, content, State(size, mtime, inode), beside, bool(gone))
        for path, id, content, size, mtime, inode, beside, gone in rows
    }


def _content(connection: sqlite3.Connection, digest: str) -> tuple[int, bool]:
    """The number of a content, and whether it had one."""
    key = bytes.fromhex(digest)
    row = connection.execute("SELECT id FROM contents WHERE digest = ?", (key,)).fetchone()
    if row is not None:
        return int(row[0]), True
    added = connection.execute("INSERT INTO contents (digest) VALUES (?)", (key,))
    return int(added.lastrowid or 0), False


def _read_one(listed: Listed, with_content: bool) -> _Read:
    """Read a photograph, and what stands beside it; what goes wrong is that file's failure."""
    digest, failures = None, []
    located: dict[str, list[tuple[str, str]]] = {}
    folder = os.path.dirname(listed.file)
    inside = os.path.dirname(listed.path)
    try:
        if with_content:
            digest = content_digest(read_bytes(listed.file))
        for file in (listed.file, *listed.raws):
            tags, problems = locate_keywords(file)
            failures += problems
            for tag, places in tags.items():
                located.setdefault(tag, []).extend(
                    (word, _relative(place, listed.file, folder, inside))
                    for place, word in places.items()
                )
    except UnreadableImage as error:
        failures.append(Failure(listed.file, str(error)))
        return _Read(listed, None, None, failures)
    return _Read(listed, digest, located, failures)


def _relative(place: str, photograph: str, folder: str, inside: str) -> str:
    """A file beside a photograph as a place: from the root, or "" for the photograph itself."""
    if place == photograph:
        return ""
    name = place[len(os.path.join(folder, "")) :].replace(os.sep, "/")
    return f"{inside}/{name}" if inside else name
