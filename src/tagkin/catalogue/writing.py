"""Accepted tags go into files: one run, of which every write can be taken back.

Each write is kept in the catalogue before the file is touched. What goes wrong with one file is
that file's failure, and the run goes on. A run that was killed is finished by the next one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.filters import Filters
from tagkin.catalogue.following import known_digests
from tagkin.catalogue.found import TagNumbers, replace_places
from tagkin.catalogue.targets import target_path, written_path
from tagkin.catalogue.writes import (
    PastWrite,
    ToWrite,
    end_write,
    plan_write,
    tags_to_write,
    unfinished_writes,
    vanished,
)
from tagkin.collection import Progress
from tagkin.collection.sidecars import (
    Added,
    Change,
    Convention,
    Embedded,
    ExifTool,
    Naming,
    Provenance,
    Sidecar,
    add_tags,
    check_exiftool,
    embed_tags,
    provenance_of,
    remove_scratch,
    restore,
    restore_embedded,
    tags_of,
)
from tagkin.errors import InvalidInput, SidecarError, StorageError, UnreadableImage
from tagkin.images import Failure, content_digest, read_bytes
from tagkin.images.raw import raw_suffixes

__all__ = ["FileWrite", "WriteRun", "finish_writes", "note_tags", "write_accepted"]

# exiftool writes into some of them, but programs expect a sidecar; DNG is made for it
_NOT_EMBEDDED = raw_suffixes() - {".dng"}


@dataclass(frozen=True)
class FileWrite:
    """What came of the tags of one photograph."""

    photograph: str
    """From the root."""
    file: str
    """The file that they went into, from the root."""
    tags: Sequence[str]
    is_new: bool
    """Whether the file was not there before."""
    state: str
    """written, there (it had them all), or to write (nothing was written: a dry run)."""
    is_embedded: bool = False
    """Whether the file is the photograph itself, or its RAW file, and not a sidecar."""
    why: str = ""
    """Why a new sidecar has its name."""

    def to_dict(self) -> dict[str, Any]:
        """The same as a plain dict, ready for JSON."""
        return asdict(self)


@dataclass
class WriteRun:
    """What a run wrote, and what it could not write."""

    run: int | None = None
    """Its number, by which it can be undone; None where nothing was to be written."""
    files: list[FileWrite] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    n_finished: int = 0
    """Writes of runs that were killed, of which it is known now whether they were done."""

    @property
    def n_written(self) -> int:
        """Files that were written."""
        return sum(one.state == "written" for one in self.files)

    @property
    def n_tags(self) -> int:
        """Tags in files that were, or would be, written."""
        return sum(len(one.tags) for one in self.files if one.state != "there")


def write_accepted(
    catalogue: Catalogue,
    filters: Filters | None = None,
    *,
    convention: Convention | None = None,
    embed: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> WriteRun:
    """Write accepted tags that the files of a photograph do not carry yet.

    Parameters
    ----------
    catalogue : Catalogue
        Open for writing, unless it is a dry run.
    filters : Filters, optional
    convention : Convention, optional
        How new sidecars are named; by default as `tagkin.collection.sidecars.Naming` says.
    embed : bool, default False
        Write into the photographs themselves, through exiftool, and into sidecars that exist. RAW
        files other than DNG get sidecars all the same.
    dry_run : bool, default False
        Write nothing; say what would be written.
    progress : function of (what, done, all), optional
    """
    if embed:
        check_exiftool()
    result = WriteRun()
    interrupted: list[PastWrite] = []
    if not dry_run:
        interrupted = unfinished_writes(catalogue)
        result.n_finished = finish_writes(catalogue)
    todo = tags_to_write(catalogue, filters)
    if not todo and not interrupted:
        return result
    naming = Naming(map(catalogue.absolute, _paths(catalogue)), convention)
    exiftool = ExifTool() if embed else None
    writer = _Writer(catalogue, naming, exiftool)
    if dry_run:
        result.files = [file for one in todo for file in writer.planned(one)]
        return result
    todo += writer.half_done(interrupted, {one.photograph for one in todo})
    if not todo:
        return result
    given = {} if filters is None else filters.to_dict()
    parameters = given | {"embed": embed, "convention": convention and str(convention)}
    with catalogue.run("write", parameters) as run, exiftool or nullcontext():
        result.run = run.id
        for i, one in enumerate(todo):
            if progress is not None:
                progress("Writing tags", i, len(todo))
            try:
                result.files += writer.write(run.id, one)
            except (SidecarError, InvalidInput) as error:
                result.failures.append(Failure(catalogue.absolute(one.path), str(error)))
        if progress is not None:
            progress("Writing tags", len(todo), len(todo))
        run.outcome |= {"files": result.n_written, "tags": result.n_tags}
        run.outcome["failures"] = len(result.failures)
    return result


def _paths(catalogue: Catalogue) -> list[str]:
    return [path for (path,) in catalogue.rows("SELECT path FROM photographs WHERE gone IS NULL")]


class _Writer:
    """Writes the tags of one photograph after the other."""

    def __init__(self, catalogue: Catalogue, naming: Naming, exiftool: ExifTool | None):
        self.catalogue, self.naming = catalogue, naming
        self.exiftool = exiftool  # for tags inside photographs; without it, they go into sidecars
        self._tidied: set[Path] = set()

    @cached_property
    def numbers(self) -> TagNumbers:
        """Of tags, read once."""
        with self.catalogue.transaction() as connection:
            return TagNumbers(connection)

    def planned(self, one: ToWrite) -> list[FileWrite]:
        """Return the files that get the tags of a photograph.

        Embedded tags also go into existing sidecars, because some programs read only these. A RAW
        file gets a sidecar, as in Lightroom.
        """
        photograph = Path(self.catalogue.absolute(one.path))
        beside = self.naming.sidecars(photograph)
        if self.exiftool is None:
            return [self._into_sidecar(one, found) for found in beside]
        files = [*self.naming.raw_files(photograph), photograph]
        inside = [file for file in files if file.suffix.lower() not in _NOT_EMBEDDED]
        raw = [file for file in files if file not in inside]
        sidecars = {one.path: one for file in raw for one in self.naming.raw_sidecars(file)}
        sidecars |= {one.path: one for one in beside if one.exists}
        return [
            *(self._into_sidecar(one, found) for found in sidecars.values()),
            *(
                FileWrite(one.path, _beside(one.path, file), one.tags, False, "to write", True)
                for file in inside
            ),
        ]

    def _into_sidecar(self, one: ToWrite, sidecar: Sidecar) -> FileWrite:
        file, is_new = _beside(one.path, sidecar.path), not sidecar.exists
        return FileWrite(one.path, file, one.tags, is_new, "to write", why=sidecar.why)

    def write(self, run: int, one: ToWrite) -> list[FileWrite]:
        """Write all files of a photograph, with what stands there kept before.

        Raises
        ------
        SidecarError, InvalidInput
            If a file cannot be written; all of them stand as they were.
        """
        photograph = self._checked_photograph(one)
        self._tidy(photograph.parent)
        plans = self.planned(one)
        done: list[_Kept] = []
        files = []
        try:
            for plan in plans:
                done.append(_Kept(self.catalogue, run, one, plan.file))
                added = self._put(run, one, plan, done[-1])
                files.append(replace(plan, state="written" if added else "there"))
        except (StorageError, InvalidInput) as error:
            done[-1].end("failed", str(error))
            for kept in done[:-1]:
                kept.take_back(self.exiftool)
            raise
        for kept, file in zip(done, files, strict=True):
            kept.end("done")
            if not file.is_embedded:
                note_tags(self.catalogue, one.photograph, file.file, self.numbers)
        return files

    def _put(self, run: int, one: ToWrite, plan: FileWrite, kept: _Kept) -> Added:
        """Write one file; what was put in."""
        path = target_path(self.catalogue, plan.file)
        known = self._known(one.photograph, also_beside=plan.is_new)
        if plan.is_embedded and self.exiftool is not None:
            return embed_tags(
                path, one.tags, self.exiftool, known=known, record=kept.photograph
            ).added
        return add_tags(
            path,
            one.tags,
            Provenance(str(run), self._confidences(one)),
            known=known,
            record=kept.sidecar,
            photograph=target_path(self.catalogue, one.path),
        ).added

    def half_done(self, interrupted: Iterable[PastWrite], others: set[int]) -> list[ToWrite]:
        """Photographs with several files, of which a killed run may have written one only."""
        paths = dict(
            self.catalogue.rows("SELECT id, path FROM photographs WHERE gone IS NULL")
            if interrupted
            else ()
        )
        found = {
            write.photograph: ToWrite(write.photograph, paths[write.photograph], write.tags)
            for write in interrupted
            if write.photograph in paths and write.photograph not in others
        }
        return [one for one in found.values() if len(self.planned(one)) > 1]

    def _checked_photograph(self, one: ToWrite) -> Path:
        """Return the path of the photograph, if it is the one that was decided on."""
        shown, path = self.catalogue.absolute(one.path), target_path(self.catalogue, one.path)
        if not os.path.isfile(path):
            raise SidecarError(f"{shown}: vanished. Scan the folder, then write again.")
        try:
            digest = content_digest(read_bytes(path, follow_links=False))
        except UnreadableImage as error:
            raise SidecarError(f"{shown}: {error}. Scan the folder, then write again.") from error
        if digest not in known_digests(self.catalogue, one.photograph):
            raise SidecarError(
                f"{shown}: it changed since the last scan, and may be another photograph. Scan the "
                "folder, then write again."
            )
        return path

    def _tidy(self, folder: Path) -> None:
        """Remove what killed writes left; the catalogue has one writer, so nobody is at it."""
        if folder not in self._tidied:
            self._tidied.add(folder)
            remove_scratch(folder)

    def _known(self, photograph: int, *, also_beside: bool) -> list[str]:
        """Tags that the last scan found in the photograph itself, or also in its sidecars."""
        rows = self.catalogue.rows(
            "SELECT DISTINCT json_extract(place.value, '$[0]') FROM found f, "
            "json_each(f.places) place WHERE f.photograph = ?1 "
            "AND (json_extract(place.value, '$[1]') = '' "
            "OR ?2 AND lower(json_extract(place.value, '$[1]')) LIKE '%.xmp')",
            (photograph, also_beside),
        )
        return [word for (word,) in rows]

    def _confidences(self, one: ToWrite) -> dict[str, float]:
        rows = self.catalogue.rows(
            "SELECT t.name, d.confidence FROM decisions d JOIN tags t ON t.id = d.tag "
            "JOIN photographs p ON p.content = d.content WHERE p.id = ? AND d.holds "
            "AND d.confidence IS NOT NULL",
            (one.photograph,),
        )
        return dict(rows)


@dataclass
class _Kept:
    """Keeps what stands in a file, before it is written."""

    catalogue: Catalogue
    run: int
    one: ToWrite
    file: str
    number: int | None = None
    change: Change | Embedded | None = None

    def sidecar(self, change: Change) -> None:
        self.change = change
        self._plan(change.before, change.after_digest, change.added, modified=change.modified)

    def photograph(self, change: Embedded) -> None:
        self.change = change
        # the photograph itself stays beside: it is far too large for the catalogue
        before = change.before_digest.encode()
        self._plan(before, change.after_digest, change.added, backup=change.backup.name)

    def _plan(
        self,
        before: bytes | None,
        after: str,
        added: Added,
        *,
        backup: str | None = None,
        modified: int | None = None,
    ) -> None:
        self.end("failed", "another program wrote to it meanwhile; it was read again")
        self.number = plan_write(
            self.catalogue,
            self.run,
            self.one.photograph,
            self.file,
            self.one.tags,
            added=added,
            before=before,
            after=after,
            backup=backup,
            modified=modified,
        )

    def take_back(self, exiftool: ExifTool | None) -> None:
        """Restore the file, because another file of the photograph could not be written."""
        change = self.change
        try:
            if isinstance(change, Change):
                restore(
                    change.path, change.before, change.after_digest, change.added, change.modified
                )
            elif change is not None and exiftool is not None:
                restore_embedded(change, exiftool)
        except (StorageError, InvalidInput) as error:
            self.end("done", str(error))  # so that it can be undone
        else:
            self.end("failed", "another file of the photograph could not be written")

    def end(self, state: str, note: str | None = None) -> None:
        """Mark what was planned, if anything was."""
        if self.number is not None:
            end_write(self.catalogue, self.number, state, note)
            self.number = None


def _beside(photograph: str, sidecar: Path) -> str:
    """The path of a sidecar from the root."""
    folder = photograph.rpartition("/")[0]
    return f"{folder}/{sidecar.name}" if folder else sidecar.name


def note_tags(
    catalogue: Catalogue, photograph: int, file: str, numbers: TagNumbers | None = None
) -> None:
    """Note which tags a sidecar holds now; the next scan looks at everything.

    `numbers` are those of the catalogue's tags, where they are known: there may be many.
    """
    try:
        path = target_path(catalogue, file)
        tags = tags_of(read_bytes(path, follow_links=False)) if os.path.lexists(path) else []
    except (SidecarError, UnreadableImage):
        return
    places = {tag: [(tag, file)] for tag in tags}
    with catalogue.transaction() as connection:
        if numbers is None:
            numbers = TagNumbers(connection)
        replace_places(connection, numbers, photograph, places, lambda one: one == file)


# --- runs that were killed ---------------------------------------------------------------


def finish_writes(catalogue: Catalogue) -> int:
    """Find out which writes of killed runs were done; how many there were.

    Those that were not are to be written as if nobody had tried. Of files that are not within
    reach, the drive being elsewhere, nobody knows it yet.
    """
    unfinished = []
    for write in unfinished_writes(catalogue):
        with suppress(SidecarError):  # a file outside the collection is nobody's to look at
            if not vanished(catalogue, write):
                unfinished.append((write, written_path(catalogue, write)))
    for folder in {path.parent for _, path in unfinished}:
        remove_scratch(folder)
    for write, path in unfinished:
        if _was_done(write, path):
            end_write(catalogue, write.id, "done", "its run was killed after this")
            if write.backup is None:
                note_tags(catalogue, write.photograph, write.file)
        else:
            _drop_backup(write, path)
            end_write(catalogue, write.id, "failed", "its run was killed before this")
    return len(unfinished)


def _was_done(write: PastWrite, path: Path) -> bool:
    """Whether a file holds what was planned; if somebody wrote since, whether it says so."""
    try:
        data = read_bytes(path, follow_links=False)
    except UnreadableImage:
        return False
    if content_digest(data) == write.after:
        return True
    if write.backup is not None:
        return False
    try:
        return any(one.run == str(write.run) for one in provenance_of(data))
    except SidecarError:
        return False


def _drop_backup(write: PastWrite, path: Path) -> None:
    """Remove the second name of a photograph that was not written after all."""
    if write.backup is not None and path.is_file():
        before = (write.before or b"").decode()
        if content_digest(read_bytes(path, follow_links=False)) == before:
            backup = path.with_name(write.backup)
            with ExifTool() as exiftool:
                restore_embedded(Embedded(path, backup, before, write.after, ()), exiftool)
