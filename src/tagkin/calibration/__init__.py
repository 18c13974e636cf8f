"""Calibrated probabilities, least scores for a wanted precision, and reliability."""

from typing import TYPE_CHECKING

from tagkin.calibration.calibration import Calibration, fit_calibration
from tagkin.calibration.error_sums import probability_missing, probability_wrong
from tagkin.calibration.label_errors import LabelErrors, estimate_label_errors
from tagkin.calibration.unannotated import UnannotatedLabels, fit_unannotated_labels
from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.calibration.calibrator import LabelCalibrator as LabelCalibrator
    from tagkin.calibration.frequency import frequency_levels as frequency_levels
    from tagkin.calibration.other_labels import with_other_labels as with_other_labels
    from tagkin.calibration.reliability import ReliabilityCurve as ReliabilityCurve
    from tagkin.calibration.reliability import (
        expected_calibration_error as expected_calibration_error,
    )
    from tagkin.calibration.reliability import reliability_curve as reliability_curve

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
    "frequency_levels",
    "probability_missing",
    "probability_wrong",
    "reliability_curve",
    "with_other_labels",
]

# Imported at first use, because suggesting neither learns nor measures.
_HOMES = {
    "LabelCalibrator": "calibrator",
    "ReliabilityCurve": "reliability",
    "expected_calibration_error": "reliability",
    "frequency_levels": "frequency",
    "reliability_curve": "reliability",
    "with_other_labels": "other_labels",
}
__getattr__ = lazy_names(__name__, _HOMES)
