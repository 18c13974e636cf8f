"""Spaces for cross-validation, each of which leaves out one part of the images.

A space is solved from sums over images. So each part of the images is summed once, and the space
without a part is solved from the sums of the other parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.base import clone

from tagkin.arrays import (
    Array,
    as_block,
    check_features,
    check_label_matrix,
    namespace,
    row_blocks,
    to_numpy,
)
from tagkin.arrays.linalg import matmul
from tagkin.space.moments import Moments
from tagkin.space.semantic_space import (
    SemanticSpace,
    add_sums,
    fit_draft,
    start_from_landmarks,
    uses_landmarks,
)
from tagkin.space.views import IndicatorView

__all__ = ["LeaveOutSpaces"]

HELD_BYTES = 2**29  # of kernel columns that are kept: 65,536 images with 2,048 landmarks


class LeaveOutSpaces:
    """Spaces of all images except one part.

    The landmarks are chosen once, from the features of all images and without labels. If sums cost
    more than they save (no more images than landmarks), or if they cannot be used (a text view that
    learns from labels), each space is fitted separately.

    Parameters
    ----------
    space : SemanticSpace
        Parameters of the spaces; it stays unchanged.
    X : array of shape (N, d)
    y : array or sparse matrix of shape (N, D)
    parts : list of int arrays
        Every image is in one part.
    """

    def __init__(self, space: SemanticSpace, X: Array, y: Array, parts: Sequence[np.ndarray]):
        space.check_parameters()
        X = check_features(X, min_rows=2)
        y = check_label_matrix(y, X.shape[0])
        self._space, self._X, self._y, self._parts = clone(space), X, y, parts
        view = space.text_view
        plain = view == "indicator" if isinstance(view, str) else type(view) is IndicatorView
        self._base: SemanticSpace | None = None
        self._columns: np.ndarray | None = None
        self._sums: list[Moments] = []
        if plain and uses_landmarks(space, X.shape[0]):
            self._base = clone(space)
            self._gram = self._base.prepare_landmarks(X, y)
            self._columns = self._compute_columns(self._base)
            self._sums = [self._sums_of(part) for part in parts]

    def without(self, part: int, n_landmarks: int | None = None) -> SemanticSpace:
        """Return the space of all images except a part.

        With `n_landmarks`, use only the first landmarks, because the time grows with the cube of
        their number, and solve for a draft (see `SemanticSpace.solution`).
        """
        if self._base is not None:
            return self._solve_from(part, n_landmarks)
        known = np.concatenate([rows for i, rows in enumerate(self._parts) if i != part])
        known.sort()
        X, y, space = self._X[known], self._y[known], clone(self._space)
        return space.fit(X, y) if n_landmarks is None else fit_draft(space, X, y)

    def whole(self) -> SemanticSpace:
        """Return the space of all images, solved from the same sums."""
        if self._base is None:
            return clone(self._space).fit(self._X, self._y)
        return self._solve_from(None)

    def embeddings(self, space: SemanticSpace, wanted: Sequence[np.ndarray | slice]) -> list[Array]:
        """Return embeddings (n×m) of each wanted set of images, in one of these spaces.

        If memory allows, kernel columns are computed once for all spaces.
        """
        if self._columns is None:
            return [space.transform(self._X[rows]) for rows in wanted]
        solution = space.solution()
        coefficients = to_numpy(solution.coefficients)
        columns = self._columns[:, : len(coefficients)]
        psi = matmul(columns, coefficients.astype(columns.dtype))
        off = to_numpy(solution.kernel_mean) - to_numpy(space.moments_.shift)
        psi -= to_numpy(matmul(off, coefficients)).astype(columns.dtype)
        dtype = as_block(self._X[:1], finite=False).dtype  # of the features, as `transform` does
        return [namespace(psi).astype(psi[rows], dtype, copy=False) for rows in wanted]

    def _compute_columns(self, base: SemanticSpace) -> np.ndarray | None:
        """Return kernel columns of all images, minus the shift, or None if they are too many."""
        points, n = base.landmarks_.points, self._X.shape[0]
        if not isinstance(points, np.ndarray) or not isinstance(self._X, np.ndarray):
            return None
        if n * points.shape[0] * points.itemsize > HELD_BYTES:
            return None
        columns = np.empty((n, points.shape[0]), dtype=points.dtype)
        for rows in row_blocks(n, 8 * (points.shape[0] + points.shape[1])):
            numbers = range(rows.start, rows.stop)
            columns[rows] = base.landmarks_.columns(
                self._X[rows], rows=numbers, less=base.moments_.shift
            )
        return columns

    def _sums_of(self, part: np.ndarray) -> Moments:
        assert self._base is not None
        text, shift = self._base.text_view_.transform(self._y[part]), self._base.moments_.shift
        if self._columns is None:
            return Moments.of(self._X[part], text, self._base.landmarks_, shift)
        return Moments.of_columns(self._columns[part], text, shift)

    def _solve_from(self, left_out: int | None, n_landmarks: int | None = None) -> SemanticSpace:
        assert self._base is not None
        landmarks, gram = self._base.landmarks_.first(n_landmarks), self._gram
        r = landmarks.points.shape[0]
        space: SemanticSpace = clone(self._space)
        n_text = self._sums[0].text_sum.shape[0]
        shift = self._base.moments_.shift[:r]
        start_from_landmarks(space, landmarks, self._base.text_view_, shift, n_text)
        for i, sums in enumerate(self._sums):
            if i != left_out:
                add_sums(space, sums.of_first_landmarks(r))
        space.solution(gram[:r, :r], draft=n_landmarks is not None)
        return space
