"""Recognise scikit-learn pipelines without importing scikit-learn, which takes half a second."""

from __future__ import annotations

from typing import Any

__all__ = ["is_pipeline"]


def is_pipeline(value: Any) -> bool:
    """Whether a value is a scikit-learn pipeline."""
    kinds = {(kind.__module__, kind.__name__) for kind in type(value).__mro__}
    return ("sklearn.pipeline", "Pipeline") in kinds
