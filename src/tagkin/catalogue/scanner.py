"""A scan: compares the folder with the catalogue, and reads new and changed files.

Files with the same size, time and inode are not read. A photograph is known by the digest of its
content, so a moved, renamed or copied photograph is recognised.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tagkin.catalogue.columns import sql_text
from tagkin.catalogue.database import Database, Run
from tagkin.catalogue.listing import RACY, Listed, Listing, State, check_listing, list_folder
from tagkin.catalogue.moved_writes import Move, move_writes, photographs_written_into, swap_writes
from tagkin.catalogue.other_tags import (
    change_kinds,
    read_kind_settings,
    replace_other_tags,
    store_kind_settings,
)
from tagkin.catalogue.tag_file import read_tag_file
from tagkin.catalogue.tag_records import Places, TagNumbers, replace_places
from tagkin.catalogue.write_records import Writes
from tagkin.collection import Shot, read_metadata
from tagkin.collection.kinds import Kinds, KindTag, read_kinds
from tagkin.collection.places import check_gazetteer
from tagkin.errors import UnreadableImage
from tagkin.images import Failure, content_digest, read_bytes
from tagkin.progress import Progress

__all__ = ["Scan", "scan_folder"]

# photographs in a transaction, which an interrupted scan keeps: few at first, because the review
# page shows them as they are stored
_FIRST_BATCH, _BATCH = 32, 256
_EDITED = "kept by path: the photograph was edited"
_ORPHANS = (
    "SELECT id FROM contents WHERE NOT EXISTS (SELECT 1 FROM photographs "
    "WHERE content = contents.id AND gone IS NULL)"
)


@dataclass
class Scan:
    """The result of a scan; photographs are paths from the root."""

    run: int = 0
    n_photographs: int = 0
    n_unchanged: int = 0
    added: list[str] = field(default_factory=list)
    moved: list[tuple[str, str]] = field(default_factory=list)
    """Moved and renamed photographs: old path, new path."""
    copied: list[str] = field(default_factory=list)
    """New copies of photographs that are still in place."""
    edited: list[str] = field(default_factory=list)
    """Photographs with a new content; their decisions were kept, with a note."""
    retagged: list[str] = field(default_factory=list)
    """Photographs whose files have other tags than before."""
    gone: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    """Photographs that the tag file names and that do not exist."""
    raw_of: dict[str, str] = field(default_factory=dict)
    unread_raw: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """Return the number of photographs of each kind."""
        lists = ("added", "moved", "copied", "edited", "retagged", "gone", "failures")
        return {
            "photographs": self.n_photographs,
            "unchanged": self.n_unchanged,
            **{name: len(getattr(self, name)) for name in lists},
        }


class _Known(NamedTuple):
    """A photograph in the catalogue."""

    id: int
    content: int | None
    state: State
    beside: bytes | None
    is_gone: bool


class _Reading(NamedTuple):
    """The result of reading a photograph."""

    listed: Listed
    digest: str | None
    places: Places | None
    """None if it could not be read; then its known tags stay."""
    failures: list[Failure]
    shot: Shot = Shot()
    others: Sequence[KindTag] = ()
    """Tags of other kinds; their files are from the root."""


class _Options(NamedTuple):
    """How photographs are read."""

    parents: Collection[str]
    """The parents below which tagkin wrote tags."""
    kinds: Kinds


def scan_folder(database: Database, options: dict[str, Any], step: Progress) -> Scan:
    """Bring a catalogue up to date; `options` are as in `Catalogue.scan`."""
    kinds = change_kinds(read_kind_settings(database), options.pop("kinds", {}))
    if kinds.places:
        check_gazetteer()
    step("Looking for photographs", 0, 1)
    listing = list_folder(database.root)
    check_listing(database.root, listing)
    parameters = {key: value for key, value in options.items() if value} | kinds.to_dict()
    with database.run("scan", parameters) as run:
        result = _Scanner(database, run, listing, kinds, step).scan(options)
        store_kind_settings(database, kinds)
        run.outcome |= result.counts()
    return result


class _Scanner:
    def __init__(
        self, database: Database, run: Run, listing: Listing, kinds: Kinds, step: Progress
    ):
        self.database, self.run, self.listing, self.step = database, run, listing, step
        self.result = Scan(
            run.id,
            len(listing.photographs),
            failures=list(listing.failures),
            raw_of=listing.raw_of,
            unread_raw=listing.unread_raw,
        )
        self.known = _known_photographs(database)
        self.options = _Options(Writes(database).parents(), kinds)
        self.has_other_kinds = kinds != read_kind_settings(database)
        self.tag_file = str(database.settings.get("tag_file", ""))
        self._retagged: set[str] = set()
        # contents that appeared at a new path: the photograph there and its path
        self.placed: dict[int, tuple[int, str]] = {}
        self.left: set[int] = set()  # photographs whose path has another content now

    def _begin_batch(self, connection: sqlite3.Connection) -> None:
        """Read the data that the review page or a fit may change between two batches."""
        self.numbers = TagNumbers(connection)
        self.written_into = photographs_written_into(connection)

    def scan(self, options: dict[str, Any]) -> Scan:
        new, changed, beside = self._compare()
        total = len(new) + len(changed) + len(beside)
        done = 0
        # changed photographs last: the new ones show whether they were edited or replaced
        for photographs, with_content, store in (
            (new, True, self._store_new),
            (beside, False, self._store_known),
            (changed, True, self._store_known),
        ):
            for batch in _read_batches(photographs, with_content, self.options):
                with self.database.transaction() as connection:
                    self._begin_batch(connection)
                    for reading in batch:
                        store(connection, reading)
                done += len(batch)
                self.step("Reading photographs", done, total)
        self._update_swapped()
        self._mark_gone()
        retagged, self.result.absent = read_tag_file(
            self.database, self.listing, options, is_stale=bool(total)
        )
        self._note_retagged(retagged)
        if total or self.result.gone:
            self._drop_orphans()
        return self.result

    def _compare(self) -> tuple[list[Listed], list[Listed], list[Listed]]:
        """Return photographs that are new, that changed, and whose sidecars changed."""
        new, changed, beside = [], [], []
        for path, listed in self.listing.photographs.items():
            known = self.known.get(path)
            if known is None:
                new.append(listed)
            elif known.state != listed.state or listed.state.mtime == RACY or known.is_gone:
                changed.append(listed)
            elif known.beside != listed.beside or self.has_other_kinds:
                beside.append(listed)
            else:
                self.result.n_unchanged += 1
        return new, changed, beside

    # --- storing -------------------------------------------------------------------------

    def _store_new(self, connection: sqlite3.Connection, reading: _Reading) -> None:
        """Store a new path: of a new photograph, a moved one or a copy."""
        path, content, was_known = reading.listed.path, None, False
        if reading.digest is not None:
            content, was_known = _number_of_content(connection, reading.digest)
        former: tuple[int, str] | None = None
        is_copy = False
        if was_known:
            former, is_copy = self._former_path(connection, content)
        elif content is not None:
            former = self._former_path_of_written(connection, reading, content)
        if former is not None:
            photograph, old = former
            self.result.moved.append((old, path))
            self.known.pop(old, None)
            connection.execute(
                "UPDATE photographs SET path = CAST(? AS TEXT), gone = NULL WHERE id = ?",
                (sql_text(path), photograph),
            )
            move_writes(self.database, connection, photograph, old, path)
        else:
            (self.result.copied if is_copy else self.result.added).append(path)
            cursor = connection.execute(
                "INSERT INTO photographs (path, content, size, mtime, inode, added) "
                "VALUES (CAST(? AS TEXT), ?, 0, 0, 0, ?)",
                (sql_text(path), content, self.run.id),
            )
            photograph = int(cursor.lastrowid or 0)
        if content is not None:
            self.placed.setdefault(content, (photograph, path))
        self._store_state(connection, photograph, content, reading)

    def _former_path(
        self, connection: sqlite3.Connection, content: int | None
    ) -> tuple[tuple[int, str] | None, bool]:
        """Return a path that a content left, and whether the catalogue knows any path of it."""
        rows = connection.execute(
            "SELECT id, path FROM photographs WHERE content = ?", (content,)
        ).fetchall()
        left = (
            (id, path)
            for id, path in rows
            if path not in self.listing.photographs
            and not self.listing.is_hidden(self.database.absolute(path))
        )
        return next(left, None), bool(rows)

    def _former_path_of_written(
        self, connection: sqlite3.Connection, reading: _Reading, content: int
    ) -> tuple[int, str] | None:
        """Find a photograph that tagkin wrote into and that moved before the next scan."""
        photograph = self.written_into.get(reading.digest or "")
        if photograph is None:
            return None
        old, former_content = connection.execute(
            "SELECT path, content FROM photographs WHERE id = ?", (photograph,)
        ).fetchone()
        if old in self.listing.photographs or former_content is None:
            return None
        self._store_edited(connection, former_content, content, reading.listed.path)
        return photograph, old

    def _content_before_writing(
        self, connection: sqlite3.Connection, digest: str, photograph: int
    ) -> int | None:
        """Return the former content of another photograph that tagkin wrote into, now here."""
        other = self.written_into.get(digest, photograph)
        if other == photograph:
            return None
        row = connection.execute("SELECT path FROM photographs WHERE id = ?", (other,)).fetchone()
        known = self.known.get(row[0])
        return None if known is None else known.content

    def _store_known(self, connection: sqlite3.Connection, reading: _Reading) -> None:
        """Store a known path, with another content, other tags, or only another time."""
        path = reading.listed.path
        known = self.known[path]
        content = known.content
        if reading.digest is not None:
            content, was_known = _number_of_content(connection, reading.digest)
            if content != known.content:
                here = (known.id, path)
                former = self._content_before_writing(connection, reading.digest, known.id)
                if not was_known and former is not None:
                    self._store_edited(connection, former, content, path)
                    self.placed.setdefault(former, here)
                elif not was_known and known.content is not None:
                    self._store_edited(connection, known.content, content, path)
                self.placed.setdefault(content, here)
                self.left.add(known.id)
        if known.is_gone:
            self.result.added.append(path)
        self._store_state(connection, known.id, content, reading)

    def _store_edited(self, connection: sqlite3.Connection, old: int, new: int, path: str) -> None:
        """Copy the decisions to a path's new content, unless the old content moved away."""
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

    def _store_state(
        self,
        connection: sqlite3.Connection,
        photograph: int,
        content: int | None,
        reading: _Reading,
    ) -> None:
        listed, state = reading.listed, reading.listed.state
        if reading.places is None:
            state = state._replace(mtime=RACY)  # the next scan tries again
        self.result.failures += reading.failures
        problem = reading.failures[0].reason if reading.failures else None
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
        if reading.places is None:
            return
        taken, *texts, rating = reading.shot
        connection.execute(
            "UPDATE photographs SET taken = ?, camera = ?, serial = ?, lens = ?, rating = ? "
            "WHERE id = ?",
            (taken and taken.isoformat(), *(text or None for text in texts), rating, photograph),
        )
        if replace_places(
            connection, self.numbers, photograph, reading.places, self._is_not_tag_file
        ):
            self._note_retagged([listed.path])
        replace_other_tags(connection, photograph, reading.others)

    def _is_not_tag_file(self, file: str) -> bool:
        return not file or file != self.tag_file

    def _note_retagged(self, paths: Sequence[str]) -> None:
        """Note photographs that existed before and have other tags now."""
        known = {path: self.known[path] for path in paths if path in self.known}
        new = {path for path, photo in known.items() if not photo.is_gone} - self._retagged
        self._retagged |= new
        self.result.retagged += [path for path in paths if path in new]

    def _update_swapped(self) -> None:
        """Update the write records of photographs at paths that other photographs had."""
        listed = self.listing.photographs
        moves = [
            Move(known.id, path, *self.placed[known.content])
            for path, known in self.known.items()
            if known.content in self.placed
            and known.id != self.placed[known.content][0]
            and (known.id in self.left or path not in listed)
        ]
        if moves:
            with self.database.transaction() as connection:
                swap_writes(self.database, connection, moves)

    def _mark_gone(self) -> None:
        """Mark missing photographs as gone; their decisions stay."""
        gone = [
            (known.id, path)
            for path, known in self.known.items()
            if path not in self.listing.photographs
            and not known.is_gone
            and not self.listing.is_hidden(self.database.absolute(path))
        ]
        self.result.gone += [path for _, path in gone]
        with self.database.transaction() as connection:
            for photograph, _ in gone:
                for table in ("found", "other_found"):
                    connection.execute(f"DELETE FROM {table} WHERE photograph = ?", (photograph,))
                connection.execute(
                    "UPDATE photographs SET gone = ? WHERE id = ?", (self.run.id, photograph)
                )

    def _drop_orphans(self) -> None:
        """Remove suggestions for contents without a file; a later run makes them again."""
        with self.database.transaction() as connection:
            for table in ("suggestions", "doubts"):
                connection.execute(f"DELETE FROM {table} WHERE content IN ({_ORPHANS})")
            connection.execute(
                "UPDATE contents SET suggested = NULL "
                f"WHERE suggested IS NOT NULL AND id IN ({_ORPHANS})"
            )


def _known_photographs(database: Database) -> dict[str, _Known]:
    rows = database.rows(
        "SELECT path, id, content, size, mtime, inode, beside, gone IS NOT NULL FROM photographs"
    )
    return {
        path: _Known(id, content, State(size, mtime, inode), beside, bool(gone))
        for path, id, content, size, mtime, inode, beside, gone in rows
    }


def _number_of_content(connection: sqlite3.Connection, digest: str) -> tuple[int, bool]:
    """Return the number of a content, added if needed, and whether it was known."""
    key = bytes.fromhex(digest)
    row = connection.execute("SELECT id FROM contents WHERE digest = ?", (key,)).fetchone()
    if row is not None:
        return int(row[0]), True
    cursor = connection.execute("INSERT INTO contents (digest) VALUES (?)", (key,))
    return int(cursor.lastrowid or 0), False


# --- reading files -----------------------------------------------------------------------


def _read_batches(
    photographs: Sequence[Listed], with_content: bool, options: _Options
) -> Iterator[list[_Reading]]:
    """Yield photographs in batches, read on all cores."""
    start, size = 0, _FIRST_BATCH
    with ThreadPoolExecutor() as pool:
        while batch := photographs[start : start + size]:
            yield list(pool.map(lambda listed: _read(listed, with_content, options), batch))
            start, size = start + size, min(2 * size, _BATCH)


def _read(listed: Listed, with_content: bool, options: _Options) -> _Reading:
    """Read a photograph and its sidecars; errors are failures of that file."""
    digest, failures, shot = None, [], Shot()
    places_of: dict[str, list[tuple[str, str]]] = {}
    try:
        if with_content:
            digest = content_digest(read_bytes(listed.file))
        for file in (listed.file, *listed.raws):
            metadata = read_metadata(file, options.parents)
            failures += metadata.problems
            shot = shot.or_else(metadata.shot)
            for tag, places in metadata.tags.items():
                places_of.setdefault(tag, []).extend(
                    (word, _path_from_root(place, listed)) for place, word in places.items()
                )
    except UnreadableImage as error:
        failures.append(Failure(listed.file, str(error)))
        return _Reading(listed, None, None, failures)
    others = [
        tag._replace(file=tag.file and _path_from_root(tag.file, listed))
        for tag in read_kinds((listed.file, *listed.raws), listed.path, options.kinds)
    ]
    return _Reading(listed, digest, places_of, failures, shot, others)


def _path_from_root(place: str, listed: Listed) -> str:
    """Return the path of a file beside a photograph, or "" for the photograph itself."""
    if place == listed.file:
        return ""
    start = len(os.path.join(os.path.dirname(listed.file), ""))
    return "/".join(
        filter(None, (os.path.dirname(listed.path), place[start:].replace(os.sep, "/")))
    )
