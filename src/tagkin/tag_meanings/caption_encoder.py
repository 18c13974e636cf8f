"""Embed photographs and names in one space, by the map learned from captions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from tagkin.lexicons import SentenceEncoder, VectorCache
from tagkin.tag_meanings.word_map import WordMap, read_word_map

__all__ = ["CaptionEncoder"]


class CaptionEncoder:
    """The text half of the default backbone.

    A sentence encoder turns a name into a vector, and `WordMap` maps vectors and features of
    photographs into one space. Both are read at first use.

    Parameters
    ----------
    columns : slice
        The features of EfficientNet-Lite0 among those of the backbone.
    cache : VectorCache, optional
        Keeps the sentence vectors; see `tagkin.features.FeatureCache`.
    """

    # From cosines to log-odds that a name is right, chosen on the training part of Flickr8k, whose
    # nouns are then right at least as often as said: .22, .33, .47, .68 and .82 instead of .14,
    # .24, .38, .58 and .75.
    scale: float = 9.0
    bias: float | None = -4.9
    is_centered = True

    def __init__(self, columns: slice = slice(None), cache: VectorCache | None = None):
        self._columns = columns
        self.sentences = SentenceEncoder(cache)

    @cached_property
    def _map(self) -> WordMap:
        return read_word_map()

    def __call__(self, names: Sequence[str]) -> np.ndarray:
        """Return float32 unit vectors (n, m) of names or sentences."""
        return self._map.embed_words(self.sentences(names))

    def embed_images(self, X: np.ndarray) -> np.ndarray:
        """Return float32 unit vectors (n, m) of photographs with features X (n, d)."""
        return self._map.embed_images(X[:, self._columns])

    @staticmethod
    def release() -> None:
        """Free the memory of the sentence encoder; the next new name reads it again."""
        SentenceEncoder.release()
