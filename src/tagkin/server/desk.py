"""What one server shows: the start page, and at most one open collection."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tagkin.catalogue import open_for_scan
from tagkin.catalogue.known_catalogues import check_data_folder
from tagkin.errors import InvalidInput, TagkinError
from tagkin.features import default_cache_folder
from tagkin.server.session import Review


def open_review(
    folder: Path | None, catalogue: Path | None = None, words: Sequence[str] = ()
) -> Review:
    """Open the review of a folder, and scan, learn and suggest in the background.

    The parameters are those of `tagkin.catalogue.open_for_scan`, and `words` as in `Review`.
    """
    if catalogue is None:
        check_data_folder()
    opened = open_for_scan(folder, catalogue, command="review")
    watches = not opened.server  # which tells nobody about changes
    review = Review(opened, default_cache_folder(), ahead=True, watches=watches, words=words)
    review.catch_up()
    return review


class Opened(NamedTuple):
    """An open collection, and its number."""

    number: int
    review: Review


class Desk:
    """The open collection, if any, and the way to open another one in its place.

    Each collection has a number, which is a part of the addresses of its pages. So a window that
    still shows an earlier collection cannot decide on photographs of the present one.

    Parameters
    ----------
    review : Review, optional
        The collection that is open at first.
    on_open : function, optional
        Called with the folder of each collection that is opened later.
    """

    def __init__(
        self, review: Review | None = None, on_open: Callable[[Path], object] = lambda root: None
    ):
        self.opened = None if review is None else Opened(1, review)
        """The open collection."""
        self._on_open = on_open
        self._lock = threading.Lock()
        self._opening: threading.Thread | None = None
        self._state: dict[str, Any] = {"state": "idle", "text": ""}
        self._is_closed = False

    def state(self) -> dict[str, Any]:
        """Return what is open, and what is being opened, for pages."""
        with self._lock:
            opened = self.opened
            folder = None if opened is None else str(opened.review.root)
            number = 0 if opened is None else opened.number
            return {**self._state, "open": folder, "number": number}

    @property
    def is_busy(self) -> bool:
        """Whether work goes on that a person would miss: opening, writing, scanning, learning."""
        with self._lock:
            opened, opening = self.opened, self._opening
        if opening is not None or opened is None:
            return opening is not None
        return opened.review.writer.is_running or opened.review.fit.is_running

    @property
    def is_writing(self) -> bool:
        """Whether tags are being written into files."""
        opened = self.opened
        return opened is not None and opened.review.writer.is_running

    def open(
        self, folder: Path, text: str = "", prepare: Callable[[], object] = lambda: None
    ) -> None:
        """Start to open a collection, in place of the one that is open.

        `prepare` is called first, in the same thread; its errors are told like those of opening.
        `text` says what happens meanwhile.
        """
        with self._lock:
            if self._is_closed:
                raise InvalidInput("tagkin is ending. Start it again.")
            if self._opening is not None:
                raise InvalidInput("Another collection is being opened. Wait a moment.")
            if self.is_writing:
                raise InvalidInput("Tags are being written into files. Wait until that is done.")
            self._state = {"state": "opening", "text": text or f"Opening {folder} …"}
            self._opening = threading.Thread(
                target=self._open, args=(folder, prepare), name="opening", daemon=True
            )
            self._opening.start()

    def close(self) -> None:
        """Close the open collection, and open no other."""
        with self._lock:
            self._is_closed, opening = True, self._opening
        if opening is not None:
            opening.join()
        if self.opened is not None:
            self.opened.review.close()

    def _open(self, folder: Path, prepare: Callable[[], object]) -> None:
        state, former = {"state": "idle", "text": ""}, self.opened
        is_open = former is not None and os.path.realpath(folder) == str(former.review.root)
        try:
            prepare()
            if not is_open:
                review = open_review(folder)
                self.opened = Opened(1 if former is None else former.number + 1, review)
                self._on_open(review.root)
        except (TagkinError, OSError) as error:
            state = {"state": "failed", "text": str(error)}
        except Exception as error:  # the page says so; nothing else waits for this thread
            state = {"state": "failed", "text": f"Internal error: {error!r}"}
        with self._lock:
            self._state = state
        if former is not None and self.opened is not former:
            former.review.close()
        with self._lock:
            self._opening = None
