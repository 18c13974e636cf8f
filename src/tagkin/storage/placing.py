"""The arrays of a model on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from tagkin.arrays import on_device
from tagkin.records.forms import Later, form_of, is_storable
from tagkin.storage.storable_models import is_pipeline, steps_of

__all__ = ["place"]


def place(value: Any, device: Any) -> Any:
    """Return a value with its arrays as torch tensors on a device. Records change in place.

    Indices and fields whose rule says so stay on the host, where they are used.
    """
    if isinstance(value, np.ndarray) and value.dtype.kind not in "iuO":
        return on_device(value.copy(), device)
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
