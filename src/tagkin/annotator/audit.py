"""Labels that seem wrong on the images learned from, and labels that seem to be missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse

from tagkin.annotator.model import Model
from tagkin.annotator.suggesting import top_support
from tagkin.annotator.suggestions import LabelFinding, Support
from tagkin.arrays import Array, check_groups, check_integer, row_blocks, to_numpy
from tagkin.arrays.labels import check_pair, label_names, read_scores
from tagkin.calibration import LabelErrors, probability_missing, probability_wrong
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors
from tagkin.transfer.votes import NeighborVotes

__all__ = ["audit_labels", "error_probabilities", "find_errors"]

# Probabilities of float32 cannot be nearer to 1.
_LEAST = float(np.finfo(np.float32).eps)


def error_probabilities(
    belonging: scipy.sparse.csr_array, Y: scipy.sparse.csr_array, errors: LabelErrors
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the probability that each present label is wrong, and each absent label missing.

    Parameters
    ----------
    belonging : CSR array of shape (N, D)
        Probability q that a label belongs, by models that had not seen the image; 0 if unknown.
    Y : CSR array of shape (N, D)
        Present labels.
    errors : LabelErrors
        The rates a of wrong and e of missing labels.

    Returns
    -------
    rows, columns : int arrays of shape (m,)
        Image and label of every entry of `belonging`.
    probability : float64 array of shape (m,)
        (1−q)a / ((1−q)a + q(1−e)) for a present label, qe / (qe + (1−q)(1−a)) for an absent one.
    """
    entries = belonging.tocoo()
    present = _is_present(Y, entries.row, entries.col)
    q = np.clip(entries.data.astype(np.float64), 1e-30, 1 - 1e-9)
    rates = errors.wrong_rates[entries.col], errors.missing_rates[entries.col]
    p = np.where(present, probability_wrong(q, *rates), probability_missing(q, *rates))
    return entries.row, entries.col, p


def _is_present(
    matrix: scipy.sparse.csr_array, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Return which entries (m,) of a matrix (N×D) are above 0; m may be 0."""
    return np.asarray(matrix[rows, columns]).ravel() > 0 if len(rows) else np.zeros(0, bool)


def find_errors(model: Model, n: int | None, kind: str | None, n_kin: int) -> list[LabelFinding]:
    """Find labels that seem wrong or missing, most confident first.

    At most n, or all with a confidence of .5 and more. Rejected labels are not missing.
    """
    _check_request(n, kind)
    check_integer("n_kin", n_kin, 0)
    doubts = _Doubts.of(model.belonging, model.method.labels, model.errors)
    rejected = _is_present(model.rejected, doubts.images, doubts.labels)
    doubts = doubts.take(doubts.present | ~rejected).most_likely(n, kind)
    missing = np.where(doubts.present, -1, doubts.labels)
    support = _find_support(model.method, doubts.images.astype(np.int64), missing, n_kin)
    return doubts.list_findings(model.labels.classes(), support)


def audit_labels(
    Y: Array,
    P: Array,
    *,
    groups: Array | None = None,
    n: int | None = None,
    kind: str | None = None,
) -> list[LabelFinding]:
    """Find labels that seem wrong or missing, given probabilities of any model.

    The rates of wrong and of missing labels are learned from the probabilities, which need not be
    calibrated; see `tagkin.calibration.estimate_label_errors`. `FeatureAnnotator.audit` does the
    same with its own held-out probabilities.

    Parameters
    ----------
    Y : labels of shape (N, D), dense, sparse or a DataFrame
        1 if an image has a label, else 0.
    P : array of shape (N, D)
        Probabilities of the labels by models that have not seen the image, as from
        ``cross_val_predict``. With probabilities of training images, nothing seems wrong.
        Probabilities of many images should differ: scores that are rounded or cut off at 0 and 1
        hide errors.
    groups : array of shape (N,), optional
        Images of one group, such as a burst, do not judge each other. Default: all are separate.
    n : int, optional
        Most findings, most confident first. Default: all with a confidence of .5 and more.
    kind : "wrong" or "missing", optional
        Default: both. Per image, only the 10 most likely absent labels can be missing.

    Returns
    -------
    findings : list of LabelFinding
        Without supporting images, because a matrix of probabilities has none.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin import audit_labels
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(-2, 4, (2000, 5))
    >>> P = 1 / (1 + np.exp(-logits))
    >>> Y = rng.random(P.shape) < P
    >>> sure = np.argwhere(Y & (P > 0.999))[:40]
    >>> Y[tuple(sure.T)] = False  # forget 40 labels
    >>> findings = audit_labels(Y, P, n=10, kind="missing")
    >>> forgotten = {tuple(pair) for pair in sure.tolist()}
    >>> sum((finding.image, finding.label) in forgotten for finding in findings)
    10
    """
    from tagkin.annotator.learning import judge_labels

    _check_request(n, kind)
    labels, probabilities = check_pair(Y, P, ("Y", "P"))
    logits = np.empty(labels.shape, np.float32)
    for rows in row_blocks(len(logits), 16 * labels.shape[1]):
        p = read_scores(probabilities, rows, finite=True, name="P").astype(np.float64)
        if p.min() < 0 or p.max() > 1:
            raise InvalidInput("P must hold probabilities from 0 to 1. Pass predict_proba(X).")
        p = np.clip(p, _LEAST, 1 - _LEAST)
        logits[rows] = np.log(p) - np.log1p(-p)
    codes = None if groups is None else check_groups(groups, len(logits))
    errors, belonging = judge_labels(logits, labels.astype(np.float64), codes)
    doubts = _Doubts.of(belonging, labels, errors).most_likely(n, kind)
    names = label_names(Y)
    classes = np.arange(labels.shape[1]) if names is None else names
    return doubts.list_findings(classes, [()] * len(doubts.images))


def _check_request(n: int | None, kind: str | None) -> None:
    if kind not in (None, "wrong", "missing"):
        raise InvalidInput(f'kind must be "wrong" or "missing"; found {kind!r}.')
    if n is not None:
        check_integer("n", n, 0)


class _Doubts(NamedTuple):
    """Labels that may be wrong or missing, each field of shape (m,)."""

    images: np.ndarray
    labels: np.ndarray
    present: np.ndarray
    """Whether the image has the label, which may then be wrong; else it may be missing."""
    probability: np.ndarray

    @classmethod
    def of(
        cls, belonging: scipy.sparse.csr_array, Y: scipy.sparse.csr_array, errors: LabelErrors
    ) -> _Doubts:
        """Return an entry for each held-out probability, by `error_probabilities`."""
        rows, columns, p = error_probabilities(belonging, Y, errors)
        return cls(rows, columns, _is_present(Y, rows, columns), p)

    def take(self, entries: np.ndarray) -> _Doubts:
        """Return some entries, by a mask or by their positions."""
        return _Doubts(*(field[entries] for field in self))

    def most_likely(self, n: int | None, kind: str | None) -> _Doubts:
        """Return the n most likely errors; all with .5 and more if n is None."""
        wanted = np.ones(len(self.present), bool)
        if kind is not None:
            wanted = self.present == (kind == "wrong")
        if n is None:
            wanted &= self.probability >= 0.5
        chosen = np.flatnonzero(wanted)
        return self.take(chosen[np.argsort(-self.probability[chosen], kind="stable")][:n])

    def list_findings(
        self, classes: np.ndarray, support: Iterable[tuple[Support, ...]]
    ) -> list[LabelFinding]:
        """Return the entries as findings, with the names of labels and the supporting images."""
        names = classes.tolist()
        columns = (field.tolist() for field in self)
        return [
            LabelFinding(image, names[t], "wrong" if present else "missing", p, t, images)
            for image, t, present, p, images in zip(*columns, support, strict=True)
        ]


def _find_support(
    method: NeighborVotes, rows: np.ndarray, columns: np.ndarray, n_kin: int
) -> Iterator[tuple[Support, ...]]:
    """Yield the images that support a label of an image, or the nearest images for label −1."""
    index = method.index
    assert index is not None
    # methods that choose neighbours label by label choose from all
    k = min(getattr(method, "n_neighbors", index.n_points_), index.n_points_ - 1)
    for block in row_blocks(len(rows), 64 * k):
        neighbors = Neighbors(*map(to_numpy, index.kneighbors_of(rows[block], k)))
        labels = [[int(column)] if column >= 0 else [] for column in columns[block]]
        evidence = method.explain(labels, range(method.n_labels), neighbors=neighbors)
        nearest = neighbors.indices[:, :n_kin]
        for images, of_label in zip(nearest, evidence, strict=True):
            if of_label:
                yield top_support(of_label[0], n_kin)
            else:
                share = 1 / max(len(images), 1)
                yield tuple(Support(int(j), share) for j in images if j >= 0)
