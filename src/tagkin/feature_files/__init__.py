"""Features on disk: read them from files, and stream over them."""

from tagkin.feature_files.files import FeatureFiles, open_features
from tagkin.feature_files.streaming import fit_streamed, nearest_streamed, transform_streamed

__all__ = [
    "FeatureFiles",
    "fit_streamed",
    "nearest_streamed",
    "open_features",
    "transform_streamed",
]
