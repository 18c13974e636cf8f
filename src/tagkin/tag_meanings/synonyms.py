"""Find tags that mean the same: synonyms in WordNet, and translations of English tags."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import combinations
from typing import NamedTuple

import numpy as np

from tagkin.arrays import row_blocks
from tagkin.errors import MissingExtra
from tagkin.lexicons import SentenceEncoder, WordNet
from tagkin.tag_meanings.common_words import CommonWords
from tagkin.tag_meanings.readings import split_levels

__all__ = ["Synonyms", "find_synonyms"]

# Chosen on the tags of COCO, Flickr8k and the folder of photographs in docs/results, in English and
# with translations; nearly all pairs are then right.
_SYNONYMS = 0.6  # minimum cosine of two words that WordNet calls synonyms
_TRANSLATION = 0.8  # minimum cosine of a translation


class Synonyms(NamedTuple):
    """Two tags that mean the same."""

    first: str
    second: str
    why: str
    """synonym or translation."""


def find_synonyms(tags: Sequence[str]) -> list[Synonyms]:
    """Find pairs of tags that mean the same.

    Synonyms are English words whose first meaning in WordNet is the same. A translation and an
    English tag are each other's nearest tags; finding them needs an encoder. Tags with levels, such
    as animal|dog, are not compared.

    Raises
    ------
    MissingExtra
        If WordNet is not installed.
    """
    wordnet = WordNet.find(information_content=None)
    single = [tag for tag in dict.fromkeys(tags) if len(split_levels(tag)) == 1]
    is_english = np.array([wordnet.is_english(tag) for tag in single], dtype=bool)
    english = [tag for tag, known in zip(single, is_english, strict=True) if known]
    pairs = list(_synonyms(english, wordnet))
    with suppress(MissingExtra):
        encoder = SentenceEncoder.find()
        pairs = _confirm(pairs, encoder)
        pairs += _translations(single, is_english, encoder)
    return pairs


def _synonyms(tags: Sequence[str], wordnet: WordNet) -> Iterator[Synonyms]:
    by_sense: dict[int, dict[str, str]] = defaultdict(dict)
    for tag in tags:
        senses = wordnet.synsets(tag)
        if senses:
            # other spellings and plurals are not synonyms
            by_sense[senses[0].offset].setdefault(_letters(tag).rstrip("s"), tag)
    for same in by_sense.values():
        for first, second in combinations(same.values(), 2):
            words, others = set(first.casefold().split()), set(second.casefold().split())
            if not words <= others and not others <= words:  # not "glove" and "baseball glove"
                yield Synonyms(first, second, "synonym")


def _confirm(pairs: Sequence[Synonyms], encoder: SentenceEncoder) -> list[Synonyms]:
    """Return the pairs that the encoder places near each other, unlike hand and mitt."""
    if not pairs:
        return []
    first, second = (encoder([pair[i].lower() for pair in pairs]) for i in (0, 1))
    near = (first * second).sum(axis=1) >= _SYNONYMS
    return [pair for pair, is_near in zip(pairs, near, strict=True) if is_near]


def _translations(
    tags: Sequence[str], is_english: np.ndarray, encoder: SentenceEncoder
) -> Iterator[Synonyms]:
    if is_english.all() or not is_english.any():
        return
    words = list(CommonWords(encoder)(tags))
    is_no_name = np.array([not word.is_name for word in words])
    vectors = np.stack([word.vector for word in words])
    english, foreign = (np.flatnonzero(is_no_name & mask) for mask in (is_english, ~is_english))
    for i, k, cosine in _mutual_nearest(vectors[english], vectors[foreign]):
        first, second = tags[english[i]], tags[foreign[k]]
        is_part = _letters(first) in _letters(second)  # "gant de baseball" is not "baseball"
        if cosine >= _TRANSLATION and not is_part and any(map(str.isalpha, second)):
            yield Synonyms(first, second, "translation")


def _mutual_nearest(A: np.ndarray, B: np.ndarray) -> Iterator[tuple[int, int, float]]:
    """Yield rows of A and B that are nearest to each other, and their cosines."""
    if not len(A) or not len(B):
        return
    best, nearest = np.full(len(B), -np.inf), np.zeros(len(B), dtype=np.int64)
    of_a = np.zeros(len(A), dtype=np.int64)
    for rows in row_blocks(len(A), 4 * len(B)):
        cosines = A[rows] @ B.T
        of_a[rows] = cosines.argmax(axis=1)
        better = cosines.max(axis=0) > best
        nearest[better] = rows.start + cosines.argmax(axis=0)[better]
        best[better] = cosines.max(axis=0)[better]
    for k, i in enumerate(nearest):
        if of_a[i] == k:
            yield int(i), k, float(best[k])


def _letters(tag: str) -> str:
    return "".join(filter(str.isalnum, tag.casefold()))
