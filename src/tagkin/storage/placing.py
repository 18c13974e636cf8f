"""The arrays of a model on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from tagkin.arrays import on_device
from tagkin.storage.forms import stored_form
from tagkin.storage.pipelines import is_pipeline, parts_of

__all__ = ["place"]


def place(value: Any, device: Any) -> Any:
    """A value with its arrays as torch tensors on a device; objects are changed in place.

    Indices stay on the host, where they are used, and so does what the schema says.
    """
    if isinstance(value, np.ndarray) and value.dtype.kind not in "iuO":
        return on_device(value.copy(), device)
    if isinstance(value, list):
        return [place(one, device) for one in value]
    if isinstance(value, dict):
        return {key: place(one, device) for key, one in value.items()}
    if is_pipeline(value):
        for part in parts_of(value):
            place(part, device)
    form = stored_form(value)
    if form is None or _is_of_the_host(form.left_out):
        return value
    state = value.__dict__
    for name in [name for name in state if name not in form.on_host]:
        if name == "_deferred":
            state[name].place = lambda one: place(one, device)
        else:
            state[name] = place(state[name], device)
    return value


def _is_of_the_host(left_out: tuple[str, ...]) -> bool:
    """What is left out of a model is made again on the host, from the rest."""
    return bool(left_out)
