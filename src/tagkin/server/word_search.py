"""Search by words in a review."""

from __future__ import annotations

import threading
from pathlib import Path

from tagkin.catalogue.word_search import WordMatch, WordSearch, release_encoder
from tagkin.features import ReadOnlyCache
from tagkin.server.readers import Readers

_HOLD = 60.0  # seconds after a search for which the encoder of words stays in memory


class CollectionSearch:
    """A search in the photographs whose features are in the cache, opened at first use.

    Embeddings (512 bytes per photograph) stay in memory until the model or the number of
    photographs changes. The encoder of words (120 MB) stays for a minute after a search.
    """

    def __init__(self, readers: Readers, cache: Path):
        self._readers, self._cache = readers, cache
        self._lock = threading.Lock()
        self._opened: WordSearch | None = None
        self._state: tuple[str | None, int] | None = None
        self._timer: threading.Timer | None = None

    def renew(self) -> None:
        """Forget the embeddings, because there are new ones."""
        with self._lock:
            self._state = None

    def close(self) -> None:
        """Free the encoder now."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
                release_encoder()

    def rank(self, words: str) -> tuple[list[WordMatch], str]:
        """Return all photographs, best first, and a note if none stands out."""
        with self._lock, self._readers.connection() as catalogue:
            n = catalogue.photographs.count().n_photographs
            state = catalogue.model.fingerprint(), n
            if self._opened is None or self._state != state:
                with ReadOnlyCache(self._cache) as cache:
                    photographs = catalogue.photographs.with_tags()
                    self._opened, _ = WordSearch.open(catalogue.model.reader(), photographs, cache)
                self._state = state
            try:
                return self._opened.rank(words)
            finally:
                self._release_later()

    def _release_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(_HOLD, release_encoder)
        self._timer.daemon = True
        self._timer.start()
