"""Pipelines of scikit-learn, known without importing them: that takes half a second."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["is_pipeline"]


def is_pipeline(value: Any) -> bool:
    """Whether a value is a scikit-learn pipeline; without that module there is none."""
    module = sys.modules.get("sklearn.pipeline")
    return module is not None and isinstance(value, module.Pipeline)
