"""Tags by the classes of a classifier: those that they name, and those that are like them.

The classes are synsets of WordNet, so that a class belongs to a tag where its synset is at or
below the tag's: 118 breeds are dogs. Classes whose words are near the tag's in word vectors are
one more meaning, and the only one of a tag that names no class.
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
from tagkin.names.meanings import BORROWED, OWN, UNKNOWN, Meanings

__all__ = ["ClassMeanings"]

# Chosen by MAP, without a tagged photograph, on the training images of Flickr8k and of the folder
# of photographs in docs/results; .1 to .5, .1 to .4 and 15 to 30 differ by half a point at most.
_NEXT_SENSE = 0.25  # how much less probable each further sense in WordNet's list is
_BORROWED = 0.2  # weight of the classes near a tag, where its first sense has weight 1
_SHARPNESS = 20.0  # of the softmax over cosines of word vectors
_LIN_POWER = 16.0  # of Lin's similarity, where there are no word vectors

_ELSEWHERE = 0.1  # of a sense that is not below the tag's upper levels: bird|crane lifts nothing
_NEAR = 50  # classes that a tag borrows from
_TOO_BROAD = 0.5  # of all classes; what covers more says nothing, like "object"


class _Meaning(NamedTuple):
    tag: int
    weight: float
    classes: np.ndarray
    shares: np.ndarray
    breadth: float


class ClassMeanings:
    """What tags mean, in classes of a classifier.

    Parameters
    ----------
    synsets : sequence of C int
        Offsets of the classes in WordNet.
    wordnet : WordNet
    vectors : WordVectors, optional
        Without them, tags that name no class borrow by Lin's similarity in WordNet, which finds
        about half as much: things that are seen together are near in text, not in a taxonomy.
    """

    def __init__(
        self, synsets: Sequence[int], wordnet: WordNet, vectors: WordVectors | None = None
    ):
        self.synsets = tuple(synsets)
        self.wordnet = wordnet
        self.vectors = vectors

    @classmethod
    def find(cls, synsets: Sequence[int]) -> ClassMeanings:
        """With the WordNet that is installed, and word vectors where they are, too."""
        return _installed(tuple(synsets))

    def __call__(self, names: Sequence[str]) -> Meanings:
        """All that the tags may mean."""
        near = self._near(names)
        found: list[_Meaning] = []
        kinds = np.full(len(names), UNKNOWN, dtype=np.int8)
        for i, (name, borrowed) in enumerate(zip(names, near, strict=True)):
            own = list(self._own(i, name))
            kinds[i] = OWN if own else BORROWED if borrowed else UNKNOWN
            found += own
            if borrowed:
                found.append(_Meaning(i, _BORROWED, *borrowed, self._breadth(own)))
        return self._assembled(found, kinds)

    # --- classes that a tag names --------------------------------------------------------

    def _own(self, tag: int, name: str) -> Iterator[_Meaning]:
        *above, leaf = [level.strip() for level in re.split(r"[|/]", name) if level.strip()] or [""]
        weight = 1.0
        words = re.split(r"[\s_-]+", leaf)
        if not self.wordnet.synsets(leaf) and len(words) > 1:
            leaf, weight = words[-1], _NEXT_SENSE  # a stop sign is a sign
        senses = self.wordnet.synsets(leaf)
        inside = self._inside([sense.offset for sense in senses], above)
        covers = self.wordnet.covers(leaf, self.synsets)
        for sense, fits, covered in zip(senses, inside, covers, strict=True):
            classes = np.flatnonzero(covered)
            n = len(classes)
            if 0 < n <= _TOO_BROAD * len(self.synsets):
                likely = weight * (1 if fits else _ELSEWHERE)
                yield _Meaning(tag, likely, classes, np.full(n, 1 / n), float(n))
            if n or any(word[0].islower() for word in sense.words):
                weight *= _NEXT_SENSE  # but for names: no writer called Crane is on photographs

    def _inside(self, senses: list[int], above: list[str]) -> np.ndarray:
        """Which senses (k,) lie below an upper level of a tag; all if that tells nothing."""
        inside = np.zeros(len(senses), dtype=bool)
        for level in above:
            inside |= self.wordnet.covers(level, senses).any(axis=0)
        return inside if inside.any() else np.ones(len(senses), dtype=bool)

    @staticmethod
    def _breadth(own: list[_Meaning]) -> float:
        """As many classes as the tag's own meanings have, so that a mixture is of one scale."""
        total = sum(meaning.weight for meaning in own)
        return sum(m.weight * m.breadth for m in own) / total if total else 1.0

    # --- classes that are near it --------------------------------------------------------

    def _near(self, names: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray] | None]:
        """The nearest classes of each tag with their shares, which add up to 1."""
        if self.vectors is None or not names:
            return [self._by_taxonomy(name) for name in names]
        classes, starts = self._class_words
        vectors, known = self.vectors.vectors(names)
        tags = _unit(vectors)
        result: list[tuple[np.ndarray, np.ndarray] | None] = []
        for rows in row_blocks(len(names), 8 * len(classes)):
            cosines = np.maximum.reduceat(tags[rows] @ classes.T, starts, axis=1)
            for there, row in zip(known[rows], cosines, strict=True):
                result.append(_largest(np.exp(_SHARPNESS * row)) if there else None)
        return result

    @cached_property
    def _class_words(self) -> tuple[np.ndarray, np.ndarray]:
        """Unit vectors of the classes' words, and the row at which each class begins."""
        assert self.vectors is not None
        words = [self.wordnet.words(offset) for offset in self.synsets]
        starts = np.cumsum([0, *map(len, words)])[:-1]
        return _unit(self.vectors.vectors([word for some in words for word in some])[0]), starts

    def _by_taxonomy(self, name: str) -> tuple[np.ndarray, np.ndarray] | None:
        leaf = re.split(r"[|/]", name)[-1]
        similar = self.wordnet.lin_to(leaf, self.synsets) ** _LIN_POWER
        return _largest(similar) if similar.any() else None

    # --- together ------------------------------------------------------------------------

    def _assembled(self, found: list[_Meaning], kinds: np.ndarray) -> Meanings:
        tags = np.array([meaning.tag for meaning in found], dtype=np.int64)
        weights = np.array([meaning.weight for meaning in found], dtype=np.float64)
        total = np.bincount(tags, weights, minlength=len(kinds))
        ends = np.append(0, np.cumsum([len(meaning.classes) for meaning in found]))
        indices = np.concatenate([np.empty(0, np.int64), *(m.classes for m in found)])
        shares = np.concatenate([np.empty(0), *(m.shares for m in found)]).astype(np.float32)
        shape = len(found), len(self.synsets)
        return Meanings(
            scipy.sparse.csr_array((shares, indices, ends.astype(np.int64)), shape=shape),
            tags,
            weights / total[tags],
            np.array([meaning.breadth for meaning in found], dtype=np.float64),
            kinds,
        )


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def _largest(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the largest values, ascending, and their shares."""
    kept = np.sort(np.argpartition(-values, min(_NEAR, len(values)) - 1)[:_NEAR])
    kept = kept[values[kept] > 0]
    return kept, values[kept] / values[kept].sum()


@cache
def _installed(synsets: tuple[int, ...]) -> ClassMeanings:
    """Read once for all annotators of a process: it takes a second or two."""
    try:
        vectors = WordVectors.find()
    except MissingExtra:
        vectors = None
    try:
        # counts are read where similarities in WordNet stand in for those of vectors
        wordnet = WordNet.find() if vectors is None else WordNet.find(information_content=None)
    except MissingExtra as error:
        raise MissingExtra(
            "What the names of tags mean is in WordNet, which is not installed. Install it, and "
            f"word vectors, with: {pip_install('names')}"
        ) from error
    return ClassMeanings(synsets, wordnet, vectors)
