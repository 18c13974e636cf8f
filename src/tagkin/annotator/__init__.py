"""Photographs or features and tags in, suggestions with evidence out."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    # at first use: to suggest tags takes nothing of what measures how good they are
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("tagkin.annotator.quality"), name)
