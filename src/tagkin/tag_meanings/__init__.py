"""Priors from tag names, for tags that no photograph has yet."""

from tagkin.tag_meanings.classes import ClassMeanings
from tagkin.tag_meanings.meanings import Meanings, NameTable
from tagkin.tag_meanings.prior import ClassPrior, NamePrior, TextPrior
from tagkin.tag_meanings.vocabularies import common_tags
from tagkin.tag_meanings.weights import NameWeights, fit_name_weights

__all__ = [
    "ClassMeanings",
    "ClassPrior",
    "Meanings",
    "NamePrior",
    "NameTable",
    "NameWeights",
    "TextPrior",
    "common_tags",
    "fit_name_weights",
]
