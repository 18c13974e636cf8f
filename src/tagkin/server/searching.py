"""Search in a review: by tags, names, words or similarity."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tagkin.catalogue import ContentFile
from tagkin.catalogue.word_search import WordMatch, WordSearch, release_encoder
from tagkin.errors import NotFound
from tagkin.features import FeatureCache
from tagkin.server.answers import card, picture_address
from tagkin.server.mapping import CollectionMap
from tagkin.server.order import Reading
from tagkin.server.readers import Readers
from tagkin.server.stacks import Answer, stack_results
from tagkin.server.thumbnail_cache import SIZES

_NOT_PLACED = "This photograph is not on the map yet. It appears after the next training."
_N_SIMILAR = 20_000  # nearest photographs that are compared with filters
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
                with FeatureCache(self._cache, read_only=True) as cache:
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


# --- answers -----------------------------------------------------------------------------------


def search_answer(reading: Reading, name: str, n: int, after: int) -> Answer:
    """Return selected photographs with a text in their path."""
    matches = _search(reading, name, n, after)
    cards = [_card_at(path, file) for _, path, file in matches]
    return _results(reading, cards, matches[-1][0] if len(matches) == n else None)


def words_answer(
    reading: Reading,
    ranking: tuple[Sequence[WordMatch], str],
    name: str,
    n: int,
    after: int,
) -> Answer:
    """Return selected photographs in the order of matches, with a text in their path.

    A ranking has the matches, best first, and a note. `after` is the number of photographs on
    earlier pages.
    """
    ranked, note = ranking
    if reading.selected is not None or name:
        allowed = {file.content for _, _, file in _search(reading, name, -1) if file is not None}
        ranked = [match for match in ranked if match.content in allowed]
    page = ranked[after : after + n]
    files = reading.catalogue.photographs.files_of([match.content for match in page])
    cards = [card(files[c]) | {"fit": round(fit, 2)} for c, fit in page if c in files]
    return _results(reading, cards, after + n if len(ranked) > after + n else None, note)


def _search(
    reading: Reading, name: str, n: int, after: int = 0
) -> list[tuple[int, str, ContentFile | None]]:
    among = None
    if reading.selected is not None:
        numbers = reading.selected.photographs.numbers
        later = numbers[numbers > after]
        among = (later if name or n < 0 else later[:n]).tolist()
    return reading.catalogue.photographs.search(name, among=among, n=n, after=after)


def _results(
    reading: Reading, cards: Sequence[Answer], after: int | None = None, note: str = ""
) -> Answer:
    photographs = stack_results(reading.catalogue, cards, apart=reading.is_of_burst)
    return {"photographs": photographs, "next": after, "note": note}


def similar_answer(reading: Reading, collection_map: CollectionMap, content: int, n: int) -> Answer:
    """Return the `n` selected photographs that are nearest to one."""
    selected = reading.selected
    nearest = collection_map.similar(content, n if selected is None else _N_SIMILAR)
    if nearest is None:
        raise NotFound(_NOT_PLACED)
    if selected is not None:
        has = selected.photographs.has(nearest)
        nearest = [nearest[i] for i in np.flatnonzero(has).tolist()][:n]
    files = reading.catalogue.photographs.files_of(nearest)
    cards = [card(files[c]) for c in nearest if c in files]
    return _results(reading, cards)


def map_answer(reading: Reading, collection_map: CollectionMap) -> Answer:
    """Return the existing photographs on the map."""
    (tags, places), selected = collection_map.drawn(), reading.selected
    contents = [place.content for place in places]
    files = reading.catalogue.photographs.files_of(contents)
    has = [True] * len(contents) if selected is None else selected.photographs.has(contents)
    return {
        "tags": tags,
        "dots": [
            {
                "content": place.content,
                "name": os.path.basename(files[place.content].path),
                "thumbnail": picture_address(files[place.content], SIZES[0]),
                "position": place.position,
                "colour": place.colour,
                "selected": bool(is_selected),
            }
            for place, is_selected in zip(places, has, strict=True)
            if place.content in files
        ],
    }


def _card_at(path: str, file: ContentFile | None) -> Answer:
    if file is not None:
        return card(file._replace(path=path))
    folder, _, name = path.rpartition("/")  # the last scan could not read it
    return {
        "content": None,
        "name": name,
        "folder": folder,
        "thumbnail": None,
        "picture": None,
        "srcset": None,
    }
