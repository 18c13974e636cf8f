"""Photographs and tags in, suggestions with evidence out."""

from tagkin.annotator.annotator import Annotator
from tagkin.annotator.collection import Collection, Progress, read_collection
from tagkin.annotator.quality import MEASURES, Measures, Quality, Reached
from tagkin.annotator.suggestions import Finding, Kin, PhotoSuggestions, Similar, TagSuggestion
from tagkin.annotator.synonyms import read_synonyms, read_tag_list

__all__ = [
    "MEASURES",
    "Annotator",
    "Collection",
    "Finding",
    "Kin",
    "Measures",
    "PhotoSuggestions",
    "Progress",
    "Quality",
    "Reached",
    "Similar",
    "TagSuggestion",
    "read_collection",
    "read_synonyms",
    "read_tag_list",
]
