"""Spaces that each leave out one part, from a single pass.

For cross-validation: the sums that a space is solved from are sums over images. So each part of
the images is summed up once, and the space without a part is solved from the sums of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

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
from tagkin.space.semantic_space import SemanticSpace
from tagkin.space.views import IndicatorView

__all__ = ["LeaveOutSpaces"]

HELD_BYTES = 2**29  # bytes of kernel columns that are kept


class LeaveOutSpaces:
    """Spaces of all images but those of one part.

    The landmarks are chosen once, among the features of all images; no label has a say in that.
    Where summing up would cost more than it saves (no more images than landmarks) or where it is
    not possible (a textual view that learns from labels), the space is fitted anew.

    Parameters
    ----------
    space : SemanticSpace
        What the spaces are like; it stays as it is.
    X : array of shape (N, d)
    y : array or sparse matrix of shape (N, D)
    parts : list of int arrays
        Every image is in one of them.
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
        if plain and space.landmarks_pay(X.shape[0]):
            self._base = clone(space)
            self._gram = self._base.prepared(X, y)  # once for all parts and all κ
            self._columns = self._kept_columns(self._base)

    def compute_sums(self) -> Self:
        """Sum up each part now: most of the work, which otherwise waits for the first space."""
        if self._base is not None and not self._sums:
            self._sums = [self._sums_of(part) for part in self._parts]
        return self

    def without(self, part: int, n_landmarks: int | None = None, **solving: Any) -> SemanticSpace:
        """The space of all images but those of a part, with other values for `SOLVING`.

        With `n_landmarks`, by no more than so many of the landmarks, the first ones: a space to
        try things in. To solve for it takes the cube of their number. It is a draft, see
        `SemanticSpace.solve`.
        """
        if self._base is None:
            known = np.concatenate([rows for i, rows in enumerate(self._parts) if i != part])
            known.sort()
            space: SemanticSpace = clone(self._space).set_params(**solving)
            return space.fit(self._X[known], self._y[known])
        return self._solved_from(part, solving, n_landmarks)

    def whole(self, **solving: Any) -> SemanticSpace | None:
        """The space of all images, from the same sums; None where there are none."""
        return None if self._base is None else self._solved_from(None, solving)

    def embeddings(self, space: SemanticSpace, wanted: Sequence[np.ndarray | slice]) -> list[Array]:
        """Embeddings (n×m) of some of the images, and of others, in one of these spaces.

        Where memory allows, kernel columns are made once for all spaces.
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

    def _kept_columns(self, base: SemanticSpace) -> np.ndarray | None:
        """Kernel columns of all images, less the shift of the sums; None where they are many."""
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
        if self._columns is None:
            return self._base.sums_of(self._X[part], self._y[part])
        text = self._base.text_view_.transform(self._y[part])
        return Moments.of_columns(self._columns[part], text, self._base.moments_.shift)

    def _solved_from(
        self, left_out: int | None, solving: dict[str, Any], n_landmarks: int | None = None
    ) -> SemanticSpace:
        assert self._base is not None
        self.compute_sums()
        landmarks, gram = self._base.landmarks_.first(n_landmarks), self._gram
        r = landmarks.points.shape[0]
        space: SemanticSpace = clone(self._space).set_params(**solving)
        n_text = self._sums[0].text_sum.shape[0]
        shift = self._base.moments_.shift[:r]
        space.begin(landmarks, self._base.text_view_, shift, n_text)
        for i, sums in enumerate(self._sums):
            if i != left_out:
                space.add_moments(sums.some(slice(0, r)))
        return space.solve(gram[:r, :r], draft=n_landmarks is not None)
