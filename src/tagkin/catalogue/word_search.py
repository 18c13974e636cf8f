"""Search the photographs of a catalogue by words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from tagkin.annotator.photograph_reader import PhotographReader
from tagkin.catalogue.collection_model import CollectionModel
from tagkin.catalogue.database import Database
from tagkin.catalogue.photographs import Photographs
from tagkin.tag_meanings import ANY_WORDS, NamePrior, TextPrior, score_words

if TYPE_CHECKING:
    from tagkin.features import FeatureCache

__all__ = ["WordSearch", "word_reader"]


class WordSearch:
    """Photographs in the order in which words fit them.

    Parameters
    ----------
    prior : NamePrior
    contents : sequence of n int
        Numbers in the catalogue.
    features : array of shape (n, d)
        In half precision, which orders photographs well enough.
    """

    def __init__(self, prior: NamePrior, contents: Sequence[int], features: np.ndarray):
        self._prior = prior
        self._contents = np.asarray(contents, dtype=np.int64)
        self._features = features
        self._last: tuple[str, list[int]] | None = None

    @classmethod
    def open(cls, database: Database, cache: FeatureCache) -> Self:
        """Return a search in all photographs of a catalogue whose features are in a cache.

        Raises `InvalidInput` or `MissingExtra` if the backbone does not understand words.
        """
        reader = word_reader(database)
        prior, backbone = reader.require_prior(), reader.backbone
        photographs = Photographs(database).with_tags()
        features = np.zeros((len(photographs), backbone.dimension), dtype=np.float16)
        digests = [photograph.digest for photograph in photographs]
        is_cached = cache.load(backbone, digests, features)
        contents = [photograph.content for photograph in photographs]
        return cls(prior, np.array(contents, dtype=np.int64)[is_cached], features[is_cached])

    @property
    def note(self) -> str:
        """Advice for better results; empty for an encoder that understands any words."""
        if isinstance(self._prior, TextPrior):
            return ""
        return f"These fit best among the thousand things that the backbone knows. {ANY_WORDS}"

    def rank(self, words: str) -> list[int]:
        """Return all contents, best match first.

        Raises `InvalidInput` if the words mean nothing to the backbone.
        """
        last = self._last  # the next page asks again
        if last is None or last[0] != words:
            scores = score_words(self._prior, self._features, words)
            order = np.argsort(-scores, kind="stable")
            last = self._last = words, self._contents[order].tolist()
        return last[1]


def word_reader(database: Database) -> PhotographReader:
    """Return the reader of photographs with the backbone of the model, or with the default."""
    from tagkin.annotator import Annotator

    has_model = database.model_folder.is_dir()
    annotator = CollectionModel(database).load()[0] if has_model else Annotator()
    return PhotographReader(annotator.backbone)
