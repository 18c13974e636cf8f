"""Labels: from tags to the columns of a label matrix, and the textual views of its rows."""

from tagkin.labels.merging import plural_pairs
from tagkin.labels.noise import with_noise
from tagkin.labels.ontology import OntologyView
from tagkin.labels.spelling import normalize_tag
from tagkin.labels.vocabulary import Vocabulary
from tagkin.labels.word_view import WordVectorView

__all__ = [
    "OntologyView",
    "Vocabulary",
    "WordVectorView",
    "normalize_tag",
    "plural_pairs",
    "with_noise",
]
