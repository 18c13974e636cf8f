"""The photographs that the filters of a page leave, and the suggestions for them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from functools import cached_property

from tagkin.catalogue import Catalogue
from tagkin.catalogue.open_index import OpenIndex, SelectedSuggestions
from tagkin.catalogue.selection import Facets, PhotographIndex, Selected, Selection
from tagkin.errors import StorageError
from tagkin.server.readers import Readers

Verdict = tuple[int, int, int | None]
"""A content, a tag, and 1 (accepted), -1 (rejected) or None (open again)."""


class Views:
    """The photographs and open suggestions of a review in memory, read when filters need them.

    That takes a second or two at 100,000 photographs, so suggestions are read in the background
    as soon as a page shows the choices. Decisions need not wait for it.
    """

    def __init__(self, readers: Readers):
        self._readers = readers
        self._reading_photographs, self._reading = threading.Lock(), threading.Lock()
        self._photographs: PhotographIndex | None = None
        self._suggestions: OpenIndex | None = None
        self._lock = threading.Lock()
        self._meanwhile: list[Verdict] | None = None  # decisions while suggestions are read

    def select(self, catalogue: Catalogue, selection: Selection) -> View | None:
        """Return the view of the photographs that a selection leaves; None for all of them."""
        return None if selection.is_empty else View(self, catalogue, selection)

    def count(self, catalogue: Catalogue, selection: Selection) -> Facets:
        """Count the photographs that each choice of a filter leaves."""
        if self._suggestions is None and not self._reading.locked():
            threading.Thread(target=self._prepare, name="suggestions", daemon=True).start()
        return self.photographs(catalogue).count(catalogue.database, selection)

    def learn(self, verdicts: Sequence[Verdict]) -> None:
        """Follow decisions."""
        with self._lock:
            if self._meanwhile is not None:
                self._meanwhile += verdicts
            if self._suggestions is not None:
                self._suggestions.learn(verdicts)

    def photographs(self, catalogue: Catalogue) -> PhotographIndex:
        """Return the current photographs."""
        with self._reading_photographs:
            if self._photographs is None or not self._photographs.is_current(catalogue.database):
                self._photographs = PhotographIndex(catalogue.database)
            return self._photographs

    def suggestions(self, catalogue: Catalogue) -> OpenIndex:
        """Return the current open suggestions."""
        with self._reading:
            index = self._suggestions
            if index is None or not index.is_current(catalogue.database):
                with self._lock:
                    self._meanwhile = []
                index = OpenIndex(catalogue.database)
                with self._lock:
                    index.learn(self._meanwhile)
                    self._suggestions, self._meanwhile = index, None
            return index

    def _prepare(self) -> None:
        with self._readers.connection() as catalogue, contextlib.suppress(StorageError):
            self.suggestions(catalogue)


class View:
    """The photographs that the filters of one page leave."""

    def __init__(self, views: Views, catalogue: Catalogue, selection: Selection):
        self._views, self._catalogue = views, catalogue
        self.is_of_series = (selection.series or "").isdecimal()
        """Whether it is one series, whose photographs are shown one by one."""
        index = views.photographs(catalogue)
        self.photographs: Selected = index.select(catalogue.database, selection)

    @cached_property
    def suggestions(self) -> SelectedSuggestions:
        """The open suggestions for them."""
        return self._views.suggestions(self._catalogue).select(self.photographs)
