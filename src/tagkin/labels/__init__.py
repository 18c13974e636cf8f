"""Vocabularies that turn tags into label matrices, and the spelling of tags."""

from typing import TYPE_CHECKING

from tagkin.labels.spelling import normalize_tag, plural_pairs
from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.labels.vocabulary import Vocabulary as Vocabulary

# Loaded at first use: spellings are compared without NumPy and scikit-learn.
_HOMES = {
    "Vocabulary": "vocabulary",
}

__all__ = [
    "Vocabulary",
    "normalize_tag",
    "plural_pairs",
]

__getattr__ = lazy_names(__name__, _HOMES)
