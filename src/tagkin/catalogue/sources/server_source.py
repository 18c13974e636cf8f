"""A server as the source of a collection: it has the photographs, and keeps their tags.

`TagServer` says what a server has to do; the rest is the same for all of them.

The root of the catalogue holds a small copy of each photograph, which all other parts read. A write
is planned in the catalogue with the tags that the photograph had, and read back afterwards. So the
next run knows what a killed run did, and undo removes only what tagkin added.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

from tagkin.catalogue.columns import read_json, sql_text
from tagkin.catalogue.database import Database
from tagkin.catalogue.known_catalogues import server_name
from tagkin.catalogue.listing import RACY, Listed, Listing, PhotographRead, State
from tagkin.catalogue.photographs import path_of
from tagkin.catalogue.seen_lists import ListsRead, read_seen, store_own_lists
from tagkin.catalogue.source import FileUndone, FileWrite, TagWriter, UndoWrite, WriteOptions
from tagkin.catalogue.write_records import PastWrite, ToWrite, Writes
from tagkin.collection.capture import capture_of
from tagkin.collection.facts import Facts
from tagkin.collection.levels import merge_tags
from tagkin.collection.sidecars import Written
from tagkin.errors import InvalidInput, UnreadableImage, WriteError
from tagkin.filesystem import make_private_folder, write_whole
from tagkin.images import Failure, content_digest, encode_jpeg, read_bytes, thumbnail
from tagkin.progress import Progress

__all__ = ["ServerPhotograph", "ServerSource", "TagServer"]

_SIDE = 1024  # pixels of the longer side of a copy: what the review page shows
_QUALITY = 85


class ServerPhotograph(Protocol):
    """A photograph on a server."""

    @property
    def path(self) -> str:
        """Where it is in the catalogue, from the root; unique and lasting."""

    @property
    def checksum(self) -> str:
        """Of its content, in hexadecimal, with at least 32 digits."""

    @property
    def facts(self) -> Facts:
        """When, where and with what it was taken."""


class TagServer(Protocol):
    """What a server does. A photograph is named by its path, and a tag has an id.

    Every method may raise `ServerError`, and those about one photograph `WriteError`.
    """

    @property
    def address(self) -> str:
        """Where it is."""

    def list_photographs(
        self, step: Progress, *, keep: bool
    ) -> tuple[Sequence[tuple[ServerPhotograph, list[str]]], list[Failure]]:
        """Return all photographs with their tags, and why others are left out.

        With `keep`, something may be kept in the root until the next listing.
        """

    def read_pixels(self, path: str) -> bytes:
        """Return a picture of a photograph; the error is `UnreadableImage`."""

    def find_tags(self, path: str, *, to_write: bool = False) -> Mapping[str, str] | None:
        """Return the tags that a photograph has now, by their ids; None if it is gone.

        With `to_write`, reject a photograph whose tags would be lost.
        """

    def make_tags(self, tags: Sequence[str]) -> Mapping[str, str]:
        """Return the ids of tags; missing ones are made."""

    def add_tags(self, path: str, ids: Sequence[str]) -> Mapping[str, str]:
        """Add tags to a photograph; return the ids that were refused, with the reasons."""

    def remove_tags(self, path: str, ids: Sequence[str]) -> Mapping[str, str]:
        """Remove tags from a photograph, as `add_tags` adds them."""


class ServerSource:
    """A server; see `tagkin.catalogue.source.Source`."""

    def __init__(self, database: Database, server: TagServer):
        self._database, self._server = database, server
        self._name = server_name(database.root)
        self._photos: dict[str, tuple[ServerPhotograph, list[str]]] = {}

    @property
    def title(self) -> str:
        """The program and its address."""
        return f"{self._name} at {self._server.address}"

    # --- reading -------------------------------------------------------------------------

    def list_photographs(self, step: Progress) -> Listing:
        """Ask the server for its photographs and their tags."""
        photos, failures = self._server.list_photographs(step, keep=not self._database.is_copy)
        if not photos:
            raise InvalidInput(f"{self.title} has no photograph of yours.")
        self._photos = {photo.path: (photo, tags) for photo, tags in photos}
        listed = {photo.path: self._list(photo, tags) for photo, tags in photos}
        return Listing(listed, failures, {})

    def _list(self, photo: ServerPhotograph, tags: list[str]) -> Listed:
        file, state = self._database.absolute(photo.path), _state(photo)
        if not os.path.isfile(file):
            state = state._replace(mtime=RACY)  # a copy is made
        return Listed(photo.path, file, state, _hash(photo, tags), is_likely_tagged=bool(tags))

    def read(self, listed: Listed, with_content: bool) -> PhotographRead:
        """Copy the pixels of a photograph, unless they are here; its tags are listed."""
        (photo, tags), digest = self._photos[listed.path], None
        try:
            if with_content:
                digest = content_digest(self._read_pixels(photo, Path(listed.file)))
                listed = listed._replace(state=_state(photo))
            if self._lost_tags(photo, tags):
                tags = self._ask_tags(photo, tags)
                listed = listed._replace(beside=_hash(photo, tags))
        except (UnreadableImage, WriteError) as error:
            return PhotographRead(listed, None, None, [Failure(listed.file, str(error))])
        lists = {f"//{self._name}": _list_of(self._name, tags)}
        return PhotographRead(listed, digest, ListsRead(lists), [], photo.facts)

    def _lost_tags(self, photo: ServerPhotograph, tags: list[str]) -> bool:
        """Whether a photograph seems to have lost tags since it was last seen."""
        number = self._database.value(
            "SELECT id FROM photographs WHERE path = CAST(? AS TEXT)", (sql_text(photo.path),)
        )
        seen = None if number is None else read_seen(self._database, number)
        if seen is None:
            return False
        name = self._name
        former = seen.files.get(f"//{name}", {}).get(name, [])
        return not set(former) <= set(_list_of(name, tags)[name])

    def _ask_tags(self, photo: ServerPhotograph, tags: list[str]) -> list[str]:
        """Return the tags of a photograph now: a list may skip some if it changes meanwhile."""
        current = self._server.find_tags(photo.path)
        return tags if current is None else list(current.values())

    def _read_pixels(self, photo: ServerPhotograph, file: Path) -> bytes:
        if file.is_file():
            return read_bytes(file)
        pixels = thumbnail(self._server.read_pixels(photo.path), _SIDE)
        capture = capture_of(photo.facts)
        data = encode_jpeg(
            pixels,
            _QUALITY,
            taken=None if capture is None else capture.time,
            camera="" if capture is None else capture.camera,
        )
        if not self._database.is_copy:
            make_private_folder(file.parent)
            write_whole(file, data, private=True)
        return data

    # --- writing and undoing -------------------------------------------------------------

    def check_options(self, options: WriteOptions) -> None:
        """Reject options for files, and the removal of tags that tagkin did not add."""
        name = self._name
        if options.embed or options.convention is not None:
            raise InvalidInput(
                f"{name} keeps the tags itself, so there is neither a sidecar nor a photograph to "
                "write to. Leave out --embed and --sidecars."
            )
        if options.align:
            raise InvalidInput(f"{name} has one list of tags. Leave out --align.")
        if options.remove:
            raise InvalidInput(
                f"In {name}, tagkin removes only tags that it added: tagkin undo. Remove other "
                f"tags in {name} itself."
            )

    def open_writer(self, options: WriteOptions, paths: Iterable[str]) -> TagWriter:
        """Return a writer of tags to the server."""
        return _ServerWriter(self._database, self._server)

    def finish_writes(self) -> int:
        """Ask the server which tags of unfinished writes it has."""
        writes = Writes(self._database)
        n_finished = 0
        for write in writes.unfinished():
            path = path_of(self._database, write.photograph, exists=True)
            with suppress(WriteError):  # another photograph by now: nobody knows what it had
                tags = None if path is None else self._server.find_tags(path)
                before = read_json(write.before or b"[]", list)
                _settle(writes, write.id, write.added, before, tags or {})
                if tags is not None:
                    _store_tags(self._database, write.photograph, tags)
                n_finished += 1
        return n_finished

    def follow_writes(self, photograph: int, path: str) -> None:
        """Note the new path; a server knows a photograph by more than that."""
        writes = Writes(self._database)
        for write in writes.of_photograph(photograph):
            writes.update(write.id, file=path)

    @contextmanager
    def open_undo(self, writes: Sequence[PastWrite]) -> Iterator[UndoWrite]:
        """Remove the tags that writes added."""
        yield self._undo_write

    def _undo_write(self, write: PastWrite) -> FileUndone:
        name, path = self._name, path_of(self._database, write.photograph, exists=True)
        tags = None if path is None else self._server.find_tags(path)
        if path is None or tags is None:
            Writes(self._database).update(write.id, was_missed=True)
            said = f"not in {name} any more; undo the run by its number when it is back"
            return FileUndone(write.file, write.tags, "gone", said)
        ids = [id for _, id in write.added if id in tags]
        refused = self._server.remove_tags(path, ids) if ids else {}
        tags = self._server.find_tags(path) or {}
        _store_tags(self._database, write.photograph, tags)
        if left := [tag for tag, id in write.added if id in tags]:
            reasons = ", ".join(sorted(set(refused.values()))) or "it does not say why"
            raise WriteError(f"{name} did not remove {', '.join(left)}: {reasons}.")
        if len(ids) < len(write.added):
            said = f"somebody removed tags of this run in {name} since"
            return FileUndone(path, write.tags, "kept", said)
        return FileUndone(path, write.tags, "tags removed", f"its tags were removed in {name}")


class _ServerWriter:
    """Writes tags to a server; see `tagkin.catalogue.source.TagWriter`."""

    def __init__(self, database: Database, server: TagServer):
        self._database, self._server = database, server
        self._writes = Writes(database)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def plan_files(self, photo: ToWrite) -> list[FileWrite]:
        return [FileWrite(photo.path, photo.path, photo.tags, False, "to write", True)]

    def write(self, run: int, photo: ToWrite) -> list[FileWrite]:
        if not photo.tags:
            return []
        name, server = server_name(self._database.root), self._server
        before = server.find_tags(photo.path, to_write=True)
        if before is None:
            raise WriteError(f"{photo.path}: not in {name} any more. Scan, then write again.")
        ids = server.make_tags(photo.tags)
        pairs = [(tag, ids[tag]) for tag in photo.tags]
        missing = [(tag, id) for tag, id in pairs if id not in before]
        (plan,) = self.plan_files(photo)
        if not missing:
            _store_tags(self._database, photo.photograph, before)
            return [replace(plan, state="there")]
        number = self._plan(run, replace(photo, tags=[tag for tag, _ in missing]), missing, before)
        refused = server.add_tags(photo.path, [id for _, id in missing])
        tags = server.find_tags(photo.path) or {}  # whatever it answered, this is what it has
        _settle(self._writes, number, missing, before, tags)
        _store_tags(self._database, photo.photograph, tags)
        if lost := [(tag, id) for tag, id in missing if id not in tags]:
            reason = refused.get(lost[0][1]) or "it does not say why"
            words = ", ".join(tag for tag, _ in lost)
            raise WriteError(f"{photo.path}: {name} did not take {words}: {reason}.")
        return [replace(plan, tags=[tag for tag, _ in missing], state="written")]

    def _plan(
        self,
        run: int,
        photo: ToWrite,
        added: Sequence[tuple[str, str]],
        before: Collection[str],
    ) -> int:
        """Record a write before the server is asked, with the tags that are there."""
        ids = json.dumps(sorted(before)).encode()
        change = Written(Path(photo.path), ids, "", tuple(added))
        return self._writes.plan(run, photo, photo.path, change)


def _hash(photo: ServerPhotograph, tags: Sequence[str]) -> bytes:
    said = json.dumps([sorted(tags), sorted(photo.facts.items())])
    return hashlib.blake2b(said.encode(), digest_size=16).digest()


def _state(photo: ServerPhotograph) -> State:
    """Return the state of a photograph, which is its checksum."""
    first, second = struct.unpack(">qq", bytes.fromhex(photo.checksum)[:16])
    return State(0, first & (2**63 - 1), second)


def _settle(
    writes: Writes,
    number: int,
    planned: Sequence[tuple[str, str]],
    before: Collection[str],
    tags: Collection[str],
) -> None:
    """Mark a planned write by the ids of the tags that the photograph had and has now.

    A tag that it had before was not added by this write, so undo leaves it alone.
    """
    added = [(tag, id) for tag, id in planned if id in tags and id not in before]
    note = None if len(added) == len(planned) else "not all of its tags were added"
    state, tags_added = "done" if added else "failed", [tag for tag, _ in added]
    writes.update(number, state=state, tags=tags_added, added=added, note=note)


def _store_tags(database: Database, photograph: int, tags: Mapping[str, str]) -> None:
    """Store which tags a photograph has now."""
    name = server_name(database.root)
    with database.transaction():
        store_own_lists(database, photograph, f"//{name}", _list_of(name, tags.values()))


def _list_of(name: str, tags: Iterable[str]) -> dict[str, list[str]]:
    """Return the list of tags that a server has, by its name: the deepest of each branch."""
    merged = merge_tags(tags)
    above = {tag.rsplit("|", n)[0] for tag in merged for n in range(1, tag.count("|") + 1)}
    return {name: [tag for tag in merged if tag not in above]}
