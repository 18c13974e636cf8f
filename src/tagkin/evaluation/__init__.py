"""How good are scores, neighbourhoods and probabilities? Measures, calibration, reports."""

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

__all__ = [
    "average_precision",
    "evaluate",
    "label_precision_recall_at",
    "mean_average_precision",
    "mean_image_average_precision",
    "n_plus",
    "precision_recall_at",
    "top_labels",
]
