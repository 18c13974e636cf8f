"""How good are scores? Average precision, and precision and recall at n labels.

Y (n×D) says which image carries which label: dense or sparse, of 0 and 1.
S (n×D) holds scores, higher is better: NumPy or torch, of any real dtype. Infinite scores
rank like others (−∞ is "never"); NaN is refused. S is read in blocks under the memory budget.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from tagkin.arrays import Array, check_integer, row_blocks
from tagkin.arrays.scores import check_pair, check_scores, read_scores
from tagkin.errors import InvalidInput
from tagkin.evaluation._ranking import best_in_rows, expected_precision, stable_precision

__all__ = [
    "average_precision",
    "evaluate",
    "image_precision_recall_at",
    "label_precision_recall_at",
    "mean_average_precision",
    "mean_image_average_precision",
    "n_plus",
    "precision_recall_at",
    "top_labels",
]

_TIES = {"expected": expected_precision, "stable": stable_precision}


# --- rankings ----------------------------------------------------------------------------


def average_precision(Y: Array, S: Array, *, ties: str = "expected") -> np.ndarray:
    """Average precision of every label: all images ranked by its score.

    AP(t) = 1/n₊ Σ_k (positives among the first k) / k, summed over the ranks k of the images that
    carry t; not interpolated.

    Parameters
    ----------
    Y : array or sparse matrix of shape (n, D)
    S : array of shape (n, D)
    ties : "expected" or "stable"
        Images with equal scores: the exact expectation over all their orders, or the image
        with the lower index first.

    Returns
    -------
    precision : float64 array of shape (D,)
        NaN for labels that no image carries.

    Examples
    --------
    >>> from tagkin.evaluation import average_precision
    >>> average_precision([[1, 1], [0, 0], [0, 1]], [[3, 1], [2, 1], [1, 1]])
    array([1.        , 0.80555556])
    """
    labels, S = check_pair(Y, S)
    return _label_precision(labels, S, ties)


def mean_average_precision(Y: Array, S: Array, *, ties: str = "expected") -> float:
    """MAP: `average_precision`, mean over the labels that some image carries."""
    labels, S = check_pair(Y, S)
    return _mean(_label_precision(labels, S, ties))


def mean_image_average_precision(Y: Array, S: Array, *, ties: str = "expected") -> float:
    """MiAP: average precision of every image, its labels ranked; mean over images with a label.

    Parameters are those of `average_precision`; with ``ties="stable"`` the label with the lower
    index comes first.
    """
    labels, S = check_pair(Y, S)
    return _mean(_image_precision(labels, S, ties))


def _label_precision(labels: csr_array, S: Array, ties: str) -> np.ndarray:
    by_label = csr_array(labels.T)
    precision = np.empty(S.shape[1])
    for columns in row_blocks(S.shape[1], _ranking_bytes(by_label)):
        scores = np.ascontiguousarray(read_scores(S, slice(None), columns=columns).T)
        carried = by_label if len(scores) == len(precision) else by_label[columns]
        precision[columns] = _rule(ties)(scores, carried)
    return precision


def _image_precision(labels: csr_array, S: Array, ties: str) -> np.ndarray:
    precision = np.empty(S.shape[0])
    for rows in row_blocks(S.shape[0], _ranking_bytes(labels)):
        precision[rows] = _rule(ties)(read_scores(S, rows), labels[rows])
    return precision


def _ranking_bytes(positives: csr_array) -> int:
    """Bytes per row: four numbers per entry, and a dozen per positive."""
    n_rows, length = positives.shape
    return 32 * length + 96 * positives.nnz // n_rows


def _rule(ties: str) -> Callable[[np.ndarray, csr_array], np.ndarray]:
    if ties not in _TIES:
        raise InvalidInput(f"ties must be one of {', '.join(_TIES)}; found {ties!r}.")
    return _TIES[ties]


def _mean(precision: np.ndarray) -> float:
    if np.isnan(precision).all():
        raise InvalidInput(
            "No image carries any label: Y is zero everywhere, so that nothing can be measured. "
            "Check that Y and S are of the same images."
        )
    return float(np.nanmean(precision))


# --- the n best labels -------------------------------------------------------------------


def top_labels(S: Array, n: int = 5) -> np.ndarray:
    """The n best labels of every image.

    Parameters
    ----------
    S : array of shape (n_images, D)
    n : int
        More than there are labels means all of them.

    Returns
    -------
    labels : int array of shape (n_images, min(n, D))
        Best first; of equal scores, the label with the lower index.
    """
    S = check_scores(S)
    n = min(check_integer("n", n), S.shape[1])
    best = np.empty((S.shape[0], n), dtype=np.intp)
    for rows in row_blocks(S.shape[0], 16 * S.shape[1]):
        best[rows] = best_in_rows(read_scores(S, rows), n)
    return best


def label_precision_recall_at(Y: Array, S: Array, n: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Precision and recall of every label when each image is given its n best labels.

    Parameters
    ----------
    Y : array or sparse matrix of shape (n_images, D)
    S : array of shape (n_images, D)
    n : int
        Labels given to every image, see `top_labels`.

    Returns
    -------
    precision : float64 array of shape (D,)
        Of the images given the label, the share that carries it; 0 if none is given it.
    recall : float64 array of shape (D,)
        Of the images that carry the label, the share that is given it; 0 if none carries it.
    """
    labels, S = check_pair(Y, S)
    return precision_recall(labels, assign_best(S, n))


def precision_recall_at(Y: Array, S: Array, n: int = 5) -> tuple[float, float]:
    """The paper's Prec@n and Rec@n: `label_precision_recall_at`, mean over all labels.

    These are macro figures: every label counts alike, and one that is never given, or that no
    image carries, counts as 0. Where most labels are rare, they are far below the figures per
    image (`image_precision_recall_at`).
    """
    precision, recall = label_precision_recall_at(Y, S, n)
    return float(precision.mean()), float(recall.mean())


def image_precision_recall_at(Y: Array, S: Array, n: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Precision and recall of every image when it is given its n best labels.

    What a person sees who goes through the images. The precision of an image with two labels is at
    most 2/n.

    Parameters
    ----------
    Y : array or sparse matrix of shape (n_images, D)
    S : array of shape (n_images, D)
    n : int
        Labels given to every image, see `top_labels`.

    Returns
    -------
    precision : float64 array of shape (n_images,)
        Of the labels that the image is given, the share that it carries.
    recall : float64 array of shape (n_images,)
        Of the labels that the image carries, the share that it is given. Both are NaN for images
        that carry none.

    Examples
    --------
    >>> from tagkin.evaluation import image_precision_recall_at
    >>> precision, recall = image_precision_recall_at([[1, 0, 0], [1, 1, 1]], [[3, 2, 1]] * 2, 2)
    >>> precision, recall.round(2)
    (array([0.5, 1. ]), array([1.  , 0.67]))
    """
    labels, S = check_pair(Y, S)
    return _image_precision_recall(labels, assign_best(S, n))


def n_plus(Y: Array, S: Array, n: int = 5) -> int:
    """N+: how many labels have a recall above 0 when each image is given its n best labels."""
    return int(np.count_nonzero(label_precision_recall_at(Y, S, n)[1]))


def evaluate(Y: Array, S: Array, n: int = 5) -> dict[str, float]:
    """All measures of suggestions: per image, and by the paper's protocol.

    Parameters
    ----------
    Y : array or sparse matrix of shape (n_images, D)
    S : array of shape (n_images, D)
    n : int
        Labels given to every image, for all measures but MiAP and MAP.

    Returns
    -------
    measures : dict
        Mean over the images that carry a label: "image_precision" and "image_recall"
        (`image_precision_recall_at`), "hit_rate" (the share of images with at least one label
        right) and "MiAP". Mean over labels: "MAP", and "macro_precision" and "macro_recall", the
        paper's Prec@n and Rec@n (`precision_recall_at`). "n_plus" is N+. Ties are resolved by
        expectation.
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
        "MiAP": _mean(_image_precision(labels, S, "expected")),
        "MAP": _mean(_label_precision(labels, S, "expected")),
        "macro_precision": float(precision.mean()),
        "macro_recall": float(recall.mean()),
        "n_plus": int(np.count_nonzero(recall)),
    }


def assign_best(S: Array, n: int) -> csr_array:
    """The n best labels of every image as a boolean matrix (n_images, D)."""
    best = np.sort(top_labels(S, n), axis=1)
    n_images, n = best.shape
    starts = np.arange(0, n_images * n + 1, n)
    return csr_array((np.ones(best.size, dtype=bool), best.ravel(), starts), shape=tuple(S.shape))


def precision_recall(labels: csr_array, assigned: csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Per-label precision and recall (D,) of assigned labels; 0 where undefined."""
    hits = label_counts(labels.multiply(assigned))
    return (
        hits / np.maximum(label_counts(assigned), 1),
        hits / np.maximum(label_counts(labels), 1),
    )


def _image_precision_recall(
    labels: csr_array, assigned: csr_array
) -> tuple[np.ndarray, np.ndarray]:
    """Per-image precision and recall (n_images,); NaN for images without labels."""
    carried = np.diff(labels.indptr)
    hits = np.where(carried > 0, np.diff(labels.multiply(assigned).tocsr().indptr), np.nan)
    return hits / np.diff(assigned.indptr), hits / np.maximum(carried, 1)


def label_counts(positions: csr_array) -> np.ndarray:
    """Images of each label (D,), from a boolean CSR matrix."""
    return np.bincount(positions.tocsr().indices, minlength=positions.shape[1])
