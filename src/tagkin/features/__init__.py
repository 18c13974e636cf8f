"""Backbones, the feature cache, and feature extraction from many photographs."""

from typing import TYPE_CHECKING

from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.features.base import Backbone as Backbone
    from tagkin.features.base import Preprocessing as Preprocessing
    from tagkin.features.cache import FeatureCache as FeatureCache
    from tagkin.features.cache import ReadOnlyCache as ReadOnlyCache
    from tagkin.features.cache import default_cache_folder as default_cache_folder
    from tagkin.features.classifier import Classifier as Classifier
    from tagkin.features.extraction import extract as extract
    from tagkin.features.registry import BACKBONES as BACKBONES
    from tagkin.features.registry import get_backbone as get_backbone
    from tagkin.features.runs import Extraction as Extraction
    from tagkin.features.text import TextEncoder as TextEncoder

# Loaded at first use: the command line completes the names of backbones without NumPy.
_HOMES = {
    "BACKBONES": "registry",
    "Backbone": "base",
    "Classifier": "classifier",
    "Extraction": "runs",
    "FeatureCache": "cache",
    "Preprocessing": "base",
    "ReadOnlyCache": "cache",
    "TextEncoder": "text",
    "default_cache_folder": "cache",
    "extract": "extraction",
    "get_backbone": "registry",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605

__getattr__ = lazy_names(__name__, _HOMES)
