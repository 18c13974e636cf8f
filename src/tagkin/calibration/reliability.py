"""Are probabilities calibrated? Reliability curves and the expected calibration error."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tagkin.arrays import Array, check_integer, row_blocks
from tagkin.arrays.labels import check_pair, read_scores
from tagkin.errors import InvalidInput

__all__ = ["ReliabilityCurve", "expected_calibration_error", "reliability_curve"]


class ReliabilityCurve(NamedTuple):
    """Probabilities in bins of equal width: arrays of shape (n_bins,), NaN in empty bins."""

    predicted: np.ndarray  # mean probability
    observed: np.ndarray  # share of pairs in which the image has the label
    n_pairs: np.ndarray  # pairs of an image and a label


def reliability_curve(Y: Array, P: Array, n_bins: int = 15) -> ReliabilityCurve:
    """Return the observed frequency of labels against their predicted probability.

    Parameters
    ----------
    Y : array or sparse matrix of shape (n, D)
    P : array of shape (n, D)
        Probabilities.
    n_bins : int
        Number of bins of equal width from 0 to 1. (Nearly all pairs of an image and a label have a
        probability near 0, so nearly all bins of equal mass would be there.)

    Returns
    -------
    curve : ReliabilityCurve
        Mean prediction, observed frequency and number of pairs in every bin.
    """
    labels, P = check_pair(Y, P, ("Y", "P"))
    n_bins = check_integer("n_bins", n_bins)
    count, positives = np.zeros(n_bins, dtype=np.intp), np.zeros(n_bins)
    predicted = np.zeros(n_bins)
    for rows in row_blocks(P.shape[0], 32 * P.shape[1]):
        p = read_scores(P, rows, finite=True, name="P").astype(np.float64, copy=False)
        if p.min() < 0 or p.max() > 1:
            raise InvalidInput(
                f"P holds {p.min() if p.min() < 0 else p.max():.3g}, which is not a probability. "
                "LabelCalibrator learns probabilities from scores."
            )
        bins = np.minimum((p * n_bins).astype(np.intp), n_bins - 1)
        count += np.bincount(bins.ravel(), minlength=n_bins)
        predicted += np.bincount(bins.ravel(), p.ravel(), n_bins)
        positives += np.bincount(bins[labels[rows].nonzero()], minlength=n_bins)
    with np.errstate(invalid="ignore"):
        return ReliabilityCurve(predicted / count, positives / count, count)


def expected_calibration_error(Y: Array, P: Array, n_bins: int = 15) -> float:
    """Return the mean distance of prediction and frequency, Σ_b |predicted − observed| n_b / n.

    The parameters are as in `reliability_curve`. All pairs (image, label) count equally.

    Parameters
    ----------
    Y : array of shape (n, D)
        Labels.
    P : array of shape (n, D)
        Probabilities.
    n_bins : int, default 15
        Number of bins.
    """
    curve = reliability_curve(Y, P, n_bins)
    distance = np.abs(curve.predicted - curve.observed)
    return float(np.nansum(distance * curve.n_pairs) / curve.n_pairs.sum())
