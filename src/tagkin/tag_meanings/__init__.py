"""Meanings of tag names: the map from photographs to words, priors, search, and synonyms."""

from typing import TYPE_CHECKING

from tagkin.lazy_names import lazy_names
from tagkin.tag_meanings.meanings import Meanings, NameTable
from tagkin.tag_meanings.prior import NamePrior, TextPrior

if TYPE_CHECKING:
    from tagkin.tag_meanings.caption_encoder import CaptionEncoder as CaptionEncoder
    from tagkin.tag_meanings.same_meaning import find_same_meaning as find_same_meaning
    from tagkin.tag_meanings.same_meaning import name_cosines as name_cosines
    from tagkin.tag_meanings.vocabularies import common_tags as common_tags
    from tagkin.tag_meanings.word_scores import measure_fit as measure_fit
    from tagkin.tag_meanings.word_scores import score_words as score_words

__all__ = [
    "CaptionEncoder",
    "Meanings",
    "NamePrior",
    "NameTable",
    "TextPrior",
    "common_tags",
    "find_same_meaning",
    "measure_fit",
    "name_cosines",
    "score_words",
]

# Imported at first use, because a trained model stores the meanings of its tags.
_HOMES = {
    "CaptionEncoder": "caption_encoder",
    "common_tags": "vocabularies",
    "find_same_meaning": "same_meaning",
    "measure_fit": "word_scores",
    "name_cosines": "same_meaning",
    "score_words": "word_scores",
}
__getattr__ = lazy_names(__name__, _HOMES)
