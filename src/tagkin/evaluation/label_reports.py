"""Reports per label: quality, missed images, and labels suggested instead."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from scipy.sparse import csr_array, vstack

from tagkin.arrays import Array, row_blocks, to_numpy
from tagkin.arrays.labels import check_pair, read_scores
from tagkin.errors import InvalidInput
from tagkin.evaluation.metrics import (
    assign_best,
    average_precision,
    label_counts,
    precision_recall,
)

__all__ = ["LabelReport", "label_report"]

_CONFUSED = 3  # labels that a label was taken for
_PRIOR_IMAGES = 10  # images of mean quality that are added to each label's own
_NUMBERS = (  # of the rows of a table
    *("support", "average_precision", "damped_precision"),
    *("n_assigned", "precision", "recall", "min_score"),
)


@dataclass(frozen=True, eq=False)
class LabelReport:
    """Metrics of each of D labels, computed by `label_report`.

    Attributes are in the order of the columns of Y. Tables have the rows in `order`.

    Attributes
    ----------
    names : str array of shape (D,)
    support : int array of shape (D,)
        Images that have the label.
    average_precision : float64 array of shape (D,)
        NaN if no image has the label.
    n_assigned : int array of shape (D,)
        Images that the label is assigned to.
    precision : float64 array of shape (D,)
        Share of assigned images that have the label; NaN without assigned images.
    recall : float64 array of shape (D,)
        Share of images with the label that it is assigned to; NaN without such images.
    min_score : float64 array of shape (D,)
        Least score at which the label is assigned; NaN if each image gets its n best labels.
    confused_with : int array of shape (D, 3)
        Labels wrongly assigned to images on which the label was missed, most frequent first, then
        by index; −1 if there are fewer.
    confused_count : int array of shape (D, 3)
        Number of these images.
    """

    names: np.ndarray
    support: np.ndarray
    average_precision: np.ndarray
    n_assigned: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    min_score: np.ndarray
    confused_with: np.ndarray
    confused_count: np.ndarray

    @property
    def damped_precision(self) -> np.ndarray:
        """Average precision with small counts damped, shape (D,); NaN if no image has the label.

        Shrunk towards the mean of all labels, as if each were on ten more images of mean quality:
        (n AP + 10 MAP) / (n + 10) for a label on n images. On two images an average precision of
        1 is mostly luck; on two hundred it is not.
        """
        known = self.average_precision[self.support > 0]
        if not len(known):
            return np.full(len(self.names), np.nan)
        total = self.support * self.average_precision + _PRIOR_IMAGES * known.mean()
        return total / (self.support + _PRIOR_IMAGES)

    @property
    def order(self) -> np.ndarray:
        """Label indices (D,) by descending `damped_precision`, labels on no image last.

        Ties go to the label on more images, then to the name.
        """
        damped = self.damped_precision

        def key(t: int) -> tuple[bool, float, int, str]:
            known = self.support[t] > 0
            return not known, -damped[t] if known else 0.0, -self.support[t], str(self.names[t])

        return np.array(sorted(range(len(self.names)), key=key), dtype=np.intp)

    def to_csv(self) -> str:
        """Return the text of a CSV file with a row for each label, in `order`; NaN is empty."""
        lines: list[str] = []
        writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator="\n")
        writer.writerow(["name", *_NUMBERS, "confused_with"])
        columns = [self.names, *(getattr(self, name) for name in _NUMBERS)]
        for t in self.order:
            pairs = zip(self.confused_with[t], self.confused_count[t], strict=True)
            confused = "; ".join(f"{self.names[other]} ({k})" for other, k in pairs if other >= 0)
            writer.writerow([*(_as_text(column[t]) for column in columns), confused])
        return "".join(lines)


def label_report(
    Y: Array,
    S: Array,
    *,
    names: Sequence[str] | None = None,
    n: int = 5,
    min_scores: Array | float | None = None,
) -> LabelReport:
    """Compute the metrics of each label.

    Parameters
    ----------
    Y : array or sparse matrix of shape (n_images, D)
        1 if the image has the label, else 0.
    S : array of shape (n_images, D)
        Scores, higher is better.
    names : sequence of D str, optional
        By default the label indices.
    n : int
        Each image is assigned its n best labels, unless there are `min_scores`.
    min_scores : float or array of shape (D,), optional
        Assign a label if its score is at least this, such as `LabelCalibrator.threshold` for
        probabilities; ∞ never assigns it.
    """
    labels, S = check_pair(Y, S)
    names_ = _check_names(names, S.shape[1])
    if min_scores is None:
        min_score = np.full(S.shape[1], np.nan)
        assigned = assign_best(S, n)
    else:
        min_score = _check_min_scores(min_scores, S.shape[1])
        assigned = _assign_from(S, min_score)
    precision, recall = precision_recall(labels, assigned)
    support, n_assigned = label_counts(labels), label_counts(assigned)
    confused_with, confused_count = _count_confusions(labels, assigned)
    return LabelReport(
        names=names_,
        support=support,
        average_precision=average_precision(labels, S),
        n_assigned=n_assigned,
        precision=np.where(n_assigned > 0, precision, np.nan),
        recall=np.where(support > 0, recall, np.nan),
        min_score=min_score,
        confused_with=confused_with,
        confused_count=confused_count,
    )


def _check_names(names: Sequence[str] | None, n_labels: int) -> np.ndarray:
    checked = np.array(range(n_labels) if names is None else list(names), dtype=str)
    if checked.shape != (n_labels,):
        raise InvalidInput(
            f"names must name each of the {n_labels} labels; found {len(checked)} names."
        )
    return checked


def _check_min_scores(min_scores: Array | float, n_labels: int) -> np.ndarray:
    checked = to_numpy(min_scores).astype(np.float64)
    if checked.shape not in {(), (n_labels,)} or np.isnan(checked).any():
        raise InvalidInput(
            f"min_scores must be a number, or a number for each of the {n_labels} labels, and not "
            f"NaN; found shape {checked.shape}{' with NaN' if np.isnan(checked).any() else ''}."
        )
    return np.array(np.broadcast_to(checked, (n_labels,)))


def _assign_from(S: Array, min_scores: np.ndarray) -> csr_array:
    """Assign labels whose score is high enough; return a boolean matrix (n_images, D)."""
    # ∞ ≥ ∞ is true, but a least score of ∞ never assigns
    possible = min_scores < np.inf
    blocks = [
        csr_array((read_scores(S, rows) >= min_scores) & possible)
        for rows in row_blocks(S.shape[0], 16 * S.shape[1])
    ]
    return csr_array(vstack(blocks, format="csr"))


def _count_confusions(labels: csr_array, assigned: csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Count, for every label, labels wrongly assigned to the images on which it is missed.

    The counts are Mᵀ W for missed labels M and wrongly assigned ones W, both (n_images, D) and
    sparse; the product is computed for blocks of labels.
    """
    present, suggested = labels.astype(np.int32), assigned.astype(np.int32)
    both = present.multiply(suggested)
    missed, wrong = csr_array((present - both).T), csr_array(suggested - both)
    missed.eliminate_zeros()
    wrong.eliminate_zeros()
    n_labels = labels.shape[1]
    confused_with = np.full((n_labels, _CONFUSED), -1)
    confused_count = np.zeros((n_labels, _CONFUSED), dtype=np.intp)
    for block in row_blocks(n_labels, 64 * n_labels):
        counts = csr_array(missed[block] @ wrong)
        row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        order = np.lexsort((counts.indices, -counts.data, row))
        rank = np.arange(counts.nnz) - counts.indptr[row]
        lead = rank < _CONFUSED
        entries = block.start + row[lead], rank[lead]
        confused_with[entries] = counts.indices[order][lead]
        confused_count[entries] = counts.data[order][lead]
    return confused_with, confused_count


def _as_text(value: object) -> str:
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else f"{value:.6g}"
    return str(value)
