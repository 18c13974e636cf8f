"""Accepted tags go into files: one run, of which every write can be taken back.

Each write is kept in the catalogue before the file is touched. What goes wrong with one file is
that file's failure, and the run goes on. A run that was killed is finished by the next one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.filters import Filters
from tagkin.catalogue.found import TagNumbers, replace_places
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
    Provenance,
    add_tags,
    check_exiftool,
    embed_tags,
    habit_of,
    provenance_of,
    remove_scratch,
    restore_embedded,
    sidecar_for,
    tags_of,
)
from tagkin.errors import InvalidInput, SidecarError, StorageError
from tagkin.images import Failure, content_digest

__all__ = ["FileWrite", "WriteRun", "finish_writes", "note_tags", "write_accepted"]


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
        How new sidecars are named; by default as most sidecars of the collection are.
    embed : bool, default False
        Write into the photographs themselves, through exiftool, instead of sidecars.
    dry_run : bool, default False
        Write nothing; say what would be written.
    progress : function of (what, done, all), optional
    """
    if embed:
        check_exiftool()
    result = WriteRun()
    if not dry_run:
        result.n_finished = finish_writes(catalogue)
    todo = tags_to_write(catalogue, filters)
    if not todo:
        return result
    if convention is None and not embed:
        convention = habit_of(catalogue.absolute(path) for path in _paths(catalogue))
    exiftool = ExifTool() if embed else None
    writer = _Writer(catalogue, convention or Convention.FULL, exiftool)
    if dry_run:
        result.files = [writer.planned(one) for one in todo]
        return result
    given = {} if filters is None else filters.to_dict()
    parameters = given | {"embed": embed, "convention": str(writer.convention)}
    with catalogue.run("write", parameters) as run, exiftool or nullcontext():
        result.run = run.id
        for i, one in enumerate(todo):
            if progress is not None:
                progress("Writing tags", i, len(todo))
            try:
                result.files.append(writer.write(run.id, one))
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

    def __init__(self, catalogue: Catalogue, convention: Convention, exiftool: ExifTool | None):
        self.catalogue, self.convention = catalogue, convention
        self.exiftool = exiftool  # for tags inside photographs; without it, they go into sidecars
        self._tidied: set[str] = set()

    @cached_property
    def numbers(self) -> TagNumbers:
        """Of tags, read once."""
        with self.catalogue.transaction() as connection:
            return TagNumbers(connection)

    def planned(self, one: ToWrite) -> FileWrite:
        """What would be written."""
        photograph = Path(self.catalogue.absolute(one.path))
        if self.exiftool is not None:
            return FileWrite(one.path, one.path, one.tags, False, "to write")
        sidecar = sidecar_for(photograph, self.convention)
        file = _beside(one.path, sidecar.path)
        return FileWrite(one.path, file, one.tags, not sidecar.exists, "to write")

    def write(self, run: int, one: ToWrite) -> FileWrite:
        """Write, with what stands there kept before.

        Raises
        ------
        SidecarError, InvalidInput
            If it cannot be written; the file stands as it was.
        """
        photograph = self.catalogue.absolute(one.path)
        if not os.path.isfile(photograph):
            raise SidecarError(f"{photograph}: vanished. Scan the folder, then write again.")
        self._tidy(os.path.dirname(photograph))
        plan = self.planned(one)
        known = self._inside(one.photograph)
        kept = _Kept(self.catalogue, run, one, plan.file)
        try:
            if self.exiftool is not None:
                embedded = embed_tags(
                    photograph, one.tags, self.exiftool, known=known, record=kept.photograph
                )
                added = embedded.added
            else:
                sidecar = self.catalogue.absolute(plan.file)
                provenance = Provenance(str(run), self._confidences(one))
                written = add_tags(
                    sidecar,
                    one.tags,
                    provenance,
                    known=known,
                    record=kept.sidecar,
                    photograph=photograph,
                )
                added = written.added
        except (StorageError, InvalidInput) as error:
            kept.end("failed", str(error))
            raise
        kept.end("done")
        if self.exiftool is None:
            note_tags(self.catalogue, one.photograph, plan.file, self.numbers)
        state = "written" if added else "there"
        return FileWrite(one.path, plan.file, one.tags, plan.is_new, state)

    def _tidy(self, folder: str) -> None:
        """Remove what killed writes left; the catalogue has one writer, so nobody is at it."""
        if folder not in self._tidied:
            self._tidied.add(folder)
            remove_scratch(folder)

    def _inside(self, photograph: int) -> list[str]:
        """Tags that the last scan found in the photograph itself."""
        rows = self.catalogue.rows(
            "SELECT DISTINCT json_extract(place.value, '$[0]') FROM found f, "
            "json_each(f.places) place WHERE f.photograph = ? "
            "AND json_extract(place.value, '$[1]') = ''",
            (photograph,),
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

    def sidecar(self, change: Change) -> None:
        self._plan(change.before, change.after_digest, change.added, modified=change.modified)

    def photograph(self, change: Embedded) -> None:
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
        xml = Path(catalogue.absolute(file)).read_bytes()
        tags = tags_of(xml)
    except FileNotFoundError:
        tags = []
    except OSError:
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
    unfinished = [one for one in unfinished_writes(catalogue) if not vanished(catalogue, one)]
    for folder in {Path(catalogue.absolute(one.file)).parent for one in unfinished}:
        remove_scratch(folder)
    for write in unfinished:
        if _was_done(catalogue, write):
            end_write(catalogue, write.id, "done", "its run was killed after this")
            if write.backup is None:
                note_tags(catalogue, write.photograph, write.file)
        else:
            _drop_backup(catalogue, write)
            end_write(catalogue, write.id, "failed", "its run was killed before this")
    return len(unfinished)


def _was_done(catalogue: Catalogue, write: PastWrite) -> bool:
    """Whether a file holds what was planned; if somebody wrote since, whether it says so."""
    try:
        data = Path(catalogue.absolute(write.file)).read_bytes()
    except OSError:
        return False
    if content_digest(data) == write.after:
        return True
    if write.backup is not None:
        return False
    try:
        return any(one.run == str(write.run) for one in provenance_of(data))
    except SidecarError:
        return False


def _drop_backup(catalogue: Catalogue, write: PastWrite) -> None:
    """Remove the second name of a photograph that was not written after all."""
    path = Path(catalogue.absolute(write.file))
    if write.backup is not None and path.is_file():
        before = (write.before or b"").decode()
        if content_digest(path.read_bytes()) == before:
            backup = path.with_name(write.backup)
            with ExifTool() as exiftool:
                restore_embedded(Embedded(path, backup, before, write.after, ()), exiftool)
