"""Writing accepted tags into files, as one run that can be undone.

Each write is recorded before the file is touched. If a file fails, the run continues with the
others. If a run is killed, the next run finishes its writes.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Self

from tagkin.catalogue.database import Database, Row, set_fields
from tagkin.catalogue.edits import list_to_confirm
from tagkin.catalogue.file_reading import read_lists
from tagkin.catalogue.filters import Filters
from tagkin.catalogue.seen_lists import seen_tags, store_lists, store_own_change
from tagkin.catalogue.selection import PhotographIndex, Selection
from tagkin.catalogue.source import FileWrite, Source, WriteOptions
from tagkin.catalogue.target_paths import target_path
from tagkin.catalogue.write_records import (
    NOT_EMBEDDED,
    PastWrite,
    ToWrite,
    Writes,
)
from tagkin.catalogue.written_files import known_digests
from tagkin.collection.levels import fold
from tagkin.collection.sidecars import (
    Embedded,
    ExifTool,
    Naming,
    Provenance,
    Sidecar,
    Written,
    add_tags,
    embed_tags,
    remove_scratch,
    restore,
    restore_embedded,
)
from tagkin.errors import InvalidInput, SidecarError, StorageError, UnreadableImage
from tagkin.images import Failure, content_digest, read_bytes
from tagkin.progress import Progress
from tagkin.wording import count

__all__ = ["FolderWriter", "WriteRun", "write_tags"]


@dataclass
class WriteRun:
    """The result of a run that wrote tags."""

    run: int | None = None
    """Its number, to undo it; None if there was nothing to write."""
    files: list[FileWrite] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    to_confirm: list[str] = field(default_factory=list)
    """Photographs, from the root, that may be others now, so their accepted tags wait."""
    unchanged: list[str] = field(default_factory=list)
    """Files with rejected tags to remove that are never changed: tag files, and RAW files."""
    n_finished: int = 0
    """Writes of killed runs that were checked first."""

    @property
    def n_written(self) -> int:
        """Files that were written."""
        return sum(file.state == "written" for file in self.files)

    @property
    def n_tags(self) -> int:
        """Tags in files that were, or would be, written."""
        return sum(len(file.tags) for file in self.files if file.state != "there")

    @property
    def n_removed(self) -> int:
        """Tags that were, or would be, removed from files."""
        return sum(len(file.removed) for file in self.files if file.state != "there")

    def describe(self) -> str:
        """Count written tags and files, for example ``12 tags into 3 sidecars, 1 of them new``."""
        files = [file for file in self.files if file.tags and file.state != "there"]
        if not files:
            return ""
        n_new = sum(file.is_new for file in files)
        new = f", {'all' if n_new == len(files) else f'{n_new:,}'} of them new" if n_new else ""
        return f"{count(self.n_tags, 'tag')} into {self.describe_places(files)}{new}"

    @staticmethod
    def describe_places(files: Sequence[FileWrite]) -> str:
        """Count files, for example ``2 photographs and 1 sidecar``."""
        n_embedded = sum(file.is_embedded for file in files)
        counts = {"photograph": n_embedded, "sidecar": len(files) - n_embedded}
        return " and ".join(count(n, kind) for kind, n in counts.items() if n)


def write_tags(
    database: Database,
    source: Source,
    filters: Filters,
    options: WriteOptions,
    *,
    dry_run: bool,
    step: Progress,
) -> WriteRun:
    """Write accepted tags that files lack; see `Catalogue.write`."""
    source.check_options(options)
    result = WriteRun(to_confirm=list_to_confirm(database))
    interrupted: list[PastWrite] = []
    if not dry_run:
        interrupted = Writes(database).unfinished()
        result.n_finished = source.finish_writes()
    pending, unchanged = _find_pending(database, filters, options)
    pending, result.unchanged = _select(database, pending, options.selection), sorted(unchanged)
    if not pending and not interrupted:
        return result
    existing = database.rows("SELECT id, path FROM photographs WHERE gone IS NULL")
    paths: dict[int, str] = dict(existing)
    writer = source.open_writer(options, paths.values())
    if dry_run:
        result.files = [file for photo in pending for file in writer.plan_files(photo)]
        return result
    half_done = _find_half_done(interrupted, paths, {photo.photograph for photo in pending})
    pending += [photo for photo in half_done if len(writer.plan_files(photo)) > 1]
    if not pending:
        return result
    chosen = options._asdict() | {"selection": options.selection.to_dict()}
    with database.run("write", set_fields(vars(filters) | chosen)) as run, writer:
        result.run = run.id
        for i, photo in enumerate(pending):
            step("Writing tags", i, len(pending))
            try:
                result.files += writer.write(run.id, _still_decided(database, photo))
            except (SidecarError, InvalidInput) as error:
                result.failures.append(Failure(database.absolute(photo.path), str(error)))
        step("Writing tags", len(pending), len(pending))
        run.outcome |= {"files": result.n_written, "tags": result.n_tags}
        run.outcome |= {"removed": result.n_removed} if options.remove else {}
        run.outcome["failures"] = len(result.failures)
    return result


def _find_half_done(
    interrupted: Iterable[PastWrite], paths: dict[int, str], others: set[int]
) -> list[ToWrite]:
    """Return photographs of which a killed run may have written some files, but not all."""
    photos = {
        write.photograph: ToWrite(write.photograph, paths[write.photograph], write.tags)
        for write in interrupted
        if write.photograph in paths and write.photograph not in others and write.tags
    }
    return list(photos.values())


def _still_decided(database: Database, photo: ToWrite) -> ToWrite:
    """Drop tags on which a person changed the decision since the run began."""
    verdicts = {tag: verdict for tag, verdict, _ in _decisions(database, photo)}
    tags = [tag for tag in photo.tags if verdicts.get(tag) == 1]
    removals = {
        file: {word: tag for word, tag in words.items() if verdicts.get(tag) == -1}
        for file, words in photo.removals.items()
    }
    removals = {file: words for file, words in removals.items() if words}
    return replace(photo, tags=tags, removals=removals)


def _decisions(database: Database, photo: ToWrite) -> list[Row]:
    """Return tag, verdict and confidence of the decisions that apply to a photograph."""
    return database.rows(
        "SELECT t.name, d.verdict, d.confidence FROM decisions d JOIN tags t ON t.id = d.tag "
        "JOIN photographs p ON p.content = d.content WHERE p.id = ? AND d.holds",
        (photo.photograph,),
    )


def _find_pending(
    database: Database, filters: Filters, options: WriteOptions
) -> tuple[list[ToWrite], set[str]]:
    """Return the photographs whose files lack accepted tags or have tags to remove.

    Also return files that have tags to remove, and are never changed.
    """
    writes = Writes(database)
    pending = {photo.photograph: photo for photo in writes.pending(filters)}
    removals, unchanged = list[ToWrite](), set[str]()
    if options.remove:
        removals, unchanged = writes.pending_removals(filters, embed=options.embed)
    for photo in removals:
        tags = pending[photo.photograph].tags if photo.photograph in pending else ()
        pending[photo.photograph] = replace(photo, tags=tags)
    for photo in writes.out_of_step(filters, embed=options.embed) if options.align else ():
        pending.setdefault(photo.photograph, photo)
    return sorted(pending.values(), key=lambda photo: photo.path), unchanged


def _select(database: Database, pending: list[ToWrite], selection: Selection) -> list[ToWrite]:
    """Return the photographs that a selection leaves."""
    if selection.is_empty:
        return pending
    selected = set(PhotographIndex(database).select(database, selection).numbers.tolist())
    return [photo for photo in pending if photo.photograph in selected]


class FolderWriter:
    """Writes sidecars, and embeds tags; see `tagkin.catalogue.source.TagWriter`."""

    def __init__(self, database: Database, options: WriteOptions, paths: Iterable[str]):
        self.database, self.options = database, options
        self.naming = Naming(map(database.absolute, paths), options.convention)
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
        plans, photo = self._plan(_still_decided(self.database, photo))
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
                tag: p for tag, _, p in _decisions(self.database, photo) if p is not None
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
