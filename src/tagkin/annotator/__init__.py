"""Photographs or features and tags in, suggestions with evidence out."""

from tagkin.annotator.annotator import Annotator
from tagkin.annotator.feature_annotator import FeatureAnnotator
from tagkin.annotator.quality import MEASURES, Measures, Quality, Reached
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
