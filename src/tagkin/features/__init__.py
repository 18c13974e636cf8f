"""Backbones, the feature cache, and feature extraction from many photographs."""

from typing import TYPE_CHECKING

from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.features.backbone import Backbone as Backbone
    from tagkin.features.backbone import Preprocessing as Preprocessing
    from tagkin.features.backbone_names import BACKBONES as BACKBONES
    from tagkin.features.backbone_names import get_backbone as get_backbone
    from tagkin.features.cache import FeatureCache as FeatureCache
    from tagkin.features.cache import default_cache_folder as default_cache_folder
    from tagkin.features.extraction import Extraction as Extraction
    from tagkin.features.extraction import extract as extract
    from tagkin.features.text_encoder import TextEncoder as TextEncoder

# Loaded at first use: the command line completes the names of backbones without NumPy.
_HOMES = {
    "BACKBONES": "backbone_names",
    "Backbone": "backbone",
    "Extraction": "extraction",
    "FeatureCache": "cache",
    "Preprocessing": "backbone",
    "TextEncoder": "text_encoder",
    "default_cache_folder": "cache",
    "extract": "extraction",
    "get_backbone": "backbone_names",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605

__getattr__ = lazy_names(__name__, _HOMES)
