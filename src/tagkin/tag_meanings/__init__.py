"""Meanings of tag names: priors for tags that no photograph has yet, and synonyms."""

from typing import TYPE_CHECKING

from tagkin.lazy_names import lazy_names
from tagkin.tag_meanings.meanings import Meanings, NameTable
from tagkin.tag_meanings.prior import ClassPrior, NamePrior, TextPrior

if TYPE_CHECKING:
    from tagkin.tag_meanings.classes import ClassMeanings as ClassMeanings
    from tagkin.tag_meanings.synonyms import Synonyms as Synonyms
    from tagkin.tag_meanings.synonyms import find_synonyms as find_synonyms
    from tagkin.tag_meanings.vocabularies import common_tags as common_tags
    from tagkin.tag_meanings.word_scores import ANY_WORDS as ANY_WORDS
    from tagkin.tag_meanings.word_scores import score_words as score_words

__all__ = [
    "ANY_WORDS",
    "ClassMeanings",
    "ClassPrior",
    "Meanings",
    "NamePrior",
    "NameTable",
    "Synonyms",
    "TextPrior",
    "common_tags",
    "find_synonyms",
    "score_words",
]

# Imported at first use, because a trained model stores the meanings of its tags.
_HOMES = {
    "ANY_WORDS": "word_scores",
    "ClassMeanings": "classes",
    "Synonyms": "synonyms",
    "common_tags": "vocabularies",
    "find_synonyms": "synonyms",
    "score_words": "word_scores",
}
__getattr__ = lazy_names(__name__, _HOMES)
