"""The map from photographs to words, learned from captions.

It has one matrix for features of photographs and one for vectors of sentences. Both lead into one
space, where a photograph is near the words that describe it. `python -m experiments words` learns
it; `word_map.txt` says from what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np

from tagkin.errors import StorageError
from tagkin.records.forms import check_record
from tagkin.records.rules import AxisSizes, Floats, Refused

if TYPE_CHECKING:
    from tagkin.lexicons import SentenceEncoder
    from tagkin.lexicons.sentence_encoder import VectorCache

__all__ = ["CaptionEncoder", "WordMap", "normalize", "read_word_map"]

_FILE = "word_map.safetensors"


@dataclass(frozen=True)
class WordMap:
    """Maps features x of photographs and vectors s of sentences into one space.

        e = A(√x/‖√x‖ − a),    g = B(s − b),    both then of unit length.

    Attributes
    ----------
    image_mean : array of shape (d,)
        a, the mean of the features after the square root.
    image_map : array of shape (d, m)
        Aᵀ.
    word_mean : array of shape (v,)
        b, the mean of the captions.
    word_map : array of shape (v, m)
        Bᵀ.
    """

    image_mean: Annotated[np.ndarray, Floats("d")]
    image_map: Annotated[np.ndarray, Floats("d", "m")]
    word_mean: Annotated[np.ndarray, Floats("v")]
    word_map: Annotated[np.ndarray, Floats("v", "m")]

    @classmethod
    def read(cls, content: bytes) -> Self:
        """Read a record from the bytes of a safetensors file, and check it."""
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            tensors = load(content)
            arrays = {f.name: tensors[f.name].astype(np.float32) for f in fields(cls)}
            record = cls(**arrays)
            check_record(record, AxisSizes(), "word map")
        except (SafetensorError, KeyError, Refused) as error:
            raise StorageError(
                f"The map from photographs to words is damaged: {error}. Install tagkin again."
            ) from error
        return record

    def write(self) -> bytes:
        """Return the bytes of a safetensors file, in half precision."""
        from safetensors.numpy import save

        return save({f.name: getattr(self, f.name).astype(np.float16) for f in fields(self)})

    def embed_images(self, X: np.ndarray) -> np.ndarray:
        """Return float32 unit vectors (n, m) of photographs with features X (n, d)."""
        roots = normalize(np.sqrt(np.maximum(np.asarray(X, dtype=np.float32), 0)))
        return normalize((roots - self.image_mean) @ self.image_map)

    def embed_words(self, S: np.ndarray) -> np.ndarray:
        """Return float32 unit vectors (n, m) of texts with sentence vectors S (n, v)."""
        return normalize((S - self.word_mean) @ self.word_map)


@cache
def read_word_map() -> WordMap:
    """Read the map that comes with tagkin, once per process."""
    return WordMap.read((files("tagkin.tag_meanings") / _FILE).read_bytes())


def normalize(X: np.ndarray) -> np.ndarray:
    """Return rows of unit length; rows of zeros stay zero."""
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1)


class CaptionEncoder:
    """The text half of the default backbone.

    A sentence encoder turns a name into a vector, and `WordMap` maps vectors and features of
    photographs into one space. Both are read at first use.

    Parameters
    ----------
    cache : VectorCache, optional
        Keeps the sentence vectors; see `tagkin.features.FeatureCache`.
    """

    # The log-odds that a name is right are 9 cos − 4.9: even at a cosine of .54, and 1 in 135 at 0.
    # Chosen on the training part of Flickr8k, whose nouns are then right at least as often as said:
    # .22, .33, .47, .68 and .82 instead of .14, .24, .38, .58 and .75.
    scale = 9.0
    bias = -4.9
    is_centered = True

    def __init__(self, cache: VectorCache | None = None):
        self._cache = cache

    @cached_property
    def _sentences(self) -> SentenceEncoder:
        from tagkin.lexicons import SentenceEncoder  # known names need none

        return SentenceEncoder(self._cache)

    @cached_property
    def _map(self) -> WordMap:
        return read_word_map()

    def __call__(self, names: Sequence[str]) -> np.ndarray:
        """Return float32 unit vectors (n, m) of names or sentences."""
        return self._map.embed_words(self._sentences(names))

    def embed_images(self, X: np.ndarray) -> np.ndarray:
        """Return float32 unit vectors (n, m) of photographs with features X (n, d)."""
        return self._map.embed_images(X)

    @staticmethod
    def release() -> None:
        """Free the memory of the sentence encoder; the next new name reads it again."""
        from tagkin.lexicons import SentenceEncoder

        SentenceEncoder.release()
