"""How good are scores, neighbourhoods and probabilities? Measures, calibration, reports."""

from tagkin.evaluation.calibration import (
    LabelCalibrator,
    ReliabilityCurve,
    expected_calibration_error,
    reliability_curve,
)
from tagkin.evaluation.metrics import (
    average_precision,
    evaluate,
    label_precision_recall_at,
    mean_average_precision,
    mean_image_average_precision,
    n_plus,
    precision_recall_at,
    top_labels,
)
from tagkin.evaluation.neighborhoods import neighborhood_jaccard
from tagkin.evaluation.plots import draw_reliability
from tagkin.evaluation.report import LabelReport, label_report
from tagkin.evaluation.selection import Choice, Trial, choose, cross_validate, held_out_scores

__all__ = [
    "Choice",
    "LabelCalibrator",
    "LabelReport",
    "ReliabilityCurve",
    "Trial",
    "average_precision",
    "choose",
    "cross_validate",
    "draw_reliability",
    "evaluate",
    "expected_calibration_error",
    "held_out_scores",
    "label_precision_recall_at",
    "label_report",
    "mean_average_precision",
    "mean_image_average_precision",
    "n_plus",
    "neighborhood_jaccard",
    "precision_recall_at",
    "reliability_curve",
    "top_labels",
]
