"""Photographs and tags in, suggestions with evidence out."""

from tagkin.annotator.annotator import Annotator
from tagkin.annotator.quality import MEASURES, Measures, Quality, Reached
from tagkin.annotator.suggestions import Finding, Kin, PhotoSuggestions, Similar, TagSuggestion

__all__ = [
    "MEASURES",
    "Annotator",
    "Finding",
    "Kin",
    "Measures",
    "PhotoSuggestions",
    "Quality",
    "Reached",
    "Similar",
    "TagSuggestion",
]
