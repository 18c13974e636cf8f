"""Evaluate methods on held-out images, and choose their parameters."""

from typing import TYPE_CHECKING

from tagkin.lazy_names import lazy_names
from tagkin.model_selection.folds import Fold, random_folds
from tagkin.model_selection.groups import find_groups

if TYPE_CHECKING:
    from tagkin.model_selection.choosing import GridSearchResult as GridSearchResult
    from tagkin.model_selection.choosing import Trial as Trial
    from tagkin.model_selection.choosing import grid_search as grid_search
    from tagkin.model_selection.cross_validation import MEASURES as MEASURES
    from tagkin.model_selection.cross_validation import evaluate_folds as evaluate_folds
    from tagkin.model_selection.cross_validation import held_out_scores as held_out_scores

__all__ = [
    "MEASURES",
    "Fold",
    "GridSearchResult",
    "Trial",
    "evaluate_folds",
    "find_groups",
    "grid_search",
    "held_out_scores",
    "random_folds",
]

# Imported at first use, because they import scikit-learn, and `tagkin suggest` finds groups.
_HOMES = {
    "GridSearchResult": "choosing",
    "MEASURES": "cross_validation",
    "Trial": "choosing",
    "evaluate_folds": "cross_validation",
    "grid_search": "choosing",
    "held_out_scores": "cross_validation",
}
__getattr__ = lazy_names(__name__, _HOMES)
