"""Vocabularies that turn tags into label matrices, and text views of labels."""

from typing import TYPE_CHECKING

from tagkin.labels.spelling import normalize_tag, plural_pairs
from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.labels.ontology import OntologyView as OntologyView
    from tagkin.labels.vocabulary import Vocabulary as Vocabulary
    from tagkin.labels.word_view import WordVectorView as WordVectorView

# Loaded at first use: spellings are compared without NumPy and scikit-learn.
_HOMES = {
    "OntologyView": "ontology",
    "Vocabulary": "vocabulary",
    "WordVectorView": "word_view",
}

__all__ = [
    "OntologyView",
    "Vocabulary",
    "WordVectorView",
    "normalize_tag",
    "plural_pairs",
]

__getattr__ = lazy_names(__name__, _HOMES)
