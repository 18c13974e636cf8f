"""Photographs or features and tags in, suggestions with evidence out."""

from typing import TYPE_CHECKING

from tagkin.annotator.annotator import Annotator
from tagkin.annotator.feature_annotator import FeatureAnnotator
from tagkin.annotator.suggestions import (
    Finding,
    Kin,
    LabelFinding,
    LabelSuggestion,
    PhotoSuggestions,
    Similar,
    SimilarImage,
    Support,
    TagSuggestion,
)
from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.annotator.quality import MEASURES as MEASURES
    from tagkin.annotator.quality import Measures as Measures
    from tagkin.annotator.quality import Quality as Quality
    from tagkin.annotator.quality import Reached as Reached

__all__ = [
    "MEASURES",
    "Annotator",
    "FeatureAnnotator",
    "Finding",
    "Kin",
    "LabelFinding",
    "LabelSuggestion",
    "Measures",
    "PhotoSuggestions",
    "Quality",
    "Reached",
    "Similar",
    "SimilarImage",
    "Support",
    "TagSuggestion",
]

# At first use: to suggest tags takes nothing of what measures how good they are.
__getattr__ = lazy_names(
    __name__, dict.fromkeys(("MEASURES", "Measures", "Quality", "Reached"), "quality")
)
