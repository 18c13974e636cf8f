"""Models that can be stored: tagkin's own, and pipelines of scikit-learn.

scikit-learn is not imported unless there is a pipeline: that takes a second.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from tagkin.arrays import on_device
from tagkin.arrays.checks import is_pipeline
from tagkin.errors import DamagedModel, InvalidInput
from tagkin.records.forms import Later, check_record, form_of, is_storable, storable
from tagkin.records.rules import Floats, Refused, Size, Sizes, Texts, Whole

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

__all__ = [
    "Scaler",
    "check_model",
    "check_values",
    "is_model",
    "is_pipeline",
    "is_scaler",
    "new_pipeline",
    "place",
    "record_scaler",
    "restore_scalers",
    "steps_of",
]


@storable
@dataclass(frozen=True)
class Scaler:
    """A fitted StandardScaler of scikit-learn."""

    copy: bool
    with_mean: bool
    with_std: bool
    n_features_in_: Annotated[int, Size("d")]
    n_samples_seen_: Annotated[int, Whole(1)]
    mean_: Annotated[np.ndarray | None, Floats("d")]
    var_: Annotated[np.ndarray | None, Floats("d", low=0)]
    scale_: Annotated[np.ndarray | None, Floats("d", above=0)]
    feature_names_in_: Annotated[np.ndarray | None, Texts("d")]


def is_scaler(value: object) -> bool:
    """Whether a value is a StandardScaler."""
    module = sys.modules.get("sklearn.preprocessing")
    return module is not None and type(value) is module.StandardScaler


def record_scaler(scaler: StandardScaler) -> Scaler:
    """Return the record of a fitted StandardScaler."""
    state = vars(scaler) | {"n_samples_seen_": int(scaler.n_samples_seen_)}
    return Scaler(**{name: state.get(name) for name in Scaler.__dataclass_fields__})


def restore_scalers(model: object) -> object:
    """Return the model with a StandardScaler of scikit-learn in place of each `Scaler`."""
    if not is_pipeline(model):
        return model
    from sklearn.preprocessing import StandardScaler

    for i, (name, step) in enumerate(model.steps):
        if isinstance(step, Scaler):
            state = vars(step)
            scaler = StandardScaler(
                **{key: state[key] for key in ("copy", "with_mean", "with_std")}
            )
            learned = {k: v for k, v in state.items() if k.endswith("_")}
            if learned["feature_names_in_"] is None:
                del learned["feature_names_in_"]
            vars(scaler).update(learned)
            model.steps[i] = (name, scaler)
    return model


def new_pipeline(steps: list[tuple[str, object]]) -> Pipeline:
    """Return a pipeline of these steps."""
    from sklearn.pipeline import Pipeline

    return Pipeline(steps)


def steps_of(model: object) -> list[object]:
    """Return the steps of a pipeline, or the model itself."""
    return [step for _, step in model.steps] if is_pipeline(model) else [model]


def is_model(value: object) -> bool:
    """Whether an object can be saved by itself, or as a step of a pipeline."""
    return hasattr(value, "describe") or isinstance(value, Scaler) or is_scaler(value)


def check_model(model: object, folder: Path) -> None:
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


def check_values(model: object) -> None:
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


def _n_outputs(step: object, where: str) -> int | None:
    """Return the number of features that a step passes on, or None if it is unknown."""
    if isinstance(step, Scaler):
        return step.n_features_in_
    names_out = getattr(step, "get_feature_names_out", None)
    if not hasattr(step, "transform") or names_out is None:
        raise Refused(where, "passes nothing on to the next step")
    try:
        return len(names_out())
    except InvalidInput:  # a streamed space with too few images so far
        return None


def place(value: object, device: object) -> object:
    """Return a value with its arrays as torch tensors on a device. Records change in place.

    Indices and fields whose rule says so stay on the host, where they are used.
    """
    if isinstance(value, np.ndarray) and value.dtype.kind not in "iuO":
        return on_device(value, device)
    if isinstance(value, list):
        return [place(entry, device) for entry in value]
    if isinstance(value, dict):
        return {key: place(entry, device) for key, entry in value.items()}
    if isinstance(value, Later):
        value.then(lambda inner: place(inner, device))
    if is_pipeline(value):
        for step in steps_of(value):
            place(step, device)
    if is_storable(type(value)):
        rules, state = form_of(type(value)).rules, vars(value)
        for name in [name for name in state if name in rules and not rules[name].on_host]:
            state[name] = place(state[name], device)
    return value
