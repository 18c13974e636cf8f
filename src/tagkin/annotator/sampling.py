"""Very many images with very many labels, in memory that does not hold a score for every pair.

Scores of held-out images are what weights and confidences are learned from. A score for every
image and every label, of several kinds, takes 64 GB for 100,000 images with 20,000 labels. Where
there is not so much memory

- one part of the images is held out, once, by a model that learned from all others;
- scores are held for the labels on most images: weights and confidences of rarer labels are what
  is usual among those;
- the space is learned from the labels on most images, and nothing is denoised;
- what `audit` finds is about those images and labels.

Of very many labels most are on hardly any image, and what is learned of each alone is next to
nothing. Whatever the memory, scores are therefore held for so many labels and no more; where there
is room for those of all images, each of them is held out in turn.

Neighbours and their labels are all images and all labels, which are sparse: nothing is left out of
what can be suggested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

from tagkin.annotator.blending import blended
from tagkin.annotator.deciding import Decisions
from tagkin.annotator.learning import (
    Learned,
    Recipe,
    judged,
    largest_product,
    n_folds,
    resolved_with,
    scores_of_fold,
)
from tagkin.annotator.naming import Naming
from tagkin.arrays import blas_threads_for
from tagkin.calibration import LabelCalibrator
from tagkin.errors import InvalidInput, Parameter
from tagkin.machine import memory_at_hand
from tagkin.model_selection.folds import Fold, make_folds
from tagkin.progress import Counted, Progress
from tagkin.space import IndicatorView
from tagkin.transfer import KinReadout

__all__ = ["Part", "check_memory", "learn_by_part", "part_of"]

_PER_SCORE = 32  # bytes for each pair of an image and a label: held-out scores of several kinds
_PART = 4  # of the memory, that held-out scores may take where not all of them fit
_MOST_IMAGES, _MOST_LABELS = 16_384, 4096  # with scores, then: more teach little
_MOST_OWN = 16_384  # labels that have weights and confidences of their own, whatever the memory
_FEWEST_LABELS = 64
_FEWEST_IMAGES = 6
_PER_DIMENSION = 60  # bytes for an image and a dimension of its embedding: several, in a fifth


@dataclass(frozen=True)
class Part:
    """Images and labels whose held-out scores fit into memory."""

    n_images: int
    """How many of the images are held out."""
    columns: np.ndarray
    """Columns (C,) of the labels with scores, ascending: those on most images."""
    n_dimensions: int
    """Labels that a space may be learned from, at most: its embeddings have so many dimensions."""

    def folds(self, Y: Any, groups: np.ndarray | None, random_state: int | None) -> list[Fold]:
        """Images that are held out, and all others; none of a group is on both sides.

        All images in turn, or so many of them once.
        """
        n = Y.shape[0]
        if self.n_images >= n:
            return make_folds(n, Y, n_folds(n), groups, random_state)
        fold = make_folds(n, Y, max(3, round(n / self.n_images)), groups, random_state)[0]
        n_held_out = min(len(fold.held_out), self.n_images)
        some = np.arange(n_held_out) * len(fold.held_out) // n_held_out  # at equal steps
        return [Fold(fold.known, fold.held_out[some])]

    def taken_of(
        self, X: Any, Y: Any, groups: np.ndarray | None, rejected: Any
    ) -> tuple[Any, Any, np.ndarray | None, Any]:
        """Of these images and labels: features, labels, groups and rejections."""
        rows = np.random.default_rng(0).permutation(Y.shape[0])[: self.n_images]
        rows.sort()
        return (
            X[rows],
            Y[rows][:, self.columns],
            None if groups is None else np.unique(groups[rows], return_inverse=True)[1],
            None if rejected is None else rejected[rows][:, self.columns],
        )


def part_of(Y: scipy.sparse.csr_array, memory: int | None = None) -> Part | None:
    """The part of labels Y (N×D) to hold scores of, or None where all scores fit.

    `memory` are bytes; without it, those that this process may have.
    """
    n, n_labels = Y.shape
    memory = memory_at_hand() if memory is None else memory
    n_images, kept, dimensions = n, min(n_labels, _MOST_OWN), _MOST_LABELS
    if memory is not None and _PER_SCORE * n * kept > memory:
        n_scores = memory // (_PER_SCORE * _PART)
        n_images = max(_FEWEST_IMAGES, min(n // 3, _MOST_IMAGES, n_scores // _FEWEST_LABELS))
        kept = max(1, min(n_labels, _MOST_LABELS, n_scores // n_images))
        dimensions = max(_FEWEST_LABELS, min(_MOST_LABELS, memory // (_PER_DIMENSION * n)))
    if (n_images, kept) == (n, n_labels):
        return None
    order = np.argsort(-_n_carriers(Y), kind="stable")
    return Part(n_images, np.sort(order[:kept]), dimensions)


def check_memory(Y: scipy.sparse.csr_array, memory: int | None = None) -> None:
    """Refuse, before the work, labels (N×D) whose held-out scores memory would not hold.

    For what needs a score of every image for every label. `memory` as in `part_of`.
    """
    memory = memory_at_hand() if memory is None else memory
    n, n_labels = Y.shape
    needed = _PER_SCORE * n * n_labels
    if memory is None or needed <= memory:
        return
    counts = np.sort(_n_carriers(Y))[::-1]
    fits = max(1, min(n_labels - 1, memory // (2 * _PER_SCORE * n)))
    least = int(counts[fits]) + 1
    kept = np.count_nonzero(counts >= least)
    raise InvalidInput(
        f"Scores of {n:,} images for {n_labels:,} labels take about {needed / 2**30:,.0f} GiB of "
        f"memory, and there are {memory / 2**30:,.0f}. Leave out labels that are on fewer than "
        f"{least:,} images (",
        Parameter("min_count", least),
        f"): {kept:,} remain.",
    )


def _n_carriers(Y: scipy.sparse.csr_array) -> np.ndarray:
    return np.bincount(Y.tocsr().indices, minlength=Y.shape[1])


def learn_by_part(
    X: np.ndarray,
    Y: scipy.sparse.csr_array,
    recipe: Recipe,
    random_state: int | None,
    step: Progress,
    groups: np.ndarray | None,
    rejected: scipy.sparse.csr_array | None,
    naming: Naming | None,
    decisions: Decisions | None,
    part: Part,
) -> Learned:
    """As `learning.learn`, with the held-out scores of one part of images and labels."""
    n, n_labels = Y.shape
    columns, folds = part.columns, part.folds(Y, groups, random_state)
    rows = np.sort(np.concatenate([fold.held_out for fold in folds]))
    few = Y[:, columns]
    no = None if rejected is None else rejected[:, columns]
    done, names, unsaid = Counted(step, "Learning", len(folds) + 1), None, None
    with blas_threads_for(largest_product(X, Y)):
        best, scores = _held_out(X, Y, few, _lighter(recipe, part), folds, no, done)
        if naming is not None:
            names, scores = naming.weighed_by_some(X, Y, scores, rows, columns)
        calibrator = LabelCalibrator().fit(scores, few[rows])
        together = None if groups is None else np.unique(groups[rows], return_inverse=True)[1]
        named = names is not None
        errors, noted = judged(best, scores, named, lambda: calibrator, few[rows], together)
        if best.mixture is not None:
            mixture = best.mixture.spread(columns, n_labels)
            best = replace(best, mixture=mixture, even_logits=None)
        space, method = best.fit(X, Y, rejected, groups)
        if decisions is not None:
            some = decisions.taken(rows, columns)
            unsaid = some.unsaid(calibrator, scores, space, method, naming, names)
        done()
    return Learned(
        space,
        method,
        calibrator.spread(columns, n_labels),
        0.0,
        errors.spread(columns, n_labels),
        _placed(noted, rows, columns, (n, n_labels)),
        names,
        None if unsaid is None else unsaid.spread(columns, n_labels),
    )


def _lighter(recipe: Recipe, part: Part) -> Recipe:
    """A recipe that denoises nothing, with a space of no more dimensions than fit."""
    space: Any = recipe.space
    if space is not None:
        view = IndicatorView() if space.text_view == "indicator" else space.text_view
        if isinstance(view, IndicatorView):
            view = IndicatorView(min(view.max_labels, part.n_dimensions))
            space = clone(space).set_params(text_view=view)
    return replace(recipe, space=space, denoiser=None)


def _held_out(
    X: np.ndarray,
    Y: scipy.sparse.csr_array,
    few: Any,
    recipe: Recipe,
    folds: list[Fold],
    rejected: Any,
    done: Callable[[], None],
) -> tuple[Recipe, np.ndarray]:
    """The recipe that held-out images resolve, and their scores (n×C) for a few labels (N×C)."""
    if isinstance(recipe.method, KinReadout):
        found = blended(X, few, recipe, folds, done, rejected, space_labels=Y)
        return resolved_with(recipe, found), found.scores
    scores = []
    for fold in folds:
        scores.append(scores_of_fold(X, few, recipe, fold, rejected))
        done()
    order = np.argsort(np.concatenate([fold.held_out for fold in folds]))
    return recipe, np.concatenate(scores)[order]


def _placed(
    found: scipy.sparse.csr_array, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]
) -> scipy.sparse.csr_array:
    """A matrix (n×C) at these rows and columns, ascending, of a larger one that is empty else."""
    n_found = np.zeros(shape[0], dtype=found.indptr.dtype)
    n_found[rows] = np.diff(found.indptr)
    ends = np.append(0, np.cumsum(n_found))
    return scipy.sparse.csr_array((found.data, columns[found.indices], ends), shape=shape)
