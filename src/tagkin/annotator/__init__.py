"""Photographs and tags in, suggestions with evidence out."""

from tagkin.annotator.suggestions import Finding, Kin, PhotoSuggestions, Similar, TagSuggestion

__all__ = ["Finding", "Kin", "PhotoSuggestions", "Similar", "TagSuggestion"]
