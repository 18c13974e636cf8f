"""Metrics of scores and neighbourhoods, per-label reports and plots."""

from tagkin.evaluation.metrics import (
    average_precision,
    evaluate,
    image_precision_recall_at,
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

__all__ = [
    "LabelReport",
    "average_precision",
    "draw_reliability",
    "evaluate",
    "image_precision_recall_at",
    "label_precision_recall_at",
    "label_report",
    "mean_average_precision",
    "mean_image_average_precision",
    "n_plus",
    "neighborhood_jaccard",
    "precision_recall_at",
    "top_labels",
]
