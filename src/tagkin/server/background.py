"""A full fit beside the pages: a process of its own, with a low priority."""

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

__all__ = ["BackgroundFit"]

_PATIENCE = 10.0  # seconds for a process to end that was asked to


class BackgroundFit:
    """Starts a fit, follows it, and tells when it has ended.

    The process writes to the catalogue by the right of the one that started it, and ends with it.

    Parameters
    ----------
    catalogue : Path
    on_end : function
        Called when a fit has ended, well or not.
    """

    def __init__(self, catalogue: Path, on_end: Callable[[], None]):
        self._catalogue, self._on_end = catalogue, on_end
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._tried: Needs | None = None
        self._job = "fit"
        self._is_stopped = False
        self._told: dict[str, Any] = {"state": "idle"}

    @property
    def is_running(self) -> bool:
        """Whether a fit goes on."""
        with self._lock:
            return self._process is not None

    def state(self) -> dict[str, Any]:
        """What a page tells of it.

        ``state`` is idle, running, done or failed; a running one has its ``job``,
        ``what``, ``done`` and ``total``; one that failed has a sentence, ``error``.
        """
        with self._lock:
            return dict(self._told)

    def failed_at(self, needs: Needs) -> bool:
        """Whether a fit failed with no more decisions than now: it would fail again."""
        return self.state()["state"] == "failed" and self._tried == needs

    def start(self, needs: Needs, job: str = "fit") -> bool:
        """Start a fit, or let the map alone be drawn; False where one of them goes on."""
        with self._lock:
            if self._process is not None or self._is_stopped:
                return False
            self._tried = needs
            self._job = job
            self._told = self._running("Starting", 0, 1)
            self._process = subprocess.Popen(  # noqa: S603 (our own interpreter, our own module)
                [sys.executable, "-m", "tagkin.server.fitting", str(self._catalogue), job],
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
        told = {"what": what, "done": done, "total": total}
        return {"state": "running", "job": self._job} | told

    def stop(self) -> None:
        """End a fit that goes on, and start no other."""
        with self._lock:
            self._is_stopped = True
            process, thread = self._process, self._thread
        if process is not None and process.stdin is not None:
            process.stdin.close()  # which it takes as the end of all
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
        said: list[str] = []
        aside = threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True)
        aside.start()
        error = None
        for line in process.stdout or ():
            try:
                told = json.loads(line)
            except ValueError:
                continue  # what a library prints
            error = told.get("error", error)
            with self._lock:
                if "what" in told:
                    self._told = self._running(**told)
        code = process.wait()
        aside.join()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        if code and error is None:
            last = said[-1].strip() if said else f"it ended with code {code}"
            error = f"The fit in the background failed: {last}"
        with self._lock:
            self._process = None
            ended = {"at": time.time()}
            self._told = {"state": "done"} | ended
            if error is not None:
                self._told = {"state": "failed", "error": error} | ended
        if not self._is_stopped:
            self._on_end()
