"""Settings of a recipe, chosen by cross-validation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

from tagkin.annotator.fold_embeddings import REGULARIZATIONS
from tagkin.annotator.learning import Recipe, largest_product
from tagkin.annotator.sampling import part_of
from tagkin.arrays import blas_threads_for
from tagkin.model_selection import grid_search
from tagkin.progress import Progress, silent
from tagkin.transfer import KinReadout, NeighborTransfer, TagProp, TwoPassKNN

__all__ = ["tuned"]


def tuned(
    X: np.ndarray,
    Y: scipy.sparse.csr_array,
    recipe: Recipe,
    random_state: int | None,
    step: Progress = silent,
    groups: np.ndarray | None = None,
    rejected: scipy.sparse.csr_array | None = None,
) -> Recipe:
    """The recipe with the best κ and the best method of its kind, by cross-validation on MAP.

    The space of each of three folds has not seen what is held out. Of more scores than memory
    holds, those of some images and labels decide.
    """
    from sklearn.pipeline import make_pipeline  # here: importing it takes half a second

    if part := part_of(Y):
        X, Y, groups, rejected = part.taken_of(X, Y, groups, rejected)

    pipeline = make_pipeline(recipe.space, recipe.method)
    of_space, of_method = (name for name, _ in pipeline.steps)
    grid: dict[str, list[Any]] = {f"{of_space}__regularization": list(REGULARIZATIONS)}
    grid |= {f"{of_method}__{name}": values for name, values in _grid_of(recipe.method).items()}
    with blas_threads_for(largest_product(X, Y)):
        found = grid_search(
            pipeline,
            X,
            Y,
            grid,
            groups=groups,
            rejected=rejected,
            random_state=random_state,
            progress=step,
        )
    best = clone(pipeline).set_params(**found.parameters)
    space, method = (step for _, step in best.steps)
    # how neighbours vote is learned with the rest, for this κ
    values = (space.regularization,) if isinstance(method, KinReadout) else ()
    return replace(recipe, space=space, method=method, regularizations=values)


def _grid_of(method: NeighborTransfer) -> dict[str, list[Any]]:
    if isinstance(method, TwoPassKNN):
        return {"n_per_label": [1, 2, 5]}
    if isinstance(method, KinReadout):
        return {"regularization": [0.1, 0.25, 1.0]}
    grid: dict[str, list[Any]] = {"n_neighbors": [20, 50, 100, 200]}
    if isinstance(method, TagProp):
        grid["weights"] = ["rank", "distance"]
    return grid
