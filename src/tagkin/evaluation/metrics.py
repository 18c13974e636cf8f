"""Average precision, and precision and recall at n labels.

Y (n×D) tells which image has which label: dense or sparse, with entries 0 and 1.
S (n×D) are scores, higher is better: NumPy or torch, of any real dtype. Infinite scores rank
like others (−∞ is "never"); NaN is rejected. S is read in blocks under the memory budget.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from tagkin.arrays import Array, check_integer, row_blocks
from tagkin.arrays.labels import check_pair, check_scores, read_scores
from tagkin.errors import InvalidInput
from tagkin.evaluation._ranking import best_in_rows, expected_precision

__all__ = [
    "average_precision",
    "evaluate",
    "mean_average_precision",
    "mean_image_average_precision",
    "top_labels",
]


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


def mean_image_average_precision(Y: Array, S: Array) -> float:
    """Return MiAP: the mean over images with labels of the average precision of ranked labels.

    Parameters
    ----------
    Y : array or sparse matrix of shape (N, D)
        Labels: 0 if absent.
    S : array of shape (N, D)
        Scores; higher is likelier.
    """
    return _mean(_image_precision(*check_pair(Y, S)))


def _label_precision(labels: csr_array, S: Array) -> np.ndarray:
    by_label = csr_array(labels.T)
    precision = np.empty(S.shape[1])
    for columns in row_blocks(S.shape[1], _ranking_bytes(by_label)):
        scores = np.ascontiguousarray(read_scores(S, slice(None), columns=columns).T)
        positives = by_label if len(scores) == len(precision) else by_label[columns]
        precision[columns] = expected_precision(scores, positives)
    return precision


def _image_precision(labels: csr_array, S: Array) -> np.ndarray:
    precision = np.empty(S.shape[0])
    for rows in row_blocks(S.shape[0], _ranking_bytes(labels)):
        precision[rows] = expected_precision(read_scores(S, rows), labels[rows])
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
        best[rows] = best_in_rows(read_scores(S, rows), n)
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
        Rec@n, "macro_precision" and "macro_recall". There a label that is never suggested, or is on
        no image, is 0, so they are far lower if most labels are rare. "n_plus" is N+, the
        number of labels with a recall above 0.

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
    return {
        "image_precision": _mean(image_precision),
        "image_recall": _mean(image_recall),
        "hit_rate": _mean(hit),
        "MiAP": _mean(_image_precision(labels, S)),
        "MAP": _mean(_label_precision(labels, S)),
        "macro_precision": float(precision.mean()),
        "macro_recall": float(recall.mean()),
        "n_plus": int(np.count_nonzero(recall)),
    }


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
