"""Calibrated probabilities, least scores for a wanted precision, and reliability."""

from tagkin.calibration.calibrator import LabelCalibrator
from tagkin.calibration.error_sums import probability_missing, probability_wrong
from tagkin.calibration.label_errors import LabelErrors
from tagkin.calibration.other_labels import with_other_labels
from tagkin.calibration.reliability import (
    ReliabilityCurve,
    expected_calibration_error,
    reliability_curve,
)
from tagkin.calibration.unannotated import UnannotatedLabels

__all__ = [
    "LabelCalibrator",
    "LabelErrors",
    "ReliabilityCurve",
    "UnannotatedLabels",
    "expected_calibration_error",
    "probability_missing",
    "probability_wrong",
    "reliability_curve",
    "with_other_labels",
]
