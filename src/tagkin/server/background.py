"""Scans and fits in a background process with a low priority."""

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

from tagkin.catalogue import Needs
from tagkin.images import Failure
from tagkin.progress import SCANNING

_PATIENCE = 10.0  # seconds for the process to end


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
        n_done, n_left = self._done - self._first, self._total - self._done
        left = round(self._seconds * n_left / n_done) if n_done > 0 else None
        return {"what": self.what, "done": self._done, "total": self._total, "left": left}


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
        self._step = _Step("Starting", 0, 1)
        self._scan: _Step | None = None
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._last_needs: Needs | None = None
        self._is_stopped = False
        self._state: dict[str, Any] = {"state": "idle"}

    @property
    def is_running(self) -> bool:
        """Whether a fit is running."""
        with self._lock:
            return self._process is not None

    def state(self) -> dict[str, Any]:
        """Return the state for pages.

        ``state`` is idle, running, done or failed. A running job has its name, ``job``, and of
        its step ``what``, ``done``, ``total`` and ``left``, the seconds that it probably takes;
        ``scan`` is the same of a scan that goes on beside it. A failed job has a sentence,
        ``error``.
        """
        with self._lock:
            if self._process is None:
                return dict(self._state)
            scan = None if self._scan is None else self._scan.state()
            return self._state | self._step.state() | {"scan": scan}

    def failed_at(self, needs: Needs) -> bool:
        """Whether the last fit failed with the same needs, so it would fail again."""
        return self.state()["state"] == "failed" and self._last_needs == needs

    def start(self, needs: Needs, job: str = "fit", backbone: str | None = None) -> bool:
        """Start a job of `tagkin.server.background_process`; return False if a job is running."""
        arguments = [str(self._catalogue), job, *([] if backbone is None else [backbone])]
        with self._lock:
            if self._process is not None or self._is_stopped:
                return False
            self._last_needs = needs
            self._step, self._scan = _Step("Starting", 0, 1), None
            self._state = {"state": "running", "job": job}
            self._process = subprocess.Popen(  # noqa: S603 (our own interpreter, our own module)
                [sys.executable, "-m", "tagkin.server.background_process", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
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
        messages: list[str] = []
        # a process that has ended already says why; a stopped review closes the pipe
        with contextlib.suppress(OSError, ValueError):
            if process.stdin is not None:
                process.stdin.write(json.dumps(list(self.words)) + "\n")
                process.stdin.flush()
        reader = threading.Thread(target=lambda: messages.extend(process.stderr or ()), daemon=True)
        reader.start()
        error = None
        for line in process.stdout or ():
            try:
                report = json.loads(line)
            except ValueError:
                continue  # a library printed it
            error = report.get("error", error)
            if "what" in report:
                self._note_progress(**report)
            for file, reason in report.get("news", ()):
                self.failures[file] = Failure(file, reason)
            if "news" in report and not self._is_stopped:
                self._on_news(False)
        code = process.wait()
        reader.join()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        if code and error is None:
            last = messages[-1].strip() if messages else f"it ended with code {code}"
            error = f"The fit in the background failed: {last}"
        with self._lock:
            self._process = None
            self._state["state"] = "done" if error is None else "failed"
            self._state["at"] = time.time()
            if error is not None:
                self._state["error"] = error
        if not self._is_stopped:
            self._on_news(True)
