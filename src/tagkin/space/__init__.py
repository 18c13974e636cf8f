"""The semantic space: landmarks, streamed sums, the regression, and the estimator above them."""

from typing import TYPE_CHECKING

from tagkin.lazy_names import lazy_names
from tagkin.space.space import Landmarks, Space

if TYPE_CHECKING:
    from tagkin.space.landmark_map import LandmarkMap as LandmarkMap
    from tagkin.space.pivoting import pgso as pgso
    from tagkin.space.pivoting import rp_cholesky as rp_cholesky
    from tagkin.space.regression import (
        regularization_of_public_code as regularization_of_public_code,
    )
    from tagkin.space.semantic_space import SemanticSpace as SemanticSpace
    from tagkin.space.views import IndicatorView as IndicatorView
    from tagkin.space.views import TextView as TextView
    from tagkin.space.views import as_text_view as as_text_view

__all__ = [
    "IndicatorView",
    "LandmarkMap",
    "Landmarks",
    "SemanticSpace",
    "Space",
    "TextView",
    "as_text_view",
    "pgso",
    "regularization_of_public_code",
    "rp_cholesky",
]

# At first use: embedding needs neither an estimator nor what learns.
_HOMES = {
    "IndicatorView": "views",
    "LandmarkMap": "landmark_map",
    "SemanticSpace": "semantic_space",
    "TextView": "views",
    "as_text_view": "views",
    "pgso": "pivoting",
    "regularization_of_public_code": "regression",
    "rp_cholesky": "pivoting",
}
__getattr__ = lazy_names(__name__, _HOMES)
