"""Meanings of tag names: priors for tags that no photograph has yet, and synonyms."""

from tagkin.tag_meanings.classes import ClassMeanings
from tagkin.tag_meanings.meanings import Meanings, NameTable
from tagkin.tag_meanings.prior import ClassPrior, NamePrior, TextPrior
from tagkin.tag_meanings.search import ANY_WORDS, score_words
from tagkin.tag_meanings.synonyms import Synonyms, find_synonyms
from tagkin.tag_meanings.vocabularies import common_tags
from tagkin.tag_meanings.weights import NameWeights, fit_name_weights

__all__ = [
    "ANY_WORDS",
    "ClassMeanings",
    "ClassPrior",
    "Meanings",
    "NamePrior",
    "NameTable",
    "NameWeights",
    "Synonyms",
    "TextPrior",
    "common_tags",
    "find_synonyms",
    "fit_name_weights",
    "score_words",
]
