"""Scans and fits in a process of its own, with a low priority, and changes that ask for them.

The process is ``python -m tagkin.server.background CATALOGUE JOB``. The job ``catch-up`` scans the
folder, trains and suggests, and ``fit`` trains and suggests; both draw the map if there is a new
model, or a new photograph. The process reports its progress in lines of JSON. The first line of its
standard input is a list of words for suggestions by name. It ends with its standard input, because
the review has ended then. The memory of all this work returns to the system when it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tagkin.catalogue import Needs, open_catalogue
from tagkin.errors import DamagedModel, TagkinError
from tagkin.images import Failure
from tagkin.images.formats import suffixes
from tagkin.progress import SCANNING
from tagkin.server.mapping import CollectionMap, write_map

_NICE = 10  # a tenth of a core if all are busy
_PATIENCE = 10.0  # seconds for the process to end
_STARTING = "Starting"
_MANY_SECONDS, _FEW_SECONDS = 90, 5  # told as minutes, and not told if fewer

_QUIET = 2000  # ms without a change before a report, because files are copied in many steps
_LONGEST = 30_000  # ms until a report in any case
_NOT_UTF_8 = "Unable to decode path"  # starts the error of watchfiles for such a name
_WANTED = suffixes() | {".xmp", ".jsonl", ".csv"}


# --- in the process --------------------------------------------------------------------------


def main(path: str, job: str) -> int:
    """Run a job on a catalogue and return the exit code."""
    words = json.loads(sys.stdin.readline() or "[]")
    threading.Thread(target=_end_with_input, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(_NICE)
    try:
        with open_catalogue(Path(path), write=True, is_lent=True) as catalogue:
            is_new = False  # whether there are photographs that are not on the map
            if job == "catch-up":
                is_new = catalogue.catch_up(words, progress=_tell, on_news=_tell_news)
            else:
                _tell_news(catalogue.model.refit(progress=_tell).failures)
            model = catalogue.model.fingerprint()
            if model is not None and (is_new or CollectionMap(catalogue.path).model != model):
                try:
                    learned = catalogue.model.load()
                except DamagedModel:  # or of another version of tagkin
                    _tell_news(catalogue.model.refit(progress=_tell).failures)
                    learned = catalogue.model.load()
                write_map(catalogue, *learned, progress=_tell)
    except TagkinError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 1
    return 0


def _tell(what: str, done: int, total: int) -> None:
    # in one piece, because two threads write
    sys.stdout.write(json.dumps({"what": what, "done": done, "total": total}) + "\n")
    sys.stdout.flush()


def _tell_news(failures: Sequence[Failure]) -> None:
    unread = [(failure.file, failure.reason) for failure in failures]
    print(json.dumps({"news": unread}), flush=True)


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(1)


# --- in the review ---------------------------------------------------------------------------


class _Step:
    """A step in progress, and how long it takes at its pace so far."""

    def __init__(self, what: str, done: int, total: int):
        self.what, self._first = what, done
        self._started_at = time.monotonic()
        self.update(done, total)

    def update(self, done: int, total: int) -> None:
        self._done, self._total = done, total
        self._seconds = time.monotonic() - self._started_at

    def state(self) -> dict[str, Any]:
        return {"what": self.what, "done": self._done, "total": self._total}

    def text(self) -> str:
        """Describe the step, such as "Scanning: 640 of 12,000, about 3 min left"."""
        n_done, n_left = self._done - self._first, self._total - self._done
        left = self._seconds * n_left / n_done if n_done > 0 else 0
        text = f"{self.what}: {self._done:,} of {self._total:,}" if self._total > 1 else self.what
        if left >= _MANY_SECONDS:
            return f"{text}, about {left / 60:.0f} min left"
        return f"{text}, about {left:.0f} s left" if left >= _FEW_SECONDS else text


class BackgroundFit:
    """Starts a scan or a fit and follows its progress.

    The process uses this process's lock on the catalogue, and ends with this process. `on_news` is
    called with False when there are new suggestions, and with True when a job has ended,
    successfully or not. `words` are tags to suggest by name if there is nothing to learn from.
    """

    def __init__(self, catalogue: Path, on_news: Callable[[bool], None], words: Sequence[str] = ()):
        self._catalogue, self._on_news, self.words = catalogue, on_news, words
        self.failures: dict[str, Failure] = {}
        """Files that jobs could not read."""
        self._step = _Step(_STARTING, 0, 1)
        self._scan: _Step | None = None
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._last_needs: Needs | None = None
        self._is_stopped = False
        self._state: dict[str, Any] = {"state": "idle", "text": ""}

    @property
    def is_running(self) -> bool:
        """Whether a fit is running."""
        with self._lock:
            return self._process is not None

    def state(self) -> dict[str, Any]:
        """Return the state for pages."""
        with self._lock:
            if self._process is None:
                return self._state.copy()
            scan = None if self._scan is None else self._scan.state()
            is_alone = scan is not None and self._step.what == _STARTING
            steps = [self._scan] if is_alone else [self._scan, self._step]
            text = " · ".join(step.text() for step in steps if step is not None)
            return {**self._state, **self._step.state(), "scan": scan, "text": text}

    def failed_at(self, needs: Needs) -> bool:
        """Whether the last fit failed with the same needs, so it would fail again."""
        return self._state["state"] == "failed" and self._last_needs == needs

    def start(self, needs: Needs, job: str = "fit") -> bool:
        """Start a job; return False if a job is running."""
        with self._lock:
            if self._process is not None or self._is_stopped:
                return False
            self._last_needs = needs
            self._step, self._scan = _Step(_STARTING, 0, 1), None
            self._state = {"state": "running", "job": job}
            self._process = subprocess.Popen(  # noqa: S603 (our own interpreter, our own module)
                [sys.executable, "-m", __name__, str(self._catalogue), job],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                creationflags=getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0),  # of Windows
                env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            )
            self._thread = threading.Thread(target=self._follow, args=(self._process,), daemon=True)
            self._thread.start()
        return True

    def _note_progress(self, what: str, done: int, total: int) -> None:
        with self._lock:
            if what == SCANNING and done >= total:
                self._scan = None
            elif what == SCANNING and self._scan is not None:
                self._scan.update(done, total)
            elif what == SCANNING:
                self._scan = _Step(what, done, total)
            elif self._step.what == what:
                self._step.update(done, total)
            else:
                self._step = _Step(what, done, total)

    def stop(self) -> None:
        """Stop a running fit, and start no other."""
        with self._lock:
            self._is_stopped = True
            process, thread = self._process, self._thread
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):  # it has ended already
                process.stdin.close()  # which ends the process
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
        if thread is not None:
            thread.join(_PATIENCE)

    def wait(self, seconds: float) -> None:
        """Wait for a fit to end."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _follow(self, process: subprocess.Popen[str]) -> None:
        # a process that has ended already says why; a stopped review closes the pipe
        with contextlib.suppress(OSError, ValueError):
            if process.stdin is not None:
                process.stdin.write(json.dumps(list(self.words)) + "\n")
                process.stdin.flush()
        error, last_line = None, ""
        for line in process.stdout or ():
            try:
                report = json.loads(line)
            except ValueError:
                last_line = line.strip() or last_line  # a library printed it, or Python an error
                continue
            error = report.get("error", error)
            if "what" in report:
                self._note_progress(**report)
            for file, reason in report.get("news", ()):
                self.failures[file] = Failure(file, reason)
            if "news" in report and not self._is_stopped:
                self._on_news(False)
        code = process.wait()
        if code and error is None:
            reason = last_line or f"it ended with code {code}"
            error = f"The fit in the background failed: {reason}"
        for file in (process.stdin, process.stdout):
            # what the process did not read is written again when its pipe is closed
            with contextlib.suppress(OSError):
                if file is not None:
                    file.close()
        with self._lock:
            self._process = None
            self._state["state"] = "done" if error is None else "failed"
            self._state["at"] = time.time()
            done = "Model retrained; new order" if self._state["job"] == "fit" else ""
            self._state["text"] = error or done
        if not self._is_stopped:
            self._on_news(True)


# --- changes of the folder ----------------------------------------------------------------------


def _concerns(path: str) -> bool:
    """Whether a change is one of a photograph, a sidecar, a tag file or a folder."""
    name, suffix = os.path.splitext(os.path.basename(path))
    # a folder that was moved or deleted mostly has no suffix, and its files are not named
    return not name.startswith(".") and (not suffix or suffix.lower() in _WANTED)


class FolderWatcher:
    """Calls `on_change` from a thread after changes of photographs, sidecars or the tag file.

    On network drives the system tells no changes of other machines. There, set
    ``WATCHFILES_FORCE_POLLING=true``. After a file name that is not UTF-8, which watchfiles cannot
    report, watching starts again.
    """

    def __init__(self, folder: Path, on_change: Callable[[], object]):
        self._folder, self._on_change = folder, on_change
        self.error: str | None = None
        """Why the folder cannot be watched any more."""
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="folder watcher", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the thread."""
        self._is_stopped.set()
        self._thread.join(_PATIENCE)

    def _work(self) -> None:
        from watchfiles import watch  # which the process of a job does not need

        is_unreported = False  # whether something changed while nothing was watched
        while not self._is_stopped.is_set():
            try:
                for changes in watch(
                    self._folder,
                    watch_filter=lambda _, path: _concerns(path),
                    debounce=_LONGEST,
                    step=_QUIET,
                    rust_timeout=_QUIET,
                    yield_on_timeout=True,
                    stop_event=self._is_stopped,
                    raise_interrupt=True,
                    ignore_permission_denied=True,
                ):
                    if changes or is_unreported:
                        is_unreported = False
                        self._on_change()
            except Exception as error:  # it is gone, or the system has no watches left
                if not isinstance(error, RuntimeError) or _NOT_UTF_8 not in str(error):
                    self.error = str(error)
                    return
                is_unreported = True
                self._is_stopped.wait(_QUIET / 1000)  # its file may be written in many steps


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
