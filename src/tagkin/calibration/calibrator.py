"""The scikit-learn estimator of calibrated probabilities."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tagkin.arrays import Array, like
from tagkin.arrays.labels import check_pair, check_scores, read_scores
from tagkin.calibration.calibration import Calibration
from tagkin.calibration.fitting import HeldOutScores, fit_calibration
from tagkin.records.forms import storable

__all__ = ["LabelCalibrator"]


@storable
class LabelCalibrator(BaseEstimator):
    """Probabilities of labels, learned from scores of held-out images.

    Fit it on held-out images: scores of training images are too high. `fit_calibration` says how
    it learns.

    Attributes
    ----------
    calibration_ : Calibration

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.calibration import LabelCalibrator
    >>> rng = np.random.default_rng(0)
    >>> S = rng.random((2000, 3))
    >>> Y = rng.random((2000, 3)) < S**2
    >>> calibrator = LabelCalibrator().fit(S, Y)
    >>> calibrator.predict_proba([[0.1, 0.6, 0.9]]).round(1)
    array([[0. , 0.4, 0.8]])
    """

    calibration_: Calibration

    def fit(self, S: Array, Y: Array, *, groups: Array | None = None) -> Self:
        """Learn from scores S (n×D) and labels Y (n×D) of held-out images.

        Images of the same group in `groups` (n,), such as a burst, count as one image.

        Parameters
        ----------
        S : array of shape (N, D)
            Scores; higher is likelier.
        Y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        groups : array of shape (N,), optional
            Images of a group, such as a burst, are one image.
        """
        labels, S = check_pair(Y, S)
        scores = HeldOutScores((_on_host(S),))
        self.calibration_ = fit_calibration(scores, labels, groups=groups).calibration
        return self

    def predict_proba(self, S: Array) -> Array:
        """Return the probability of every label for every image, (n, D), with S's array type."""
        check_is_fitted(self, "calibration_")
        S = check_scores(S)
        calibration = self.calibration_
        return like(calibration.probabilities(calibration.mix([_on_host(S)])), S)

    def threshold(self, precision: float) -> float:
        """Return the probability from which on suggestions reach a precision, or ∞."""
        check_is_fitted(self, "calibration_")
        return self.calibration_.threshold(precision)

    def describe(self) -> list[str]:
        """Return a few sentences that describe this calibrator."""
        check_is_fitted(self, "calibration_")
        return self.calibration_.describe()


def _on_host(S: Array) -> np.ndarray:
    return np.asarray(read_scores(S, slice(None), finite=True))
