"""Writing accepted tags, as one run that can be undone.

Each write is recorded before anything is touched. If a photograph fails, the run continues with the
others. If a run is killed, the next run finishes its writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tagkin.catalogue.database import Database, set_fields
from tagkin.catalogue.edits import list_to_confirm
from tagkin.catalogue.filters import Filters
from tagkin.catalogue.selection import PhotographIndex, Selection
from tagkin.catalogue.source import FileWrite, Source, WriteOptions
from tagkin.catalogue.write_records import PastWrite, ToWrite, Writes
from tagkin.errors import InvalidInput, WriteError
from tagkin.images import Failure
from tagkin.progress import Progress
from tagkin.wording import count

__all__ = ["WriteRun", "write_tags"]


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
    result, records = WriteRun(to_confirm=list_to_confirm(database)), Writes(database)
    interrupted: list[PastWrite] = []
    if not dry_run:
        interrupted = records.unfinished()
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
                result.files += writer.write(run.id, records.still_decided(photo))
            except (WriteError, InvalidInput) as error:
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
