"""Search the photographs of a catalogue by words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from tagkin.annotator.photograph_reader import PhotographReader
from tagkin.catalogue.photographs import TaggedContent
from tagkin.tag_meanings import CaptionEncoder, NamePrior, measure_fit, score_words

if TYPE_CHECKING:
    from tagkin.features import FeatureCache

__all__ = ["WordMatch", "WordSearch", "release_encoder"]

NO_MATCH = "tagkin is not sure that any photograph shows this. The best matches come first."
_BLOCK = 4096  # photographs whose features are in memory together


class WordMatch(NamedTuple):
    """A photograph that words were compared with."""

    content: int
    fit: float
    """1 for the best match, 0 for photographs that fit no better than most."""


class WordSearch:
    """Photographs in the order in which words fit them."""

    def __init__(self, prior: NamePrior):
        self._prior = prior
        self._contents = np.zeros(0, dtype=np.int64)
        self._vectors: np.ndarray | None = None
        self._last: tuple[str, list[WordMatch], str] | None = None

    @classmethod
    def open(
        cls,
        reader: PhotographReader,
        photographs: Iterable[TaggedContent],
        cache: FeatureCache | None,
    ) -> tuple[Self, list[TaggedContent]]:
        """Return a search in the photographs whose features are in a cache, and the others.

        Raises `InvalidInput` if the backbone knows no words.
        """
        search, missing = cls(reader.require_prior()), []
        ordered, backbone = list(photographs), reader.backbone
        for start in range(0, len(ordered), _BLOCK):
            block = ordered[start : start + _BLOCK]
            features = np.zeros((len(block), backbone.dimension), dtype=np.float16)
            is_cached = np.zeros(len(block), dtype=bool)
            if cache is not None:
                is_cached = cache.load(backbone, [p.digest for p in block], features)
            known = [p.content for p, cached in zip(block, is_cached, strict=True) if cached]
            missing += [p for p, cached in zip(block, is_cached, strict=True) if not cached]
            if known:
                search.add(known, features[is_cached])
        return search, missing

    def add(self, contents: Sequence[int], features: np.ndarray) -> None:
        """Add photographs with features (n×d); embeddings are kept in half precision."""
        vectors = self._prior.encoder.embed_images(features.astype(np.float32))
        vectors = vectors.astype(np.float16)
        self._contents = np.append(self._contents, np.asarray(contents, dtype=np.int64))
        known = self._vectors
        self._vectors = vectors if known is None else np.vstack([known, vectors])

    def rank(self, words: str) -> tuple[list[WordMatch], str]:
        """Return all photographs, best match first, and a note if none stands out."""
        last = self._last  # the next page asks again
        if last is None or last[0] != words:
            vectors = np.zeros((0, 1)) if self._vectors is None else self._vectors
            scores = score_words(self._prior, vectors, words) if len(vectors) else np.zeros(0)
            fit, stands_out = measure_fit(scores)
            order = np.argsort(-scores, kind="stable")
            pairs = zip(self._contents[order].tolist(), fit[order].tolist(), strict=True)
            note = "" if stands_out or not len(scores) else NO_MATCH
            last = self._last = words, [WordMatch(*pair) for pair in pairs], note
        return last[1], last[2]


def release_encoder() -> None:
    """Free the memory of the sentence encoder; the next search reads it again."""
    CaptionEncoder.release()
