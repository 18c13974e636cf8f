"""The photographs that the filters of a page leave, and the suggestions for them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property

from tagkin.catalogue import Catalogue
from tagkin.catalogue.open_index import OpenIndex, SelectedSuggestions
from tagkin.catalogue.selection import Facets, PhotographIndex, Selected, Selection


class Views:
    """The photographs and open suggestions of a review in memory, read when filters need them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._photographs: PhotographIndex | None = None
        self._suggestions: OpenIndex | None = None

    def select(self, catalogue: Catalogue, selection: Selection) -> View | None:
        """Return the view of the photographs that a selection leaves; None for all of them."""
        return None if selection.is_empty else View(self, catalogue, selection)

    def count(self, catalogue: Catalogue, selection: Selection) -> Facets:
        """Count the photographs that each choice of a filter leaves."""
        return self.photographs(catalogue).count(catalogue, selection)

    def learn(self, verdicts: Sequence[tuple[int, int, int | None]]) -> None:
        """Follow decisions."""
        with self._lock:
            if self._suggestions is not None:
                self._suggestions.learn(verdicts)

    def photographs(self, catalogue: Catalogue) -> PhotographIndex:
        """Return the current photographs."""
        with self._lock:
            if self._photographs is None or not self._photographs.is_current(catalogue):
                self._photographs = PhotographIndex(catalogue)
            return self._photographs

    def suggestions(self, catalogue: Catalogue) -> OpenIndex:
        """Return the current open suggestions."""
        with self._lock:
            if self._suggestions is None or not self._suggestions.is_current(catalogue):
                self._suggestions = OpenIndex(catalogue)
            return self._suggestions


class View:
    """The photographs that the filters of one page leave."""

    def __init__(self, views: Views, catalogue: Catalogue, selection: Selection):
        self._views, self._catalogue = views, catalogue
        self.is_of_series = (selection.series or "").isdecimal()
        """Whether it is one series, whose photographs are shown one by one."""
        self.photographs: Selected = views.photographs(catalogue).select(catalogue, selection)

    @cached_property
    def suggestions(self) -> SelectedSuggestions:
        """The open suggestions for them."""
        return self._views.suggestions(self._catalogue).select(self.photographs)
