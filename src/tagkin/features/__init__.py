"""From photographs to feature vectors: backbones, a cache, and the run over many files."""

from tagkin.features.base import Backbone, Preprocessing
from tagkin.features.cache import FeatureCache, default_cache_folder
from tagkin.features.extraction import Extraction, extract
from tagkin.features.registry import BACKBONES, get_backbone

__all__ = [
    "BACKBONES",
    "Backbone",
    "Extraction",
    "FeatureCache",
    "Preprocessing",
    "default_cache_folder",
    "extract",
    "get_backbone",
]
