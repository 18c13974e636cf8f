"""What the name of a tag says of a photograph, before any photograph carries it."""

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
