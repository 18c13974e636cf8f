"""How good a method is on images that it has not seen, and which parameters are best."""

from tagkin.model_selection.choosing import GridSearchResult, Trial, grid_search
from tagkin.model_selection.cross_validation import evaluate_folds, held_out_scores
from tagkin.model_selection.folds import Fold, random_folds
from tagkin.model_selection.measures import MEASURES

__all__ = [
    "MEASURES",
    "Fold",
    "GridSearchResult",
    "Trial",
    "evaluate_folds",
    "grid_search",
    "held_out_scores",
    "random_folds",
]
