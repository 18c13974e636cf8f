"""The scikit-learn estimator of calibrated probabilities."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tagkin.arrays import Array
from tagkin.calibration.calibration import Calibration
from tagkin.calibration.fitting import fit_calibration
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

    def fit(self, S: Array, Y: Array) -> Self:
        """Learn from scores S (n×D), finite, and labels Y (n×D, dense or sparse)."""
        self.calibration_ = fit_calibration(S, Y)
        return self

    def predict_proba(self, S: Array) -> Array:
        """Return the probability of every label for every image, (n, D), with S's array type."""
        check_is_fitted(self)
        return self.calibration_.predict_proba(S)

    def min_scores(self, precision: float) -> np.ndarray:
        """Return each label's least score (D,) at which suggestions reach the precision.

        It is ∞ if a label cannot reach it. See `Calibration.min_scores`.
        """
        check_is_fitted(self)
        return self.calibration_.min_scores(precision)

    def describe(self) -> list[str]:
        """Return a few sentences that describe this calibrator."""
        check_is_fitted(self)
        return self.calibration_.describe()
