"""Probabilities that hold: calibration, thresholds for a wanted precision, reliability."""

from tagkin.calibration.calibrator import LabelCalibrator
from tagkin.calibration.reliability import (
    ReliabilityCurve,
    expected_calibration_error,
    reliability_curve,
)

__all__ = [
    "LabelCalibrator",
    "ReliabilityCurve",
    "expected_calibration_error",
    "reliability_curve",
]
