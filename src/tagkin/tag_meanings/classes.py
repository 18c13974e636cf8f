"""Relate tags to the classes of a classifier that they name or that are similar to them.

The classes are synsets of WordNet. A class belongs to a tag if its synset is at or below the
tag's: 118 breeds are dogs. Classes whose word vectors are near the tag's are an additional
meaning, and the only meaning of a tag that does not name a class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse

from tagkin.arrays import row_blocks
from tagkin.errors import MissingExtra, pip_install
from tagkin.lexicons import WordNet, WordVectors
from tagkin.tag_meanings.meanings import BORROWED, OWN, UNKNOWN, Meanings

__all__ = ["ClassMeanings"]

# Chosen by MAP, without a tagged photograph, on the training images of Flickr8k and of the folder
# of photographs in docs/results; .1 to .5, .1 to .4 and 15 to 30 differ by half a point at most.
_NEXT_SENSE = 0.25  # relative probability of each further sense in WordNet's list
_BORROWED = 0.2  # weight of the classes near a tag, if its first sense has weight 1
_SHARPNESS = 20.0  # of the softmax over cosines of word vectors
_LIN_POWER = 16.0  # of Lin's similarity, without word vectors

_ELSEWHERE = 0.1  # factor of a sense not below the tag's upper levels: bird|crane is no machine
_NEAR = 50  # maximum number of classes that a tag borrows from
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
    vectors : WordVectors, optional
        Without them, tags that name no class borrow by Lin's similarity in WordNet, which finds
        about half as much, because things that are seen together are near in text, not in a
        taxonomy.
    """

    def __init__(
        self, synsets: Sequence[int], wordnet: WordNet, vectors: WordVectors | None = None
    ):
        self.synsets = tuple(synsets)
        self.wordnet = wordnet
        self.vectors = vectors

    @classmethod
    def find(cls, synsets: Sequence[int]) -> ClassMeanings:
        """Use the installed WordNet, and word vectors if installed."""
        return _read_installed(tuple(synsets))

    def __call__(self, names: Sequence[str]) -> Meanings:
        """Return all possible meanings of the tags."""
        near = self._near_classes(names)
        meanings: list[_Meaning] = []
        kinds = np.full(len(names), UNKNOWN, dtype=np.int8)
        for i, (name, borrowed) in enumerate(zip(names, near, strict=True)):
            own = list(self._own_meanings(i, name))
            kinds[i] = OWN if own else BORROWED if borrowed else UNKNOWN
            meanings += own
            if borrowed:
                meanings.append(_Meaning(i, _BORROWED, *borrowed, self._breadth(own)))
        return self._assemble(meanings, kinds)

    # --- classes that a tag names --------------------------------------------------------

    def _own_meanings(self, tag: int, name: str) -> Iterator[_Meaning]:
        *above, leaf = [level.strip() for level in re.split(r"[|/]", name) if level.strip()] or [""]
        weight = 1.0
        words = re.split(r"[\s_-]+", leaf)
        if not self.wordnet.synsets(leaf) and len(words) > 1:
            leaf, weight = words[-1], _NEXT_SENSE  # a "stop sign" is a "sign"
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

    # --- classes near a tag --------------------------------------------------------------

    def _near_classes(self, names: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray] | None]:
        """Return the nearest classes of each tag with their shares, which add up to 1."""
        if self.vectors is None or not names:
            return [self._by_taxonomy(name) for name in names]
        classes, starts = self._class_words
        vectors, known = self.vectors.vectors(names)
        tags = _unit(vectors)
        result: list[tuple[np.ndarray, np.ndarray] | None] = []
        for rows in row_blocks(len(names), 8 * len(classes)):
            cosines = np.maximum.reduceat(tags[rows] @ classes.T, starts, axis=1)
            for is_known, row in zip(known[rows], cosines, strict=True):
                result.append(_largest(np.exp(_SHARPNESS * row)) if is_known else None)
        return result

    @cached_property
    def _class_words(self) -> tuple[np.ndarray, np.ndarray]:
        """Unit vectors of the classes' words, and the first row of each class."""
        assert self.vectors is not None
        class_words = [self.wordnet.words(offset) for offset in self.synsets]
        starts = np.cumsum([0, *map(len, class_words)])[:-1]
        words = [word for synonyms in class_words for word in synonyms]
        return _unit(self.vectors.vectors(words)[0]), starts

    def _by_taxonomy(self, name: str) -> tuple[np.ndarray, np.ndarray] | None:
        leaf = re.split(r"[|/]", name)[-1]
        similar = self.wordnet.lin_to(leaf, self.synsets) ** _LIN_POWER
        return _largest(similar) if similar.any() else None

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


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors to length 1; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def _largest(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the largest values, ascending, and their shares."""
    positions = np.sort(np.argpartition(-values, min(_NEAR, len(values)) - 1)[:_NEAR])
    positions = positions[values[positions] > 0]
    return positions, values[positions] / values[positions].sum()


@cache
def _read_installed(synsets: tuple[int, ...]) -> ClassMeanings:
    """Read the lexicons, once for all annotators of a process, because it takes seconds."""
    try:
        vectors = WordVectors.find()
    except MissingExtra:
        vectors = None
    try:
        # counts are only needed for WordNet's similarities, the substitute for word vectors
        wordnet = WordNet.find() if vectors is None else WordNet.find(information_content=None)
    except MissingExtra as error:
        raise MissingExtra(
            "WordNet, which has the meanings of tag names, is not installed. Install it, and "
            f"word vectors, with: {pip_install('names')}"
        ) from error
    return ClassMeanings(synsets, wordnet, vectors)
