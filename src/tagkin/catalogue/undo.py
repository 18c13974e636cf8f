"""Undoing a run: taking back its writes and reopening its decisions."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tagkin.catalogue.database import Database, Run
from tagkin.catalogue.decision_records import reopen_unwritten
from tagkin.catalogue.decisions import DecidedTag, Decisions
from tagkin.catalogue.runs import PastRun, Runs
from tagkin.catalogue.source import FileUndone, Source
from tagkin.catalogue.tag_records import tag_number
from tagkin.catalogue.write_records import PastWrite, Writes
from tagkin.errors import InvalidInput, WriteError
from tagkin.images import Failure
from tagkin.progress import Progress
from tagkin.wording import count

__all__ = ["UndoResult", "undo_run"]

_UNDONE = (
    ("to restore", "file", "restore {}"),
    ("to remove", "file", "remove {} that it made"),
    ("restored", "file", "restored {} byte for byte"),
    ("removed", "file", "removed {} that it had made"),
    ("untagged", "file", "undid its changes in {} that somebody changed since"),
    ("tags removed", "photograph", "removed its tags from {}"),
    ("already", "file", "found {} as before"),
)


@dataclass
class UndoResult:
    """The result of undoing a run."""

    undoes: PastRun
    run: int | None = None
    """The number of the undo; None if nothing was undone."""
    files: list[FileUndone] = field(default_factory=list)
    decisions: list[DecidedTag] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    """Photographs that the run had finished, from the root."""
    edited: list[str] = field(default_factory=list)
    """Tags that the run had renamed, merged, forgotten or restored."""
    n_kept: int = 0
    """Decisions of the run that later decisions had replaced; the later ones stay."""
    failures: list[Failure] = field(default_factory=list)

    @property
    def not_exact(self) -> list[FileUndone]:
        """Files that somebody changed or removed since, so not every byte is as before."""
        return [file for file in self.files if file.how in ("untagged", "kept", "gone")]

    @property
    def n_left(self) -> int:
        """Files that still have what the run wrote, as far as anybody knows."""
        return len(self.failures) + sum(file.how == "gone" for file in self.files)

    def describe(self) -> str:
        """Count what happened to files, for example ``restored 2 files byte for byte``."""
        n = Counter(file.how for file in self.files)
        parts = [text.format(count(n[how], what)) for how, what, text in _UNDONE if n[how]]
        left = f"; {count(self.n_left, 'file')} not undone" if self.n_left else ""
        return (" and ".join(parts) or "nothing was left of its changes") + left


def undo_run(database: Database, source: Source, number: int | None, step: Progress) -> UndoResult:
    """Undo a run; see `Catalogue.undo`."""
    if not database.is_copy:
        source.finish_writes()
    runs = Runs(database)
    run = runs.last_undoable() if number is None else runs.get(number)
    if run is None:
        raise InvalidInput(
            "Nothing to undo: no run has decisions, edits of tags or writes that still apply."
        )
    writes = [w for w in Writes(database).of_run(run.id) if w.state in ("done", "planned")]
    if writes and database.is_copy:
        files = [
            FileUndone(
                write.file,
                write.changed_tags,
                "to remove" if write.before is None else "to restore",
            )
            for write in writes[::-1]
        ]
        return UndoResult(run, files=files)
    if writes:
        return _undo_writes(database, source, run, writes[::-1], step)
    if run.what == "write":
        raise InvalidInput(f"All writes of run {run.id} were undone already.")
    undone = Decisions(database).undo(run.id)
    return UndoResult(
        run,
        undone.run,
        decisions=list(undone.each),
        finished=list(undone.finished),
        edited=list(undone.edited),
        n_kept=undone.n_kept,
    )


def _undo_writes(
    database: Database,
    source: Source,
    undone: PastRun,
    writes: Sequence[PastWrite],
    step: Progress,
) -> UndoResult:
    result, records = UndoResult(undone), Writes(database)
    with contextlib.ExitStack() as stack, source.open_undo(writes) as undo_write:
        run: Run | None = None  # an undo that undoes nothing is not in the history
        for i, write in enumerate(writes):
            step("Undoing", i, len(writes))
            records.update(write.id, is_undoing=True)
            try:
                file = undo_write(write)
            except (WriteError, InvalidInput) as error:
                records.update(write.id, is_undoing=False)
                result.failures.append(Failure(database.absolute(write.file), str(error)))
                continue
            result.files.append(file)
            if file.how == "gone":
                records.update(write.id, is_undoing=False)
                continue
            if run is None:
                entered = database.run("undo", {"run": undone.id}, undoes=undone.id)
                run = stack.enter_context(entered)
            with database.transaction():
                records.update(write.id, state="undone", is_undoing=False, note=file.said)
                if write.backup is None:
                    tags = {tag_number(database, tag) for tag in write.tags}
                    reopen_unwritten(database, write.photograph, tags)
        step("Undoing", len(writes), len(writes))
        if run is not None:
            result.run = run.id
            n_undone = sum(file.how != "gone" for file in result.files)
            run.outcome |= {"files": n_undone, "failures": len(result.failures)}
    return result
