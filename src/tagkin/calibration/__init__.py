"""Calibrated probabilities, the cut for a wanted precision, errors in labels, and reliability."""

from typing import TYPE_CHECKING

from tagkin.calibration.calibration import Calibration, CalibrationByKind
from tagkin.calibration.label_errors import LabelErrors, probability_missing, probability_wrong
from tagkin.calibration.unannotated import UnannotatedLabels, fit_unannotated_labels
from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.calibration.calibrator import LabelCalibrator as LabelCalibrator
    from tagkin.calibration.error_rates import estimate_label_errors as estimate_label_errors
    from tagkin.calibration.fitting import HeldOutScores as HeldOutScores
    from tagkin.calibration.fitting import fit_calibration as fit_calibration
    from tagkin.calibration.fitting import frequency_levels as frequency_levels
    from tagkin.calibration.other_labels import with_other_labels as with_other_labels
    from tagkin.calibration.reliability import ReliabilityCurve as ReliabilityCurve
    from tagkin.calibration.reliability import (
        expected_calibration_error as expected_calibration_error,
    )
    from tagkin.calibration.reliability import reliability_curve as reliability_curve

__all__ = [
    "Calibration",
    "CalibrationByKind",
    "HeldOutScores",
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
    "HeldOutScores": "fitting",
    "LabelCalibrator": "calibrator",
    "ReliabilityCurve": "reliability",
    "estimate_label_errors": "error_rates",
    "expected_calibration_error": "reliability",
    "fit_calibration": "fitting",
    "frequency_levels": "fitting",
    "reliability_curve": "reliability",
    "with_other_labels": "other_labels",
}
__getattr__ = lazy_names(__name__, _HOMES)
