"""Writing tags into sidecars or photographs; each write is recorded before the file is touched."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Self

from tagkin.catalogue.database import Database
from tagkin.catalogue.seen_lists import seen_tags, store_lists
from tagkin.catalogue.source import FileWrite, WriteOptions
from tagkin.catalogue.sources.folder_files import read_lists
from tagkin.catalogue.sources.written_files import known_digests, store_own_change
from tagkin.catalogue.target_paths import target_path
from tagkin.catalogue.write_records import NOT_EMBEDDED, ToWrite, Writes
from tagkin.collection.levels import fold
from tagkin.collection.sidecars import (
    Embedded,
    ExifTool,
    Provenance,
    Sidecar,
    SidecarNaming,
    Written,
    add_tags,
    embed_tags,
    remove_scratch,
    restore,
    restore_embedded,
)
from tagkin.errors import InvalidInput, SidecarError, StorageError, UnreadableImage
from tagkin.images import content_digest, read_bytes

__all__ = ["FolderWriter"]


class FolderWriter:
    """Writes sidecars, and embeds tags; see `tagkin.catalogue.source.TagWriter`."""

    def __init__(self, database: Database, options: WriteOptions, paths: Iterable[str]):
        self.database, self.options = database, options
        self.naming = SidecarNaming(map(database.absolute, paths), options.convention)
        # embeds tags; without it, all tags go into sidecars
        self.exiftool = ExifTool() if options.embed else None
        # removes temporary files of killed writes; no other process writes meanwhile
        self._tidy = cache(remove_scratch)

    def __enter__(self) -> Self:
        if self.exiftool is not None:
            self.exiftool.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self.exiftool is not None:
            self.exiftool.__exit__(*error)

    def plan_files(self, photo: ToWrite) -> list[FileWrite]:
        """Return the files to which tags are added, or from which tags are removed."""
        return self._plan(photo)[0]

    def _plan(self, photo: ToWrite) -> tuple[list[FileWrite], ToWrite]:
        """Return the files to change, and the photograph with all its removals.

        Files that change anyway also lose the tags that a person removed in another program.
        """
        files: dict[str, FileWrite] = {}
        if photo.tags or self.options.align:
            plans = self._files_for_tags(photo)
            files = {plan.file: plan for plan in plans if photo.tags or not plan.is_new}
        for file in photo.removals:
            is_embedded = not file.lower().endswith(".xmp")
            plan = FileWrite(photo.path, file, (), False, "to write", is_embedded)
            files.setdefault(file, plan)
        removals = {file: dict(words) for file, words in photo.removals.items()}
        stale = seen_tags(self.database, photo.photograph).stale
        for file in stale.keys() & files.keys():
            removals.setdefault(file, {}).update({tag: tag for tag in stale[file]})
        for file, words in removals.items():
            files[file] = replace(files[file], removed=sorted(set(words.values())))
        return list(files.values()), replace(photo, removals=removals)

    def _files_for_tags(self, photo: ToWrite) -> list[FileWrite]:
        """Return the files that get the tags of a photograph.

        Embedded tags also go into existing sidecars, because some programs read only these. A RAW
        file gets a sidecar, as in Lightroom.
        """
        photograph = Path(self.database.absolute(photo.path))
        beside = self.naming.sidecars(photograph)
        if self.exiftool is None:
            return [_plan_sidecar(photo, sidecar) for sidecar in beside]
        files = [*self.naming.raw_files(photograph), photograph]
        embedded = [file for file in files if file.suffix.lower() not in NOT_EMBEDDED]
        sidecars = {
            sidecar.path: sidecar
            for file in files
            if file not in embedded
            for sidecar in self.naming.raw_sidecars(file)
        }
        sidecars |= {sidecar.path: sidecar for sidecar in beside if sidecar.exists}
        return [
            *(_plan_sidecar(photo, sidecar) for sidecar in sidecars.values()),
            *(
                FileWrite(
                    photo.path, _path_beside(photo.path, file), photo.tags, False, "to write", True
                )
                for file in embedded
            ),
        ]

    def write(self, run: int, photo: ToWrite) -> list[FileWrite]:
        """Write all files of a photograph; record their former contents first.

        Raises
        ------
        SidecarError, InvalidInput
            If a file cannot be written; all of them are unchanged.
        """
        if not photo.tags and not photo.removals and not self.options.align:
            return []
        photograph = self._check_photograph(photo)
        self._tidy(photograph.parent)
        self._look_again(run, photo)
        plans, photo = self._plan(Writes(self.database).still_decided(photo))
        records: list[_FileRecord] = []
        files = []
        try:
            for plan in plans:
                records.append(_FileRecord(self.database, run, photo, plan.file))
                changed = self._write_file(photo, plan, records[-1])
                files.append(replace(plan, state="written" if changed else "there"))
        except (StorageError, InvalidInput) as error:
            records[-1].end("failed", str(error))
            for record in records[:-1]:
                record.restore(self.exiftool)
            raise
        for record, file in zip(records, files, strict=True):
            record.end("done")
            store_own_change(self.database, [photo.photograph], file.file)
        return files

    def _write_file(self, photo: ToWrite, plan: FileWrite, record: _FileRecord) -> bool:
        """Write one file; return whether it changed."""
        path = target_path(self.database, plan.file)
        known = self._known_tags(photo.photograph)
        remove = photo.removals.get(plan.file, ())
        change: Written | Embedded
        if plan.is_embedded and self.exiftool is not None:
            change = embed_tags(
                path,
                plan.tags,
                self.exiftool,
                known=known,
                align=bool(remove) or self.options.align,
                remove=remove,
                mark=record.mark,
                record=record.plan,
            )
        else:
            confidences = {
                tag: p for tag, _, p in Writes(self.database).decisions_on(photo) if p is not None
            }
            change = add_tags(
                path,
                plan.tags,
                Provenance(record.mark, confidences),
                known=known,
                align=bool(remove) or self.options.align,
                remove=remove,
                record=record.plan,
                photograph=target_path(self.database, photo.path),
            )
        return bool(change.added or change.removed)

    def _check_photograph(self, photo: ToWrite) -> Path:
        """Return the real path of the photograph, if it is the one that was decided on."""
        shown, path = self.database.absolute(photo.path), target_path(self.database, photo.path)
        if not os.path.isfile(path):
            raise SidecarError(f"{shown}: vanished. Scan the folder, then write again.")
        try:
            digest = content_digest(read_bytes(path, follow_links=False))
        except UnreadableImage as error:
            raise SidecarError(f"{shown}: {error}. Scan the folder, then write again.") from error
        if digest not in known_digests(self.database, photo.photograph):
            raise SidecarError(
                f"{shown}: it changed since the last scan, and may be another photograph. Scan the "
                "folder, then write again."
            )
        return path

    def _look_again(self, run: int, photo: ToWrite) -> None:
        """Merge the lists of a photograph, because other programs may have changed them."""
        file = self.database.absolute(photo.path)
        files = [file, *map(str, self.naming.raw_files(file))]
        with suppress(UnreadableImage):
            lists = read_lists(files)
            with self.database.transaction():
                store_lists(self.database, run, photo.photograph, lists)

    def _known_tags(self, photograph: int) -> list[str]:
        """Return the tags in the files of a photograph that were not rejected."""
        rejected = self.database.column(
            "SELECT t.name FROM photographs p JOIN decisions d ON d.content = p.content "
            "JOIN tags t ON coalesce(t.same_as, t.id) = d.tag "
            "WHERE p.id = ? AND d.holds AND d.verdict = -1",
            (photograph,),
        )
        keys = set(map(fold, rejected))
        spellings = seen_tags(self.database, photograph).spellings
        return [word for tag, word in spellings.items() if fold(tag) not in keys]


@dataclass
class _FileRecord:
    """The record of one file's write, made before the file is written."""

    database: Database
    run: int
    photo: ToWrite
    file: str
    number: int | None = None
    change: Written | Embedded | None = None

    @cached_property
    def mark(self) -> str:
        """The name of the write in its file."""
        return f"{self.run}-{secrets.token_hex(8)}"

    def plan(self, change: Written | Embedded) -> None:
        """Record a change that is about to be made."""
        self.end("failed", "another program wrote to it meanwhile; it was read again")
        self.change = change
        self.number = Writes(self.database).plan(self.run, self.photo, self.file, change)

    def restore(self, exiftool: ExifTool | None) -> None:
        """Restore the file, because another file of the photograph could not be written."""
        change = self.change
        try:
            if isinstance(change, Written):
                restore(change)
            elif change is not None and exiftool is not None:
                restore_embedded(change, exiftool)
        except (StorageError, InvalidInput) as error:
            self.end("done", str(error))  # so it can be undone
        else:
            self.end("failed", "another file of the photograph could not be written")

    def end(self, state: str, note: str | None = None) -> None:
        """Mark the planned write, if there is one."""
        if self.number is not None:
            Writes(self.database).update(self.number, state=state, note=note)
            self.number = None


def _plan_sidecar(photo: ToWrite, sidecar: Sidecar) -> FileWrite:
    file, is_new = _path_beside(photo.path, sidecar.path), not sidecar.exists
    return FileWrite(photo.path, file, photo.tags, is_new, "to write", why=sidecar.why)


def _path_beside(photograph: str, file: Path) -> str:
    """Return the path of a file beside a photograph, from the root."""
    folder = photograph.rpartition("/")[0]
    return f"{folder}/{file.name}" if folder else file.name
