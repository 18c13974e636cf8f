"""Read tags as English words, and find the classes of a classifier that are near them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from tagkin.arrays import row_blocks
from tagkin.lexicons import SentenceEncoder, WordNet, WordVectors
from tagkin.tag_meanings.common_words import CommonWords

__all__ = ["Reader", "Reading", "SentenceReader", "TaxonomyReader", "VectorReader", "split_levels"]

_SHARPNESS = 20.0  # of the softmax over cosines; chosen like the constants of `ClassMeanings`
_LIN_POWER = 16.0  # of Lin's similarity, without word vectors
_NEAR = 50  # maximum number of classes that a tag borrows from

Near: TypeAlias = "tuple[np.ndarray, np.ndarray]"


class Reading(NamedTuple):
    """How a tag is understood; an unknown tag has neither words nor classes."""

    words: tuple[str, ...]
    """English words that mean the tag, likeliest first: as it is spelled, and its translation."""
    near: Near | None
    """Classes near the tag, ascending, and their shares, which add up to 1."""


class Reader(Protocol):
    """Understands tags."""

    def __call__(self, tags: Sequence[str]) -> Iterator[Reading]:
        """Yield how each tag is understood."""


class _ClassReader:
    """The classes of a classifier, given as offsets in WordNet."""

    def __init__(self, synsets: Sequence[int], wordnet: WordNet):
        self.synsets = synsets
        self.wordnet = wordnet

    @cached_property
    def class_words(self) -> tuple[list[str], np.ndarray]:
        """Words of all classes, and the position of the first word of each class."""
        words = [self.wordnet.words(offset) for offset in self.synsets]
        starts = np.cumsum([0, *map(len, words)])[:-1]
        return [word for synonyms in words for word in synonyms], starts

    def blocks(self, n_tags: int) -> Iterator[slice]:
        """Yield parts of the tags that are compared with all classes together."""
        return row_blocks(n_tags, 8 * len(self.class_words[0]))

    def near(self, vectors: np.ndarray, class_vectors: np.ndarray) -> list[Near]:
        """Return the classes near each tag, given vectors of tags and of words of classes."""
        cosines = np.maximum.reduceat(vectors @ class_vectors.T, self.class_words[1], axis=1)
        return [_largest(row) for row in np.exp(_SHARPNESS * cosines)]


class SentenceReader(_ClassReader):
    """Understands tags in many languages, with a sentence encoder."""

    def __init__(self, synsets: Sequence[int], wordnet: WordNet, encoder: SentenceEncoder):
        super().__init__(synsets, wordnet)
        self.encoder = encoder

    def __call__(self, tags: Sequence[str]) -> Iterator[Reading]:
        """Yield how each tag is understood, by its last level."""
        leaves = [split_levels(tag)[-1] for tag in tags]
        for rows in self.blocks(len(leaves)):
            common_words = list(self._common_words(leaves[rows]))
            vectors = np.stack([word.vector for word in common_words])
            parts = leaves[rows], common_words, self.near(vectors, self._class_vectors)
            for leaf, common, near in zip(*parts, strict=True):
                is_english = self.wordnet.is_english(leaf)
                if common.is_name or not (is_english or common.is_known):
                    yield Reading((), None)
                    continue
                words = [leaf] if is_english else []
                if common.translation and common.translation != leaf.lower():
                    words.append(common.translation)
                yield Reading(tuple(words), near)

    @cached_property
    def _common_words(self) -> CommonWords:
        return CommonWords(self.encoder)

    @cached_property
    def _class_vectors(self) -> np.ndarray:
        return self.encoder([word.replace("_", " ") for word in self.class_words[0]])


class VectorReader(_ClassReader):
    """Understands English tags, with word vectors."""

    def __init__(self, synsets: Sequence[int], wordnet: WordNet, vectors: WordVectors):
        super().__init__(synsets, wordnet)
        self.vectors = vectors

    def __call__(self, tags: Sequence[str]) -> Iterator[Reading]:
        """Yield how each tag is understood."""
        vectors, has_vector = self.vectors.vectors(tags)
        leaves = [split_levels(tag)[-1] for tag in tags]
        is_english = np.array([self.wordnet.is_english(leaf) for leaf in leaves], dtype=bool)
        is_near = is_english & has_vector
        for rows in self.blocks(len(tags)):
            near = self.near(_unit(vectors[rows]), self._class_vectors)
            for i, classes in zip(range(rows.start, rows.stop), near, strict=True):
                words = (leaves[i],) if is_english[i] else ()
                yield Reading(words, classes if is_near[i] else None)

    @cached_property
    def _class_vectors(self) -> np.ndarray:
        return _unit(self.vectors.vectors(self.class_words[0])[0])


class TaxonomyReader(_ClassReader):
    """Understands English tags, with WordNet alone."""

    def __call__(self, tags: Sequence[str]) -> Iterator[Reading]:
        """Yield how each tag is understood, by its last level."""
        for tag in tags:
            leaf = split_levels(tag)[-1]
            if not self.wordnet.is_english(leaf):
                yield Reading((), None)
                continue
            similar = self.wordnet.lin_to(leaf, self.synsets) ** _LIN_POWER
            yield Reading((leaf,), _largest(similar) if similar.any() else None)


def split_levels(tag: str) -> list[str]:
    """Return the levels of a tag such as animal|dog or animal/dog; at least one."""
    levels = [level.strip() for level in tag.replace("/", "|").split("|")]
    return [level for level in levels if level] or [""]


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors to length 1; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def _largest(values: np.ndarray) -> Near:
    """Return the positions of the largest values, ascending, and their shares."""
    positions = np.sort(np.argpartition(-values, min(_NEAR, len(values)) - 1)[:_NEAR])
    positions = positions[values[positions] > 0]
    return positions, values[positions] / values[positions].sum()
