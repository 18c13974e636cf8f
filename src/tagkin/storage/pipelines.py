"""scikit-learn pipelines. Only they import scikit-learn, because the import takes a second."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from tagkin.arrays.pipelines import is_pipeline
from tagkin.arrays.records import storable
from tagkin.arrays.rules import Floats, Size, Texts, Whole

__all__ = [
    "Scaler",
    "is_pipeline",
    "is_scaler",
    "new_pipeline",
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


def is_scaler(value: Any) -> bool:
    """Whether a value is a StandardScaler."""
    module = sys.modules.get("sklearn.preprocessing")
    return module is not None and type(value) is module.StandardScaler


def record_scaler(scaler: Any) -> Scaler:
    """Return the record of a fitted StandardScaler."""
    state = vars(scaler) | {"n_samples_seen_": int(scaler.n_samples_seen_)}
    return Scaler(**{name: state.get(name) for name in Scaler.__dataclass_fields__})


def restore_scalers(model: Any) -> Any:
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


def new_pipeline(steps: list[tuple[str, Any]]) -> Any:
    """Return a pipeline of these steps."""
    from sklearn.pipeline import Pipeline

    return Pipeline(steps)


def steps_of(model: Any) -> list[Any]:
    """Return the steps of a pipeline, or the model itself."""
    return [step for _, step in model.steps] if is_pipeline(model) else [model]
