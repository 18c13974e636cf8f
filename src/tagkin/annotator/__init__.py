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
    from tagkin.annotator.quality import OperatingPoint as OperatingPoint
    from tagkin.annotator.quality import Quality as Quality

__all__ = [
    "Annotator",
    "FeatureAnnotator",
    "Finding",
    "Kin",
    "LabelFinding",
    "LabelSuggestion",
    "OperatingPoint",
    "PhotoSuggestions",
    "Quality",
    "Similar",
    "SimilarImage",
    "Support",
    "TagSuggestion",
]

# At first use: suggesting does not need what measures quality.
__getattr__ = lazy_names(__name__, dict.fromkeys(("OperatingPoint", "Quality"), "quality"))
