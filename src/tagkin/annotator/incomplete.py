"""Learn from images that are not completely labelled.

A label is right for an image, wrong, or unknown. On a complete image, an absent label counts as
wrong (people forget some: see `LogisticReadout`). On an incomplete image, only labels that it has
and labels that a person rejected are known.

Spaces, settings, confidences and label errors are learned from complete images alone: a person
answers what the model asks, so answers are no random sample. The incomplete images then join as
neighbours and in the read-out, with unknown labels as the model expects them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

from tagkin.annotator.model import Model
from tagkin.annotator.problem import Problem, n_folds
from tagkin.arrays import row_blocks, to_numpy
from tagkin.arrays.records import Later
from tagkin.calibration import LabelCalibrator

__all__ = ["add_incomplete", "count_as_complete"]

_FEW = 50  # complete images with labels; with fewer, all images with labels count as complete
_LEAST = 0.003  # least expected probability of an unknown label that is used
_MOST_EXPECTED = 20  # unknown labels per image with an expectation


def count_as_complete(Y: scipy.sparse.csr_array, complete: np.ndarray) -> np.ndarray:
    """Return which images (N,) count as complete: with few complete images, all with labels."""
    has_labels = np.diff(Y.indptr) > 0
    if np.count_nonzero(complete & has_labels) >= _FEW:
        return complete
    return complete | has_labels


def add_incomplete(model: Model, problem: Problem) -> Model:
    """Return a model of all images, given that of the complete images of a problem.

    Its held-out scores, which confidences are learned from, are those of models that have not seen
    the image, complete or not.
    """
    complete, n = problem.complete, problem.Y.shape[0]
    assert complete is not None
    rows = np.flatnonzero(complete)
    targets = _Targets.of(model, problem)
    held_out, calibrator = model.held_out.get(), model.calibrator
    parts = _spread_rows(held_out, rows, n)
    if problem.Y.shape[1] == model.calibrator.n_labels_:
        scores = np.empty(problem.Y.shape, dtype=np.float32)
        for known, new in problem.split(n_folds(n)):
            own = known[complete[known]]
            base = _fit_like(model, problem, own)
            expected = _expect_labels(base, problem, known[~complete[known]])
            space, method = _Targets(model, problem, expected).fit(known)
            scores[new] = to_numpy(method.decision_function(space.transform(problem.X[new])))
        calibrator = LabelCalibrator().fit(scores[rows], problem.Y[rows])
        others = np.flatnonzero(~complete)
        P = to_numpy(calibrator.predict_proba(scores[others]))
        parts = parts + _spread_rows(_take_likely(P, problem, others), others, n)
    space, method = targets.fit(np.arange(n))
    labels = problem.labels
    return replace(
        model,
        space=space,
        method=method,
        calibrator=calibrator,
        held_out=Later.known(scipy.sparse.csr_array(parts)),
        rejected=problem.rejections,
        groups=np.arange(n) if problem.groups is None else problem.groups,
        tags=None if labels is None else labels.tags,
    )


def _fit_like(model: Model, problem: Problem, rows: np.ndarray) -> Model:
    """Fit space and method like the model's to some complete images (n,)."""
    X, Y = problem.X[rows], problem.Y[rows]
    space = clone(model.space).fit(X, Y)
    method = clone(model.method).fit(space.transform(X), Y, rejected=problem.rejections[rows])
    return replace(model, space=space, method=method.set_mixture(model.method.mixture))


@dataclass(frozen=True)
class _Targets:
    """What a space and a method are fitted to: labels, and expected labels of incomplete images."""

    model: Model
    problem: Problem
    expected: scipy.sparse.csr_array
    """Probabilities of unknown labels, shape (N, D)."""

    @classmethod
    def of(cls, model: Model, problem: Problem) -> _Targets:
        """Expect labels as a model of the complete images does."""
        assert problem.complete is not None
        return cls(
            model, problem, _expect_labels(model, problem, np.flatnonzero(~problem.complete))
        )

    def fit(self, rows: np.ndarray) -> tuple[Any, Any]:
        """Fit a space and a method like the model's to some images (n,)."""
        problem, complete = self.problem, self.problem.complete
        assert complete is not None
        X, Y, expected = problem.X[rows], problem.Y[rows], self.expected[rows]
        space = clone(self.model.space).fit(X, scipy.sparse.csr_array(Y + expected))
        method = clone(self.model.method).fit(
            space.transform(X),
            Y,
            rejected=problem.rejections[rows],
            complete=complete[rows],
            expected=expected,
        )
        return space, method.set_mixture(self.model.method.mixture)


def _expect_labels(model: Model, problem: Problem, rows: np.ndarray) -> scipy.sparse.csr_array:
    """Return the probabilities (N×D) of the likely unknown labels of some images."""
    prior = None if problem.naming is None else problem.naming.prior
    n, n_labels = problem.Y.shape
    parts: list[Any] = []
    for block in row_blocks(len(rows), 64 * n_labels):
        P = model.probabilities(model.score(problem.X[rows[block]], prior))
        parts.append(_take_likely(P, problem, rows[block]))
    return _spread_rows(scipy.sparse.vstack(parts, format="csr"), rows, n)


def _take_likely(P: np.ndarray, problem: Problem, rows: np.ndarray) -> scipy.sparse.csr_array:
    """Return the probabilities (n×D) of the likely unknown labels of images, given all (n×D)."""
    said = (problem.Y[rows] + problem.rejections[rows]).tocsr()
    P[said.nonzero()] = 0
    if P.shape[1] > _MOST_EXPECTED:
        least = -np.partition(-P, _MOST_EXPECTED - 1, axis=1)[:, _MOST_EXPECTED - 1]
        P[least[:, None] > P] = 0
    P[P < _LEAST] = 0
    return scipy.sparse.csr_array(P.astype(np.float32))


def _spread_rows(matrix: scipy.sparse.csr_array, rows: np.ndarray, n: int) -> Any:
    """Return a matrix (n×D) with these rows at the given places, and nothing elsewhere."""
    counts = np.zeros(n + 1, dtype=matrix.indptr.dtype)
    counts[rows + 1] = np.diff(matrix.indptr)
    shape = n, matrix.shape[1]
    return scipy.sparse.csr_array((matrix.data, matrix.indices, counts.cumsum()), shape=shape)
