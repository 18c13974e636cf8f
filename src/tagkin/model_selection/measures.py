"""Measures to compare settings by, named like the metrics of `tagkin.evaluate`."""

from __future__ import annotations

from collections.abc import Callable

from tagkin.arrays import Array
from tagkin.errors import InvalidInput
from tagkin.evaluation import evaluate, mean_average_precision, mean_image_average_precision

__all__ = ["MEASURES", "Measure", "find_measure"]

Measure = Callable[[Array, Array], float]

MEASURES: dict[str, Measure] = {
    "MAP": mean_average_precision,
    "MiAP": mean_image_average_precision,
    "image_precision": lambda Y, S: evaluate(Y, S)["image_precision"],
    "image_recall": lambda Y, S: evaluate(Y, S)["image_recall"],
    "hit_rate": lambda Y, S: evaluate(Y, S)["hit_rate"],
    "macro_precision": lambda Y, S: evaluate(Y, S)["macro_precision"],
    "macro_recall": lambda Y, S: evaluate(Y, S)["macro_recall"],
    "n_plus": lambda Y, S: evaluate(Y, S)["n_plus"],
}


def find_measure(measure: str | Measure) -> Measure:
    """Return a measure by its name, or the function itself."""
    if callable(measure):
        return measure
    if measure not in MEASURES:
        raise InvalidInput(
            f"measure must be one of {', '.join(MEASURES)}, or a function of (Y, S); found "
            f"{measure!r}."
        )
    return MEASURES[measure]
