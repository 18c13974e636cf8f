"""A scan: compares the folder with the catalogue, and reads new and changed files.

Files with the same size, time and inode are not read. A photograph is known by the digest of its
content: all contents are matched with the known photographs before a path counts as new, edited or
gone, so photographs that took each other's names are moved photographs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from tagkin.catalogue.columns import sql_text
from tagkin.catalogue.database import HAS_FILE, Database, Run, set_fields
from tagkin.catalogue.decision_records import end_former_removals
from tagkin.catalogue.edits import carry_decisions, let_decisions_wait, list_to_confirm
from tagkin.catalogue.listing import RACY, Listed, Listing, PhotographRead, State, read_batches
from tagkin.catalogue.photographs import add_content
from tagkin.catalogue.seen_lists import store_lists
from tagkin.catalogue.source import Source
from tagkin.catalogue.tag_file import (
    FileTags,
    TagFile,
    begin_tag_file,
    read_tag_file,
    store_tag_file,
)
from tagkin.catalogue.write_records import photographs_written_into
from tagkin.collection.facts import stored_facts
from tagkin.images import Failure
from tagkin.progress import Progress

__all__ = ["Scan", "scan_folder"]

_ORPHANS = f"SELECT id FROM contents WHERE NOT {HAS_FILE.format('contents.id')}"


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
    """Photographs with a new content at the same path."""
    to_confirm: list[str] = field(default_factory=list)
    """Photographs that may be others now, so the decisions on them wait."""
    retagged: list[str] = field(default_factory=list)
    """Photographs whose files have other tags than before."""
    overwritten: dict[str, list[str]] = field(default_factory=dict)
    """Photographs whose list of this name a program overwrote; other lists keep the tags."""
    gone: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    """Photographs that the tag file names and that do not exist."""
    raw_of: dict[str, str] = field(default_factory=dict)

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

    path: str
    id: int
    content: int | None
    state: State
    beside: bytes | None
    is_gone: bool

    def distance_to(self, path: str) -> tuple[bool, bool, bool, int]:
        """Return a smaller value the more likely the photograph moved to a path."""
        (folder, name), (new_folder, new_name) = map(os.path.split, (self.path, path))
        return self.path != path, name != new_name, folder != new_folder, self.id


def scan_folder(
    database: Database, source: Source, step: Progress, tag_file: TagFile | None = None
) -> Scan:
    """Bring a catalogue up to date; see `Catalogue.scan`."""
    step("Looking for photographs", 0, 1)
    listing = source.list_photographs(step)
    parameters = set_fields(vars(tag_file)) if tag_file else {}
    with database.run("scan", parameters) as run:
        result = _Scanner(database, run, source, listing).scan(tag_file, step)
        run.outcome |= result.counts()
    return result


class _Scanner:
    def __init__(self, database: Database, run: Run, source: Source, listing: Listing):
        self.database, self.run, self.source, self.listing = database, run, source, listing
        self.result = Scan(
            run.id,
            len(listing.photographs),
            failures=list(listing.failures),
            raw_of=listing.raw_of,
        )
        self.known = {photo.path: photo for photo in _read_known(database)}
        self.file_tags: FileTags | None = None  # stored with each photograph
        self._retagged: set[str] = set()
        self._held: list[PhotographRead] = []  # until all contents are known
        self._moved: set[int] = set()  # photographs that have another path now

    def scan(self, tag_file: TagFile | None, step: Progress) -> Scan:
        new, changed, beside = self._compare()
        total = len(new) + len(changed) + len(beside)
        done = 0
        file_tags = read_tag_file(self.database, self.listing, tag_file, is_stale=bool(total))
        if file_tags is not None and not file_tags.replaces_another:
            begin_tag_file(self.database, file_tags)
            self.file_tags = file_tags
        new.sort(key=lambda listed: not self._is_likely_tagged(listed))
        for photographs, with_content in ((beside, False), (changed, True), (new, True)):
            read = partial(self.source.read, with_content=with_content)
            for batch in read_batches(photographs, read):
                with self.database.transaction():
                    self.written_into = photographs_written_into(self.database)
                    for reading in batch:
                        self._store(reading)
                done += len(batch)
                step("Reading photographs", done, total)
        if self._held:
            with self.database.transaction():
                self.written_into = photographs_written_into(self.database)
                self._match()
        self._mark_gone()
        if file_tags is not None:
            self._note_retagged(store_tag_file(self.database, file_tags))
            self.result.absent = list(file_tags.absent)
        if total or self.result.gone:
            self._drop_orphans()
        self.result.to_confirm = list_to_confirm(self.database)
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
            elif known.beside != listed.beside:
                beside.append(listed)
            else:
                self.result.n_unchanged += 1
        return new, changed, beside

    # --- storing -------------------------------------------------------------------------

    def _store(self, reading: PhotographRead) -> None:
        """Store a photograph, unless its content may have come from another path."""
        path, digest = reading.listed.path, reading.digest
        known = self.known.get(path)
        content = None if known is None else known.content
        if digest is not None:
            content, former = _find_content(self.database, digest), content
            may_be_another = content is None or content != former
            if known is None:
                may_be_another = content is not None or digest in self.written_into
            if may_be_another:
                self._held.append(reading)
                return
        if known is None:
            self._add(reading)
            return
        if known.is_gone:
            self.result.added.append(path)
        self._store_state(known.id, content, reading)

    def _match(self) -> None:
        """Store the paths with contents of other paths, moved photographs first."""
        left = [self.known[r.listed.path] for r in self._held if r.listed.path in self.known]
        vacant = self._vacant_photographs({photo.id for photo in left})
        matched, others = [], []
        for reading in self._held:
            photograph = self._take_match(vacant, reading)
            if photograph is None:
                others.append(reading)
            else:
                matched.append((photograph, reading))
        self._moved |= {photograph.id for photograph, _ in matched}
        # no two photographs have a path at the same time
        self.database.execute_many(
            "UPDATE photographs SET gone = ? WHERE id = ? AND gone IS NULL",
            [(self.run.id, id) for id in {photo.id for photo in left} | self._moved],
        )
        for photograph, reading in matched:
            self._store_match(photograph, reading)
        for reading in others:
            self._store_other(reading)
        for photograph, reading in matched:
            if photograph.path != reading.listed.path:
                self.source.follow_writes(photograph.id, reading.listed.path)

    def _vacant_photographs(self, left: set[int]) -> dict[int | None, list[_Known]]:
        """Return the photographs that are not at their paths any more, by content."""
        vacant: dict[int | None, list[_Known]] = {}
        for photo in _read_known(self.database):
            if photo.is_gone or photo.id in left or self._is_missing(photo.path):
                vacant.setdefault(photo.content, []).append(photo)
        return vacant

    def _take_match(
        self, vacant: dict[int | None, list[_Known]], reading: PhotographRead
    ) -> _Known | None:
        """Take the photograph that is at a path now out of the vacant ones, by its content.

        The content may also be that from before or after tagkin wrote into the photograph.
        """
        digest, path = reading.digest or "", reading.listed.path
        candidates = vacant.get(_find_content(self.database, digest) or 0, [])
        if not candidates and (number := self.written_into.get(digest)) is not None:
            candidates = [p for some in vacant.values() for p in some if p.id == number]
        if not candidates:
            return None
        best = min(candidates, key=lambda photograph: photograph.distance_to(path))
        vacant[best.content].remove(best)
        return best

    def _store_match(self, photograph: _Known, reading: PhotographRead) -> None:
        path, former = reading.listed.path, photograph.content
        content = add_content(self.database, bytes.fromhex(reading.digest or ""))
        if former is not None and former != content:  # tagkin wrote into it
            carry_decisions(self.database, former, content)
            end_former_removals(self.database, self.run.id, former, content)
        if photograph.path != path:
            self.result.moved.append((photograph.path, path))
        else:
            changes = self.result.added if photograph.is_gone else self.result.edited
            changes.append(path)
        self.database.execute(
            "UPDATE photographs SET path = CAST(? AS TEXT) WHERE id = ?",
            (sql_text(path), photograph.id),
        )
        self._store_state(photograph.id, content, reading)

    def _store_other(self, reading: PhotographRead) -> None:
        """Store a path whose content did not come from another path: edited, or a copy."""
        path = reading.listed.path
        known, digest = self.known.get(path), reading.digest or ""
        content = _find_content(self.database, digest)
        query = "SELECT 1 FROM photographs WHERE content = ? AND gone IS NULL"
        is_copy = self.database.row(query, (content,)) is not None
        if known is None or known.id in self._moved or is_copy:
            self._add(reading, is_copy=is_copy)
            return
        new = add_content(self.database, bytes.fromhex(digest))
        (self.result.added if known.is_gone else self.result.edited).append(path)
        former = known.content if content is None else None
        if former is not None:
            let_decisions_wait(self.database, former, new)
        self._store_state(known.id, new, reading, former)

    def _add(self, reading: PhotographRead, *, is_copy: bool = False) -> None:
        """Store a new photograph."""
        path, content = reading.listed.path, None
        (self.result.copied if is_copy else self.result.added).append(path)
        if reading.digest is not None:
            content = add_content(self.database, bytes.fromhex(reading.digest))
        number = self.database.execute(
            "INSERT INTO photographs (path, content, size, mtime, inode, added) "
            "VALUES (CAST(? AS TEXT), ?, 0, 0, 0, ?)",
            (sql_text(path), content, self.run.id),
        )
        self._store_state(number, content, reading)

    def _store_state(
        self,
        photograph: int,
        content: int | None,
        reading: PhotographRead,
        removed_from: int | None = None,
    ) -> None:
        """Store a photograph as it was read.

        `removed_from` is the content that removals are about, if it is the former one.
        """
        listed, state = reading.listed, reading.listed.state
        if reading.lists is None:
            state = state._replace(mtime=RACY)  # the next scan tries again
        self.result.failures += reading.failures
        problem = reading.failures[0].reason if reading.failures else None
        self.database.execute(
            "UPDATE photographs SET size = ?, mtime = ?, inode = ?, beside = ?, problem = ? "
            "WHERE id = ?",
            (*state, listed.beside, problem, photograph),
        )
        self.database.execute(
            "UPDATE photographs SET content = ?, gone = NULL "
            "WHERE id = ? AND (content IS NOT ? OR gone IS NOT NULL)",
            (content, photograph, content),
        )
        if reading.lists is None:
            return
        names = [fact.name for fact in stored_facts()]
        self.database.execute(
            f"UPDATE photographs SET {', '.join(f'{name} = ?' for name in names)} WHERE id = ?",
            (*map(reading.facts.get, names), photograph),
        )
        lists = reading.lists
        if self.file_tags is not None:
            lists = lists._replace(named=self.file_tags.places_of(listed.path))
        known = self.known.get(listed.path)
        is_same = photograph not in self._moved or (known is not None and known.id == photograph)
        is_retagged, overwritten = store_lists(
            self.database,
            self.run.id,
            photograph,
            lists,
            removed_from=removed_from,
            is_same=is_same,
        )
        for name in overwritten:
            self.result.overwritten.setdefault(name, []).append(listed.path)
        if is_retagged and photograph not in self._moved:
            self._note_retagged([listed.path])

    def _is_likely_tagged(self, listed: Listed) -> bool:
        """Whether a photograph is in the tag file, or has a sidecar; learning starts with these."""
        is_named = self.file_tags is not None and listed.path in self.file_tags.tags
        return is_named or listed.is_likely_tagged

    def _note_retagged(self, paths: Sequence[str]) -> None:
        """Note photographs that existed before and have other tags now."""
        known = {path: self.known[path] for path in paths if path in self.known}
        new = {path for path, photo in known.items() if not photo.is_gone} - self._retagged
        self._retagged |= new
        self.result.retagged += [path for path in paths if path in new]

    def _is_missing(self, path: str) -> bool:
        """Whether there is no photograph at a path, as far as folders can be read."""
        return path not in self.listing.photographs and not self.listing.is_hidden(
            self.database.absolute(path)
        )

    def _mark_gone(self) -> None:
        """Mark missing photographs as gone; their decisions stay."""
        gone = [
            (known.id, path)
            for path, known in self.known.items()
            if not known.is_gone and known.id not in self._moved and self._is_missing(path)
        ]
        with self.database.transaction():
            self.database.execute_many(
                "UPDATE photographs SET gone = ? WHERE id = ?",
                [(self.run.id, photograph) for photograph, _ in gone],
            )
            self.database.execute(
                "DELETE FROM found WHERE EXISTS "
                "(SELECT 1 FROM photographs WHERE gone = ? AND id = found.photograph)",
                (self.run.id,),
            )
        query = "SELECT path FROM photographs WHERE gone = ?"
        self.result.gone += self.database.column(query, (self.run.id,))

    def _drop_orphans(self) -> None:
        """Remove suggestions for contents without a file; a later run makes them again."""
        with self.database.transaction():
            for table in ("suggestions", "doubts"):
                self.database.execute(f"DELETE FROM {table} WHERE content IN ({_ORPHANS})")
            self.database.execute(
                "UPDATE contents SET suggested = NULL "
                f"WHERE suggested IS NOT NULL AND id IN ({_ORPHANS})"
            )


def _read_known(database: Database) -> list[_Known]:
    """Return all photographs; of those with the same path, the one that is or was there last."""
    rows = database.rows(
        "SELECT path, id, content, size, mtime, inode, beside, gone IS NOT NULL FROM photographs "
        "ORDER BY gone IS NULL, gone"
    )
    return [
        _Known(path, id, content, State(*state), beside, bool(gone))
        for path, id, content, *state, beside, gone in rows
    ]


def _find_content(database: Database, digest: str) -> int | None:
    """Return the number of a content, or None if it is new."""
    query = "SELECT id FROM contents WHERE digest = ?"
    content: int | None = database.value(query, (bytes.fromhex(digest),))
    return content
