"""Accepted tags written into files from the page, in a background thread, and undone."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from fastapi import Depends

from tagkin.catalogue import Catalogue, UndoResult, WriteRun
from tagkin.catalogue.selection import Selection
from tagkin.collection.sidecars import Convention
from tagkin.errors import InvalidInput, TagkinError
from tagkin.images import Failure
from tagkin.server.filtering import Selected
from tagkin.server.readers import Readers
from tagkin.wording import count, edited_text

N_FIRST = 10  # files that a plan shows in full
_N_FOLDERS = 200  # folders that a plan lists
_N_FAILURES = 50  # failures that a page names
_WAIT = 0.1  # seconds that a page waits for its plan; a small plan is ready by then
_PATIENCE = 30.0  # seconds for the file that is being written when the review ends


State = dict[str, Any]
"""What a job does or did, for pages."""


class Way(NamedTuple):
    """How to write, and for which photographs.

    Its fields are parameters of `Catalogue.write`.
    """

    embed: bool = False
    convention: Convention | None = None
    remove: bool = False
    selection: Selection = Selection()


def read_way(
    selection: Selected,
    embed: bool = False,
    sidecars: Convention | None = None,
    remove: bool = False,
) -> Way:
    """Return the way that an address names."""
    return Way(embed, sidecars, remove, selection)


AskedWay = Annotated[Way, Depends(read_way)]


class _StopWriting(Exception):
    """The review ends; the run stops between two files."""


class FileWriter:
    """Plans, writes and undoes writes of a review, one job at a time.

    The jobs are `Catalogue.write` and `Catalogue.undo`. They run in a thread with
    the review's own connection, so decisions go on meanwhile. Another thread makes plans, because a
    plan looks at every folder with something to write.
    """

    def __init__(self, catalogue: Catalogue, readers: Readers):
        self._catalogue, self._readers = catalogue, readers
        self._lock = threading.Lock()
        self._job: threading.Thread | None = None
        self._planning: threading.Thread | None = None
        self._plan: tuple[tuple[Way, object], dict[str, object]] | None = None
        self._n_plans = self._n_jobs = 0
        self.is_open = True
        self._state: State = {"state": "idle"}

    def state(self) -> State:
        """Return the state for pages, which changes when a plan or a job advances."""
        with self._lock:
            return {**self._state, "plans": self._n_plans}

    @property
    def is_running(self) -> bool:
        """Whether files are being written."""
        with self._lock:
            return bool(self._state["state"] == "running")

    # --- planning -------------------------------------------------------------------------------

    def plan(self, way: Way, version: int) -> dict[str, object] | None:
        """Return what would be written; None while that is being found out.

        `version` changes with the decisions, so an earlier plan is not used again.
        """
        with self._lock:
            key = way, (version, self._n_jobs)
            if self._plan is not None and self._plan[0] == key:
                return self._plan[1]
            if self._planning is None:
                self._planning = threading.Thread(target=self._make_plan, args=(key,), daemon=True)
                self._planning.start()
            thread = self._planning
        thread.join(_WAIT)
        with self._lock:
            return self._plan[1] if self._plan is not None and self._plan[0] == key else None

    def _make_plan(self, key: tuple[Way, object]) -> None:
        try:
            with self._readers.connection() as catalogue:
                answer = _plan_answer(catalogue.write(**key[0]._asdict(), dry_run=True))
        except (TagkinError, OSError) as error:
            answer = {"error": str(error), "edited": ""}
        with self._lock:
            self._plan, self._planning = (key, answer), None
            self._n_plans += 1

    # --- writing and undoing --------------------------------------------------------------------

    def write(self, way: Way) -> None:
        """Start to write accepted tags that files lack."""
        self._start(
            "Writing tags",
            lambda: _write_state(self._catalogue.write(**way._asdict(), progress=self._step)),
        )

    def undo(self, run: int) -> None:
        """Start to undo what a run wrote."""
        if self._catalogue.runs.get(run).what != "write":
            raise InvalidInput(f"Run {run} wrote no tags.")
        self._start(
            "Undoing",
            lambda: _undo_state(self._catalogue.undo(run, progress=self._step)),
        )

    def close(self) -> None:
        """Stop after the current file; files that were written can be undone."""
        self.is_open = False
        if self._job is not None:
            self._job.join(_PATIENCE)

    def _start(self, what: str, job: Callable[[], State]) -> None:
        with self._lock:
            if self._state["state"] == "running":
                raise InvalidInput("Files are being written already. Wait until that is done.")
            self._state = _running(what, 0, 1)
            self._job = threading.Thread(target=self._work, args=(job,), name="writing")
            self._job.start()

    def _work(self, job: Callable[[], State]) -> None:
        try:
            state = job()
        except _StopWriting:
            return
        except Exception as error:  # the page says why; nothing else waits for this thread
            reason = str(error) if isinstance(error, TagkinError | OSError) else repr(error)
            state = {"state": "failed", "text": reason}
        with self._lock:
            self._state = state
            self._n_jobs += 1

    def _step(self, what: str, done: int, total: int) -> None:
        if not self.is_open:
            raise _StopWriting
        with self._lock:
            self._state = _running(what, done, total)


def _running(what: str, done: int, total: int) -> State:
    return {"state": "running", "what": what, "done": done, "total": total}


def _plan_answer(result: WriteRun) -> dict[str, object]:
    folders: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for file in result.files:
        counts = folders[file.photograph.rpartition("/")[0]]
        kind = "embedded" if file.is_embedded else "new" if file.is_new else "existing"
        counts[kind] += 1
        counts["tags"] += len(file.tags)
        counts["removed"] += len(file.removed)
    every = ("new", "existing", "embedded", "tags", "removed")
    kinds = [kind for kind in every if any(counts[kind] for counts in folders.values())]
    removed = f"{count(result.n_removed, 'tag')} removed" if result.n_removed else ""
    return {
        "error": "",
        "edited": edited_text(result.to_confirm, "New suggestions keep"),
        "files": len(result.files),
        "text": "; ".join(text for text in (result.describe(), removed) if text),
        "kinds": kinds,
        "folders": [
            {"name": name} | {kind: counts[kind] for kind in kinds}
            for name, counts in list(folders.items())[:_N_FOLDERS]
        ],
        "more_folders": max(0, len(folders) - _N_FOLDERS),
        "first": [
            {
                "file": file.file,
                "how": _how(file.is_embedded, file.is_new, file.why),
                "tags": list(file.tags),
                "removed": list(file.removed),
            }
            for file in result.files[:N_FIRST]
        ],
    }


def _how(is_embedded: bool, is_new: bool, why: str) -> str:
    if is_embedded:
        return "into the photograph"
    return f"new sidecar, {why}" if is_new else "existing sidecar"


def _write_state(result: WriteRun) -> State:
    texts = [f"Wrote {result.describe()}."] if result.n_tags else []
    texts += [f"Removed {count(result.n_removed, 'tag')}."] if result.n_removed else []
    text = " ".join(texts) if result.n_written else "No file was written."
    return _done(text, result.run, result.failures, can_undo=bool(result.n_written))


def _undo_state(result: UndoResult) -> State:
    part = "a part of " if result.n_left else ""
    text = f"Undid {part}run {result.undoes.id}: {result.describe()}."
    if result.run is None:
        text = f"Nothing of run {result.undoes.id} was undone."
    if n_gone := sum(file.how == "gone" for file in result.files):
        text += f" {count(n_gone, 'file')} not found: undo the run again when they are back."
    return _done(text, result.run, result.failures, can_undo=False)


def _done(text: str, run: int | None, failures: list[Failure], *, can_undo: bool) -> State:
    named = [{"file": f.file, "reason": f.reason} for f in failures[:_N_FAILURES]]
    return {
        "state": "done",
        "text": text,
        "run": run,
        "can_undo": can_undo,
        "failures": named,
        "n_failures": len(failures),
    }
