"""Split images into folds, and find images to hold out together.

scikit-learn's `GridSearchCV` and `cross_validate` choose settings and evaluate methods.
"""

from tagkin.model_selection.folds import Fold, random_folds
from tagkin.model_selection.groups import find_groups

__all__ = ["Fold", "find_groups", "random_folds"]
