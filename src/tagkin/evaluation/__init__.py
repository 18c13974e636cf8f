"""Metrics of scores and neighbourhoods, per-label reports and plots."""

from tagkin.evaluation.label_reports import LabelReport, label_report
from tagkin.evaluation.metrics import (
    average_precision,
    evaluate,
    mean_average_precision,
    mean_image_average_precision,
    scorer,
    top_labels,
)
from tagkin.evaluation.neighborhoods import neighborhood_jaccard
from tagkin.evaluation.plots import draw_reliability

__all__ = [
    "LabelReport",
    "average_precision",
    "draw_reliability",
    "evaluate",
    "label_report",
    "mean_average_precision",
    "mean_image_average_precision",
    "neighborhood_jaccard",
    "scorer",
    "top_labels",
]
