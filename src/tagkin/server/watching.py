"""Notice new and changed photographs in a folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from watchfiles import Change, watch

from tagkin.images.formats import raw_suffixes, suffixes

_QUIET = 2000  # ms without a change before a report, because files are copied in many steps
_LONGEST = 30_000  # ms until a report in any case
_PATIENCE = 5.0  # seconds for the thread to stop


def watch_folder(folder: Path, is_stopped: threading.Event) -> Iterator[None]:
    """Yield after changes of photographs, sidecars or the tag file; end when `is_stopped` is set.

    On network drives the system tells no changes of other machines. There, set
    ``WATCHFILES_FORCE_POLLING=true``.
    """
    wanted = suffixes() | raw_suffixes() | {".xmp", ".jsonl", ".csv"}

    def concerns(change: Change, path: str) -> bool:
        name, suffix = os.path.splitext(os.path.basename(path))
        # a folder that was moved or deleted mostly has no suffix, and its files are not named
        return not name.startswith(".") and (not suffix or suffix.lower() in wanted)

    for _ in watch(
        folder,
        watch_filter=concerns,
        debounce=_LONGEST,
        step=_QUIET,
        stop_event=is_stopped,
        raise_interrupt=True,
        ignore_permission_denied=True,
    ):
        yield


class FolderWatcher:
    """Calls `on_change` from a thread after changes in a folder."""

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
        try:
            for _ in watch_folder(self._folder, self._is_stopped):
                self._on_change()
        except (OSError, RuntimeError) as error:  # it is gone, or the system has no watches left
            self.error = str(error)
