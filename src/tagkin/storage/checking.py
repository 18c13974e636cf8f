"""Check a model that was built from its files, before anything uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tagkin.arrays.records import check_record
from tagkin.arrays.rules import Refused, Sizes
from tagkin.errors import DamagedModel, InvalidInput
from tagkin.storage.pipelines import Scaler, is_pipeline, is_scaler, steps_of

__all__ = ["check_model", "check_values", "is_model"]


def is_model(value: Any) -> bool:
    """Whether an object can be saved by itself, or as a step of a pipeline."""
    return hasattr(value, "describe") or isinstance(value, Scaler) or is_scaler(value)


def check_model(model: Any, folder: Path) -> None:
    """Raise `DamagedModel`, which says what and where, if a model cannot be used."""
    steps = steps_of(model)
    if not steps:
        raise DamagedModel(f"{folder} holds a pipeline without steps.")
    for step in steps:
        if not is_model(step):
            raise DamagedModel(f"{folder} holds {type(step).__name__}, which is not a model.")
    try:
        check_values(model)
    except Refused as refusal:
        raise DamagedModel(
            f"{folder} is damaged: {refusal}. Restore it from a copy, or save the model again."
        ) from refusal


def check_values(model: Any) -> None:
    """Raise `Refused` if a model, or a step of a pipeline, has an invalid value."""
    passed_on: int | None = None
    steps = steps_of(model)
    for i, step in enumerate(steps):
        where = f"step {i + 1}" if is_pipeline(model) else "model"
        check_record(step, Sizes(), where)
        n_features = getattr(step, "n_features_in_", passed_on)
        if passed_on is not None and n_features != passed_on:
            raise Refused(where, f"takes {n_features:,} features, and gets {passed_on:,}")
        if step is not steps[-1]:
            passed_on = _n_outputs(step, where)


def _n_outputs(step: Any, where: str) -> int | None:
    """Return the number of features that a step passes on, or None if it is unknown."""
    if isinstance(step, Scaler):
        return step.n_features_in_
    if not hasattr(step, "transform"):
        raise Refused(where, "passes nothing on to the next step")
    try:
        return len(step.get_feature_names_out())
    except InvalidInput:  # a streamed space with too few images so far
        return None
