"""Notice new and changed photographs in a folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from watchfiles import Change, watch

from tagkin.images.formats import raw_suffixes, suffixes

_QUIET = 2000  # ms without a change before a report, because files are copied in many steps
_LONGEST = 30_000  # ms until a report in any case
_PATIENCE = 5.0  # seconds for the thread to stop
_NOT_UTF_8 = "Unable to decode path"  # starts the error of watchfiles for such a name
_WANTED = suffixes() | raw_suffixes() | {".xmp", ".jsonl", ".csv"}


def _concerns(change: Change, path: str) -> bool:
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
        is_unreported = False  # whether something changed while nothing was watched
        while not self._is_stopped.is_set():
            try:
                for changes in watch(
                    self._folder,
                    watch_filter=_concerns,
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
