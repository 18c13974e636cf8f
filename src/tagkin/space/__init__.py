"""The semantic space: landmarks, streamed sums, the regression, and the estimator above them."""

from tagkin.space.chi2_view import Chi2View
from tagkin.space.landmarks import LandmarkMap, Landmarks
from tagkin.space.pivoting import PartialGramSchmidt, pgso, rp_cholesky
from tagkin.space.regression import regularization_of_public_code
from tagkin.space.semantic_space import SemanticSpace
from tagkin.space.views import IndicatorView, TextView, as_text_view

__all__ = [
    "Chi2View",
    "IndicatorView",
    "LandmarkMap",
    "Landmarks",
    "PartialGramSchmidt",
    "SemanticSpace",
    "TextView",
    "as_text_view",
    "pgso",
    "regularization_of_public_code",
    "rp_cholesky",
]
