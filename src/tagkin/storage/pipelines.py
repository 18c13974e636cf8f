"""Pipelines of scikit-learn, which is not imported where there are none: that takes a second."""

from __future__ import annotations

from typing import Any

from tagkin.arrays.pipelines import is_pipeline

__all__ = ["is_pipeline", "new_pipeline", "parts_of"]


def new_pipeline(steps: list[tuple[str, Any]]) -> Any:
    """A pipeline of these steps."""
    from sklearn.pipeline import Pipeline

    return Pipeline(steps)


def parts_of(model: Any) -> list[Any]:
    """The steps of a pipeline, or the model itself."""
    return [step for _, step in model.steps] if is_pipeline(model) else [model]
