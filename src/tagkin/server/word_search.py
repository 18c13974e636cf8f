"""Search by words in a review."""

from __future__ import annotations

import threading
from pathlib import Path

from tagkin.catalogue.word_search import WordSearch
from tagkin.errors import InvalidInput, MissingExtra
from tagkin.features import ReadOnlyCache
from tagkin.server.readers import Readers


class CollectionSearch:
    """A search in the photographs whose features are in the cache, opened at first use.

    The features stay in memory until the model or the number of photographs changes.
    """

    def __init__(self, readers: Readers, cache: Path):
        self._readers, self._cache = readers, cache
        self._lock = threading.Lock()
        self._opened: WordSearch | None = None
        self._state: tuple[str | None, int] | None = None

    def renew(self) -> None:
        """Forget the features, because there are new ones."""
        with self._lock:
            self._state = None

    def rank(self, words: str) -> tuple[list[int], str]:
        """Return all contents, best first, and what would find more."""
        with self._lock, self._readers.connection() as catalogue:
            n = catalogue.photographs.count()["n_photographs"]
            state = catalogue.model.fingerprint(), n
            try:
                if self._opened is None or self._state != state:
                    with ReadOnlyCache(self._cache) as cache:
                        self._opened, self._state = WordSearch.open(catalogue, cache), state
                return self._opened.rank(words), self._opened.note
            except MissingExtra as error:
                raise InvalidInput(str(error)) from error
