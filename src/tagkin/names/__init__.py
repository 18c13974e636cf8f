"""Priors from tag names, for tags that no photograph has yet."""

from tagkin.names.classes import ClassMeanings
from tagkin.names.meanings import Meanings, NameTable
from tagkin.names.prior import ClassPrior, NamePrior, TextPrior
from tagkin.names.vocabularies import common_tags
from tagkin.names.weights import NameWeights

__all__ = [
    "ClassMeanings",
    "ClassPrior",
    "Meanings",
    "NamePrior",
    "NameTable",
    "NameWeights",
    "TextPrior",
    "common_tags",
]
