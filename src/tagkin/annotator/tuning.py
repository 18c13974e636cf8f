"""Choose settings of a recipe by cross-validation."""

from __future__ import annotations

from dataclasses import replace

from sklearn.base import clone

from tagkin.annotator.problem import Problem, sample_for_tuning
from tagkin.annotator.recipe import CHOOSING, Recipe
from tagkin.arrays.threads import blas_threads_for
from tagkin.model_selection import grid_search
from tagkin.progress import Progress, silent
from tagkin.transfer import KinReadout

__all__ = ["tune"]


def tune(problem: Problem, recipe: Recipe, step: Progress = silent) -> Recipe:
    """Choose κ and the settings of the method by cross-validation on MAP.

    The space of each fold has not seen the held-out images. If memory does not hold all scores,
    a sample of images and labels decides.
    """
    from sklearn.pipeline import make_pipeline  # here: importing it takes half a second

    problem = sample_for_tuning(problem)
    pipeline = make_pipeline(recipe.space, recipe.method)
    of_space, of_method = (name for name, _ in pipeline.steps)
    grid: dict[str, list[object]] = {f"{of_space}__regularization": list(CHOOSING.regularizations)}
    grid |= {f"{of_method}__{name}": values for name, values in recipe.method.tuned.items()}
    with blas_threads_for(problem.largest_product):
        search = grid_search(
            pipeline,
            problem.X,
            problem.Y,
            grid,
            cv=problem.split(3),
            groups=problem.groups,
            rejected=problem.rejected,
            random_state=problem.seed,
            progress=step,
        )
    best = clone(pipeline).set_params(**search.parameters)
    space, method = (step for _, step in best.steps)
    # learning chooses the votes for this κ
    values = (space.regularization,) if isinstance(method, KinReadout) else ()
    return replace(recipe, space=space, method=method, regularizations=values)
