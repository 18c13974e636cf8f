"""Metrics of scores, and reports per label."""

from tagkin.evaluation.label_reports import LabelReport, label_report
from tagkin.evaluation.metrics import (
    average_precision,
    evaluate,
    mean_average_precision,
    scorer,
    top_labels,
)

__all__ = [
    "LabelReport",
    "average_precision",
    "evaluate",
    "label_report",
    "mean_average_precision",
    "scorer",
    "top_labels",
]
