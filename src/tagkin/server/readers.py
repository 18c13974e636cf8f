"""What the pages of a review read: connections to its catalogue, and what filters leave."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np

from tagkin.catalogue import Catalogue, open_catalogue
from tagkin.catalogue.events import EventIndex
from tagkin.catalogue.moment_index import MomentIndex
from tagkin.catalogue.open_index import OpenIndex, SelectedSuggestions
from tagkin.catalogue.selection import Facets, Month, PhotographIndex, Selected, Selection
from tagkin.errors import StorageError

_N_READERS = 4  # connections at the same time


class Readers:
    """A pool of read-only connections to a catalogue, each used by one thread at a time."""

    def __init__(self, path: Path):
        self._path = path
        self._free: deque[Catalogue] = deque()  # which any thread may change
        self._turn = threading.BoundedSemaphore(_N_READERS)

    @contextlib.contextmanager
    def connection(self) -> Iterator[Catalogue]:
        """Lend a connection, and wait for it if all are in use."""
        with self._turn:
            try:
                reader = self._free.pop()
            except IndexError:
                reader = open_catalogue(self._path)
            try:
                yield reader
            finally:
                self._free.append(reader)

    def close(self) -> None:
        """Close the connections that are not in use."""
        while self._free:
            self._free.pop().close()


class Views:
    """The photographs and open suggestions of a review in memory, read when filters need them.

    That takes a second or two at 100,000 photographs, so suggestions are read in the background
    as soon as a page shows the choices.
    """

    def __init__(self, readers: Readers):
        self._readers = readers
        self._reading_photographs, self._reading = threading.Lock(), threading.Lock()
        self._reading_moments = threading.Lock()
        self._photographs: PhotographIndex | None = None
        self._events: EventIndex | None = None
        self._moments: MomentIndex | None = None
        self._suggestions: OpenIndex | None = None
        self._last_run = 0  # whose decisions the suggestions follow

    def select(self, catalogue: Catalogue, selection: Selection) -> View | None:
        """Return the view of the photographs that a selection leaves; None for all of them."""
        return None if selection.is_empty else View(self, catalogue, selection)

    def count(self, catalogue: Catalogue, selection: Selection) -> Facets:
        """Count the photographs that each choice of a filter leaves."""
        self.prepare()
        return self.photographs(catalogue).count(catalogue.database, selection)

    def prepare(self) -> None:
        """Read suggestions in the background, unless they are there."""
        if self._suggestions is None and not self._reading.locked():
            threading.Thread(target=self._prepare, name="suggestions", daemon=True).start()

    def photographs(self, catalogue: Catalogue) -> PhotographIndex:
        """Return the current photographs."""
        with self._reading_photographs:
            if self._photographs is None or not self._photographs.is_current(catalogue.database):
                self._photographs = PhotographIndex(catalogue.database)
            return self._photographs

    def events(self, catalogue: Catalogue) -> EventIndex:
        """Return the current events."""
        with self._reading_photographs:
            if self._events is None or not self._events.is_current(catalogue.database):
                self._events = EventIndex(catalogue.database)
            return self._events

    def moments(self, catalogue: Catalogue) -> MomentIndex:
        """Return when all photographs were taken."""
        with self._reading_moments:
            if self._moments is None or not self._moments.is_current(catalogue.database):
                self._moments = MomentIndex(catalogue.database)
            return self._moments

    def suggestions(self, catalogue: Catalogue) -> OpenIndex:
        """Return the current open suggestions."""
        with self._reading:
            runs = catalogue.runs.numbers_after(self._last_run)
            if self._suggestions is not None:
                for run in runs:
                    self._suggestions.learn(catalogue.decisions.verdicts_after(run))
            if self._suggestions is None or not self._suggestions.is_current(catalogue.database):
                self._suggestions = OpenIndex(catalogue.database)
            self._last_run = max(runs, default=self._last_run)
            return self._suggestions

    def months(self, catalogue: Catalogue, waiting: np.ndarray) -> list[Month]:
        """Count the photographs of each month; contents with likely suggestions are `waiting`."""
        return self.photographs(catalogue).count_months(catalogue.database, waiting)

    def _prepare(self) -> None:
        with self._readers.connection() as catalogue, contextlib.suppress(StorageError):
            self.moments(catalogue)
            self.events(catalogue)
            self.suggestions(catalogue)


class View:
    """The photographs that the filters of one page leave."""

    def __init__(self, views: Views, catalogue: Catalogue, selection: Selection):
        self._views, self._catalogue = views, catalogue
        self.is_of_burst = (selection.choice("burst") or "").isdecimal()
        """Whether it is one burst, whose photographs are shown one by one."""
        index = views.photographs(catalogue)
        self.photographs: Selected = index.select(catalogue.database, selection)

    @cached_property
    def suggestions(self) -> SelectedSuggestions:
        """The open suggestions for them."""
        return self._views.suggestions(self._catalogue).select(self.photographs)
