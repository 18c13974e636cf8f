"""Fits in a background process with a low priority."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tagkin.catalogue import Needs

_PATIENCE = 10.0  # seconds for the process to end


class BackgroundFit:
    """Starts a fit and follows its progress.

    The process uses this process's lock on the catalogue, and ends with this process. `on_end` is
    called when a fit has ended, successfully or not.
    """

    def __init__(self, catalogue: Path, on_end: Callable[[], None]):
        self._catalogue, self._on_end = catalogue, on_end
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._last_needs: Needs | None = None
        self._job = "fit"
        self._is_stopped = False
        self._state: dict[str, Any] = {"state": "idle"}

    @property
    def is_running(self) -> bool:
        """Whether a fit is running."""
        with self._lock:
            return self._process is not None

    def state(self) -> dict[str, Any]:
        """Return the state for pages.

        ``state`` is idle, running, done or failed. A running fit has a ``job``, ``what``,
        ``done`` and ``total``, a failed fit has a sentence, ``error``.
        """
        with self._lock:
            return dict(self._state)

    def failed_at(self, needs: Needs) -> bool:
        """Whether the last fit failed with the same needs, so it would fail again."""
        return self.state()["state"] == "failed" and self._last_needs == needs

    def start(self, needs: Needs, job: str = "fit", backbone: str | None = None) -> bool:
        """Start a job of `tagkin.server.fitting`; return False if a job is running."""
        arguments = [str(self._catalogue), job, *([] if backbone is None else [backbone])]
        with self._lock:
            if self._process is not None or self._is_stopped:
                return False
            self._last_needs = needs
            self._job = job
            self._state = self._running("Starting", 0, 1)
            self._process = subprocess.Popen(  # noqa: S603 (our own interpreter, our own module)
                [sys.executable, "-m", "tagkin.server.fitting", *arguments],
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

    def _running(self, what: str, done: int, total: int) -> dict[str, Any]:
        return {
            "state": "running",
            "job": self._job,
            "what": what,
            "done": done,
            "total": total,
        }

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
        reader = threading.Thread(target=lambda: messages.extend(process.stderr or ()), daemon=True)
        reader.start()
        error = None
        for line in process.stdout or ():
            try:
                report = json.loads(line)
            except ValueError:
                continue  # a library printed it
            error = report.get("error", error)
            with self._lock:
                if "what" in report:
                    self._state = self._running(**report)
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
            self._state = (
                {"state": "done"} if error is None else {"state": "failed", "error": error}
            )
            self._state["at"] = time.time()
        if not self._is_stopped:
            self._on_end()
