"""Meanings of tag names: the map from photographs to words, priors, search, and synonyms."""

from tagkin.tag_meanings.prior import (
    Meanings,
    NamePrior,
    NameTable,
    common_tags,
    measure_fit,
    score_words,
)
from tagkin.tag_meanings.same_meaning import find_same_meaning
from tagkin.tag_meanings.word_map import CaptionEncoder

__all__ = [
    "CaptionEncoder",
    "Meanings",
    "NamePrior",
    "NameTable",
    "common_tags",
    "find_same_meaning",
    "measure_fit",
    "score_words",
]
