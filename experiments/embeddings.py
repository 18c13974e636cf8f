"""Embeddings of images: their visual features, or a semantic space learned by some recipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.blends import choose_blend
from experiments.config import Config
from experiments.problem import Problem
from tagkin import SemanticSpace
from tagkin.paper import Chi2View, OntologyView, RidgeTransfer, TagDenoiser, WordVectorView

__all__ = ["RECIPES", "VISUAL", "Embeddings", "embed"]

VISUAL = "visual"

RECIPES = {
    "linear": "labels, or raw tags, unchanged",
    "ontology": "labels with WordNet's Lin similarity",
    "word vectors": "the mean of the labels' GloVe vectors",
    "raw": "raw tags, exp-χ² kernel: the paper without pre-propagation",
    "denoised": "propagated tags, exp-χ² kernel: the paper's own",
    "chosen": "the blend of TagDenoiser chosen on held-out tags",
}
"""How a space can be learned."""


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Embeddings of the known and the new images."""

    known: np.ndarray
    new: np.ndarray
    ridge: np.ndarray | None = None
    """Scores of the new images by the kernel ridge regression inside a linear space."""


def embed(
    problem: Problem,
    recipe: str,
    config: Config,
    *,
    regularization: float | None = None,
    n_landmarks: int | None = None,
    learn_from: int | None = None,
) -> Embeddings:
    """Learn a space from the known images, or from the first of them, and embed all images."""
    if recipe == VISUAL:
        return Embeddings(problem.known, problem.new)
    some = problem.part(np.arange(learn_from or len(problem.known)), np.arange(0))
    text, view = _text(some, recipe, config)
    space = SemanticSpace(
        regularization or config.regularization,
        text_view=view,
        n_landmarks=n_landmarks or config.n_landmarks,
        random_state=config.seed,
    ).fit(some.known, text)
    known, new = (
        np.asarray(space.transform(X), dtype=np.float32) for X in (problem.known, problem.new)
    )
    ridge = _ridge(space, problem, new) if recipe == "linear" else None
    return Embeddings(known, new, ridge)


def _text(problem: Problem, recipe: str, config: Config) -> tuple[Any, Any]:
    """The annotations to learn from, and their textual view."""
    if recipe == "linear":
        return problem.text, "indicator"
    if recipe == "ontology":
        return problem.text, OntologyView(list(problem.text_names))
    if recipe == "word vectors":
        return problem.text, WordVectorView(list(problem.text_names))
    chi2 = Chi2View(random_state=config.seed)
    if recipe == "raw":
        return problem.text, chi2
    if recipe == "denoised":
        denoiser = TagDenoiser(blend=1.0)
        return denoiser.fit_transform(problem.known, problem.text), chi2
    if recipe == "chosen":
        blend = choose_blend(problem.known, problem.text, config.seed)
        denoiser = TagDenoiser(blend=blend)
        tags = denoiser.fit_transform(problem.known, problem.text)
        print(f"Held-out tags chose a blend of {blend:g}.")
        return tags, "indicator"
    raise ValueError(f"unknown recipe {recipe!r}; known are {', '.join(RECIPES)}")


def _ridge(space: SemanticSpace, problem: Problem, new: np.ndarray) -> np.ndarray:
    """Scores of the evaluated labels, from the space's regression."""
    scores = np.asarray(RidgeTransfer.of_space(space).decision_function(new), dtype=np.float32)
    column = {name: i for i, name in enumerate(problem.text_names)}
    return scores[:, [column[name] for name in problem.names]]
