"""Calibrated probabilities, least scores for a wanted precision, and reliability."""

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
