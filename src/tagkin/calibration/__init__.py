"""Calibrated probabilities, least scores for a wanted precision, and reliability."""

from typing import TYPE_CHECKING

from tagkin.calibration.calibration import Calibration, fit_calibration
from tagkin.calibration.error_sums import probability_missing, probability_wrong
from tagkin.calibration.label_errors import LabelErrors, estimate_label_errors
from tagkin.calibration.other_labels import with_other_labels
from tagkin.calibration.reliability import (
    ReliabilityCurve,
    expected_calibration_error,
    reliability_curve,
)
from tagkin.calibration.unannotated import UnannotatedLabels, fit_unannotated_labels
from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.calibration.calibrator import LabelCalibrator as LabelCalibrator

__all__ = [
    "Calibration",
    "LabelCalibrator",
    "LabelErrors",
    "ReliabilityCurve",
    "UnannotatedLabels",
    "estimate_label_errors",
    "expected_calibration_error",
    "fit_calibration",
    "fit_unannotated_labels",
    "probability_missing",
    "probability_wrong",
    "reliability_curve",
    "with_other_labels",
]

# At first use: only this estimator needs scikit-learn.
__getattr__ = lazy_names(__name__, {"LabelCalibrator": "calibrator"})
