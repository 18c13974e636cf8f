"""Average precision, and precision and recall at n labels.

Y (n×D) tells which image has which label: dense or sparse, with entries 0 and 1.
S (n×D) are scores, higher is better: NumPy or torch, of any real dtype. Infinite scores rank
like others (−∞ is "never"); NaN is rejected. S is read in blocks under the memory budget.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array
from scipy.special import digamma

from tagkin.arrays import Array, check_integer, row_blocks
from tagkin.arrays.labels import check_pair, check_scores, count_below, read_scores
from tagkin.errors import InvalidInput

__all__ = [
    "average_precision",
    "evaluate",
    "mean_average_precision",
    "scorer",
    "top_labels",
]


MEASURES = (
    *("image_precision", "image_recall", "hit_rate", "MiAP"),
    *("MAP", "macro_precision", "macro_recall", "n_plus"),
    *("present_precision", "present_recall"),
)
"""What `evaluate` measures."""


class ScoresLabels(Protocol):
    """A method, or a pipeline that ends in one."""

    def decision_function(self, X: Array) -> Array:
        """Return the score of every label for every image, shape (n, D)."""


# --- rankings ----------------------------------------------------------------------------


def average_precision(Y: Array, S: Array) -> np.ndarray:
    """Return the average precision of every label, with all images ranked by its score.

    AP(t) = 1/n₊ Σ_k (positives among the first k) / k, summed over the ranks k of the images with
    t; not interpolated. For images with equal scores it is the exact expectation over all their
    orders.

    Parameters
    ----------
    Y : array or sparse matrix of shape (n, D)
    S : array of shape (n, D)

    Returns
    -------
    precision : float64 array of shape (D,)
        NaN for labels that are on no image.

    Examples
    --------
    >>> from tagkin.evaluation import average_precision
    >>> average_precision([[1, 1], [0, 0], [0, 1]], [[3, 1], [2, 1], [1, 1]])
    array([1.        , 0.80555556])
    """
    return _label_precision(*check_pair(Y, S))


def mean_average_precision(Y: Array, S: Array) -> float:
    """Return MAP: the mean `average_precision` over labels that are on some image.

    Parameters
    ----------
    Y : array or sparse matrix of shape (N, D)
        Labels: 0 if absent.
    S : array of shape (N, D)
        Scores; higher is likelier.
    """
    return _mean(average_precision(Y, S))


def _label_precision(labels: csr_array, S: Array) -> np.ndarray:
    by_label = csr_array(labels.T)
    precision = np.empty(S.shape[1])
    for columns in row_blocks(S.shape[1], _ranking_bytes(by_label)):
        scores = np.ascontiguousarray(read_scores(S, slice(None), columns=columns).T)
        positives = by_label if len(scores) == len(precision) else by_label[columns]
        precision[columns] = _expected_precision(scores, positives)
    return precision


def _image_precision(labels: csr_array, S: Array) -> np.ndarray:
    precision = np.empty(S.shape[0])
    for rows in row_blocks(S.shape[0], _ranking_bytes(labels)):
        precision[rows] = _expected_precision(read_scores(S, rows), labels[rows])
    return precision


def _ranking_bytes(positives: csr_array) -> int:
    """Return bytes per row: four numbers per entry, and a dozen per positive."""
    n_rows, length = positives.shape
    return 32 * length + 96 * positives.nnz // n_rows


def _mean(precision: np.ndarray) -> float:
    if np.isnan(precision).all():
        raise InvalidInput(
            "No image has any label: Y is zero everywhere, so nothing can be measured. Check that "
            "Y and S belong to the same images."
        )
    return float(np.nanmean(precision))


# --- the n best labels -------------------------------------------------------------------


def top_labels(S: Array, n: int = 5) -> np.ndarray:
    """Return the n best labels of every image.

    Parameters
    ----------
    S : array of shape (n_images, D)
    n : int
        If it exceeds the number of labels, all labels.

    Returns
    -------
    labels : int array of shape (n_images, min(n, D))
        Best first, then by index.
    """
    S = check_scores(S)
    n = min(check_integer("n", n), S.shape[1])
    best = np.empty((S.shape[0], n), dtype=np.intp)
    for rows in row_blocks(S.shape[0], 16 * S.shape[1]):
        best[rows] = _best_in_rows(read_scores(S, rows), n)
    return best


def evaluate(Y: Array, S: Array, n: int = 5) -> dict[str, float]:
    """Compute all measures of suggestions: per image, and by the paper's protocol.

    Parameters
    ----------
    Y : array or sparse matrix of shape (n_images, D)
    S : array of shape (n_images, D)
    n : int
        Labels per image, for all measures but MiAP and MAP.

    Returns
    -------
    measures : dict
        Means over images with labels, which a person who reviews them sees: "image_precision" (at
        most 2/n for an image with two labels), "image_recall", "hit_rate" (the share of images with
        at least one label right) and "MiAP". Means over labels: "MAP", and the paper's Prec@n and
        Rec@n, "macro_precision" and "macro_recall". The paper's means are over all labels: one that
        is never suggested, or is on no image, counts as 0. "present_precision" and "present_recall"
        are the same over labels on some image, as MAP is; they differ only if some labels are on no
        image. "n_plus" is N+, the number of labels with a recall above 0.

    Examples
    --------
    >>> from tagkin.evaluation import evaluate
    >>> measures = evaluate([[1, 0, 0], [1, 1, 1]], [[3, 2, 1]] * 2, n=2)
    >>> measures["image_precision"], round(measures["image_recall"], 2), measures["n_plus"]
    (0.75, 0.83, 2)
    """
    labels, S = check_pair(Y, S)
    assigned = assign_best(S, n)
    precision, recall = precision_recall(labels, assigned)
    image_precision, image_recall = _image_precision_recall(labels, assigned)
    hit = np.where(np.isnan(image_precision), np.nan, image_precision > 0)
    is_present = label_counts(labels) > 0
    return {
        "image_precision": _mean(image_precision),
        "image_recall": _mean(image_recall),
        "hit_rate": _mean(hit),
        "MiAP": _mean(_image_precision(labels, S)),
        "MAP": _mean(_label_precision(labels, S)),
        "macro_precision": float(precision.mean()),
        "macro_recall": float(recall.mean()),
        "n_plus": int(np.count_nonzero(recall)),
        "present_precision": float(precision[is_present].mean()),
        "present_recall": float(recall[is_present].mean()),
    }


def scorer(measure: str = "MAP", n: int = 5) -> Callable[[ScoresLabels, Array, Array], float]:
    """Return a scorer for scikit-learn's `GridSearchCV`, `cross_validate` and `cross_val_score`.

    Parameters
    ----------
    measure : str, default "MAP"
        A key of the result of `evaluate`.
    n : int, default 5
        Labels per image, for all measures but MiAP and MAP.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from tagkin.evaluation import scorer
    >>> from tagkin.paper import NeighborVoting
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.random((300, 4)) < 0.3
    >>> Z = Y + rng.normal(size=(300, 4))
    >>> grid = {"n_neighbors": [1, 30]}
    >>> search = GridSearchCV(NeighborVoting(), grid, scoring=scorer("image_precision", n=1))
    >>> search.fit(Z, Y).best_params_
    {'n_neighbors': 30}
    """
    if measure not in MEASURES:
        raise InvalidInput(f"measure must be one of {', '.join(MEASURES)}; found {measure!r}.")
    return partial(_score, measure=measure, n=n)


def _score(estimator: ScoresLabels, X: Array, y: Array, *, measure: str, n: int) -> float:
    return evaluate(y, estimator.decision_function(X), n=n)[measure]


def assign_best(S: Array, n: int) -> csr_array:
    """Return the n best labels of every image as a boolean matrix (n_images, D)."""
    best = np.sort(top_labels(S, n), axis=1)
    n_images, n = best.shape
    starts = np.arange(0, n_images * n + 1, n)
    return csr_array((np.ones(best.size, dtype=bool), best.ravel(), starts), shape=tuple(S.shape))


def precision_recall(labels: csr_array, assigned: csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return per-label precision and recall (D,) of assigned labels; 0 if undefined."""
    hits = label_counts(labels.multiply(assigned))
    return (
        hits / np.maximum(label_counts(assigned), 1),
        hits / np.maximum(label_counts(labels), 1),
    )


def _image_precision_recall(
    labels: csr_array, assigned: csr_array
) -> tuple[np.ndarray, np.ndarray]:
    """Return per-image precision and recall (n_images,); NaN for images without labels."""
    n_labels = np.diff(labels.indptr)
    hits = np.where(n_labels > 0, np.diff(labels.multiply(assigned).tocsr().indptr), np.nan)
    return hits / np.diff(assigned.indptr), hits / np.maximum(n_labels, 1)


def label_counts(positions: csr_array) -> np.ndarray:
    """Count the images of each label (D,) in a boolean CSR matrix."""
    return np.bincount(positions.tocsr().indices, minlength=positions.shape[1])


# --- ranks within rows, exact under ties, without loops over rows ------------------------


def _expected_precision(scores: np.ndarray, positives: csr_array) -> np.ndarray:
    """Return each row's expected average precision over random orders of equal scores.

    Consider a group of m equal scores, p of them positive, below A entries with Q positives. It
    adds Σᵢ (p/m) (Q + 1 + (i−1) c) / (A+i) over its ranks i = 1…m, where c = (p−1)/(m−1). Rank i
    holds a positive with probability p/m, and then (i−1) c of the others are expected above it.
    With H = Σᵢ 1/(A+i) the sum is (p/m) (c m + (Q + 1 − c (A+1)) H).

    Parameters
    ----------
    scores : array of shape (r, m)
    positives : bool csr_array of shape (r, m)

    Returns
    -------
    precision : float64 array of shape (r,), NaN for rows without a positive
    """
    ascending = np.sort(scores, axis=1)
    n_positives = np.diff(positives.indptr)
    row = np.repeat(np.arange(len(scores)), n_positives)
    value = scores[row, positives.indices]
    order = np.lexsort((value, row))[::-1]  # rows from the last, scores from the highest
    row, value = row[order], value[order]
    new_group = np.r_[True, (row[1:] != row[:-1]) | (value[1:] != value[:-1])][: len(row)]
    first = np.flatnonzero(new_group)
    group_row, group_value = row[first], value[first]

    up_to = count_below(ascending, group_row, group_value, or_equal=True)
    m = up_to - count_below(ascending, group_row, group_value)
    above = scores.shape[1] - up_to
    p = np.diff(np.r_[first, len(row)])
    row_start = np.r_[0, np.cumsum(n_positives[::-1])[:-1]][::-1]
    positives_above = first - row_start[group_row]

    # the difference errs by 1e-15 or so, and c (A+1) times that: 1e-9 for 10⁶ images
    harmonic = np.where(m == 1, 1 / (above + 1), digamma(above + m + 1) - digamma(above + 1))
    c = (p - 1) / np.maximum(m - 1, 1)
    gain = p / m * (c * m + (positives_above + 1 - c * (above + 1)) * harmonic)
    total = np.bincount(group_row, gain, len(scores))
    return np.where(n_positives > 0, total / np.maximum(n_positives, 1), np.nan)


def _best_in_rows(scores: np.ndarray, n: int) -> np.ndarray:
    """Return the columns of the n ≤ m highest scores of each row, best first, then by column.

    A partition only finds the n-th highest score. Which of several equal scores it puts first is
    undefined, so they are counted from the left.
    """
    m = scores.shape[1]
    cut = np.partition(scores, m - n, axis=1)[:, m - n, None]
    chosen = scores > cut
    level = scores == cut
    missing = n - np.count_nonzero(chosen, axis=1)
    # most rows need no counting: the scores at the cut are as many as are missing
    tied = np.flatnonzero(np.count_nonzero(level, axis=1) > missing)
    level[tied] &= np.cumsum(level[tied], axis=1, dtype=np.int32) <= missing[tied, None]
    columns = np.nonzero(chosen | level)[1].reshape(len(scores), n)
    best = np.take_along_axis(scores, columns, axis=1)
    # sorted backwards and turned round, because unsigned integers cannot be negated
    order = n - 1 - np.argsort(best[:, ::-1], axis=1, kind="stable")[:, ::-1]
    return np.take_along_axis(columns, order, axis=1)
