"""Find tags that mean the same by the vectors of their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tagkin.arrays import row_blocks
from tagkin.tag_meanings.prior import NamePrior, split_levels
from tagkin.tag_meanings.word_map import CaptionEncoder

__all__ = ["SameMeaning", "find_same_meaning"]

# Cosines in the map. Of 25 pairs of synonyms and translations, 17 have .74 or more and all .64 or
# more; of 33 other pairs (cat and dog, bike and motorcycle, Canon and Nikon), 30 have .63 or less.
_ALIKE = 0.65
_PART = 0.88  # if one name ends with the other, such as plane and airplane


class SameMeaning(NamedTuple):
    """Two tags that may mean the same."""

    first: str
    second: str
    cosine: float


def find_same_meaning(tags: Sequence[str]) -> list[SameMeaning]:
    """Find the tag nearest to each tag, if their names may mean the same.

    Tags with levels are compared by their last level, unless both have upper levels that differ.
    """
    names = list(dict.fromkeys(tags))
    prior = NamePrior(CaptionEncoder())
    meanings = prior.meanings(names)
    known = np.flatnonzero(~meanings.is_unknown)
    vectors = meanings.vectors[known]
    pairs: dict[tuple[int, int], float] = {}
    for rows in row_blocks(len(known), 8 * max(len(known), 1)):
        cosines = vectors[rows] @ vectors.T
        near = np.argwhere(cosines >= _ALIKE)
        near = near[near[:, 0] + rows.start != near[:, 1]]
        for i, k in near[np.argsort(-cosines[near[:, 0], near[:, 1]], kind="stable")]:
            first, second = int(known[i + rows.start]), int(known[k])
            if _may_be_same(names[first], names[second], cosines[i, k]):
                pairs[min(first, second), max(first, second)] = float(cosines[i, k])
    best: dict[int, float] = {}
    for (first, second), cosine in pairs.items():
        for tag in (first, second):
            best[tag] = max(best.get(tag, 0.0), cosine)
    return [
        SameMeaning(names[first], names[second], cosine)
        for (first, second), cosine in pairs.items()
        if cosine >= min(best[first], best[second])  # the nearest of one of the two
    ]


def _may_be_same(first: str, second: str, cosine: float) -> bool:
    (*above, leaf), (*others, other) = split_levels(first), split_levels(second)
    if above and others and above != others:
        return False
    a, b = _letters(leaf), _letters(other)
    if a == b:
        return above != others  # spellings are found elsewhere
    words = {*leaf.casefold().split()}, {*other.casefold().split()}
    if words[0] <= words[1] or words[1] <= words[0]:  # glove and baseball glove
        return False
    shorter, longer = sorted((a, b), key=len)
    if len(shorter) > 2 and longer.startswith(
        shorter[:-1]
    ):  # plurals and derived words: horse, horses and horseback
        return False
    return shorter not in longer or cosine >= _PART


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))
