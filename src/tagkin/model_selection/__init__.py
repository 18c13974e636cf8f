"""Evaluate methods on held-out images, and choose their parameters."""

from tagkin.model_selection.choosing import GridSearchResult, Trial, grid_search
from tagkin.model_selection.cross_validation import evaluate_folds, held_out_scores
from tagkin.model_selection.folds import Fold, random_folds
from tagkin.model_selection.groups import Links, find_groups, linked_groups
from tagkin.model_selection.measures import MEASURES

__all__ = [
    "MEASURES",
    "Fold",
    "GridSearchResult",
    "Links",
    "Trial",
    "evaluate_folds",
    "find_groups",
    "grid_search",
    "held_out_scores",
    "linked_groups",
    "random_folds",
]
