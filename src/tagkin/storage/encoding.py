"""Objects as JSON values and named arrays, and back. Nothing is pickled."""

from __future__ import annotations

import inspect
import os
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse
from array_api_compat import is_torch_array
from sklearn.pipeline import Pipeline

from tagkin.arrays import on_device, to_numpy
from tagkin.errors import DamagedModel, InvalidInput
from tagkin.storage.schema import Stored, class_named, is_resource, stored_form

__all__ = ["decode", "encode"]


def encode(value: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    """A JSON value for `value`; arrays go to `arrays` under their path."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        return {"$strings": [str(v) for v in value.ravel()]}
    if isinstance(value, np.ndarray) or is_torch_array(value):
        arrays[path] = np.ascontiguousarray(to_numpy(value))
        return {"$array": path}
    if scipy.sparse.issparse(value):
        value = value.tocsr()
        parts = {k: getattr(value, k) for k in ("data", "indices", "indptr")}
        return {"$csr": encode(parts, path, arrays), "shape": list(value.shape)}
    if isinstance(value, (list, tuple)):
        return [encode(v, f"{path}.{i}", arrays) for i, v in enumerate(value)]
    if isinstance(value, dict) and any(str(k).startswith("$") for k in value):
        # a user's own key may look like one of ours
        return {"$items": [[k, encode(v, f"{path}.{k}", arrays)] for k, v in value.items()]}
    if isinstance(value, dict):
        return {str(k): encode(v, f"{path}.{k}", arrays) for k, v in value.items()}
    if isinstance(value, np.random.RandomState):
        return None  # a generator in use has no seed to write down; the fitted state has all
    if is_resource(value):
        return None
    if isinstance(value, Pipeline):
        steps = [[name, encode(step, f"{path}.{name}", arrays)] for name, step in value.steps]
        return {"$pipeline": steps}
    name, form = type(value).__name__, stored_form(value)
    if form is None:
        raise InvalidInput(
            f"Cannot save {path}: {type(value).__module__}.{name} is not one of tagkin's own "
            "classes. Only those can be loaded again without running code from the folder."
        )
    kept = {k: v for k, v in vars(value).items() if k not in form.left_out}
    state = {k: encode(v, f"{path}.{k}", arrays) for k, v in kept.items()}
    return {"$class": name, "state": state}


def decode(value: Any, arrays: dict[str, np.ndarray], device: Any) -> Any:
    """The inverse of `encode`."""
    if isinstance(value, list):
        return [decode(v, arrays, device) for v in value]
    if not isinstance(value, dict):
        return value
    if "$strings" in value:
        return np.asarray(value["$strings"], dtype=object)
    if "$array" in value:
        array = arrays[value["$array"]]
        # indices stay on the host, where they are used
        return array if device is None or array.dtype.kind in "iu" else on_device(array, device)
    if "$csr" in value:
        parts = decode(value["$csr"], arrays, None)
        return scipy.sparse.csr_array(
            (parts["data"], parts["indices"], parts["indptr"]), shape=value["shape"]
        )
    if "$items" in value:
        return {k: decode(v, arrays, device) for k, v in value["$items"]}
    if "$pipeline" in value:
        return Pipeline([(str(k), decode(v, arrays, device)) for k, v in value["$pipeline"]])
    if "$class" in value:
        return _build(value["$class"], value["state"], arrays, device)
    return {k: decode(v, arrays, device) for k, v in value.items()}


def _build(name: str, encoded: Any, arrays: dict[str, np.ndarray], device: Any) -> Any:
    """An object of a listed class, with exactly the attributes that it has."""
    found = class_named(name)
    if found is None:
        raise DamagedModel(f"{name!r} is not a class that tagkin loads.")
    cls, form = found
    encoded = _as_stored_now(encoded, form)
    if form.left_out:
        device = None  # what is left out is made again on the host
    state = {
        form.renamed.get(k, k): decode(v, arrays, None if k in form.on_host else device)
        for k, v in encoded.items()
    }
    if is_dataclass(cls):
        fits = set(state) == {field.name for field in fields(cls)}
    else:
        parameters = inspect.signature(cls).parameters
        state = {name: parameters[name].default for name in form.added} | state
        attributes = set(state) - set(parameters)
        fits = set(parameters) <= set(state) and not attributes & set(dir(cls))
    if not fits:
        raise DamagedModel(f"{name} cannot have the attributes {sorted(state)}.")
    built: Any = object.__new__(cls)
    built.__dict__.update(state)
    return built


def _as_stored_now(encoded: dict[str, Any], form: Stored) -> dict[str, Any]:
    """The state of an object as it would be stored today: some attributes in objects of their own.

    An object that holds them gets the parameters that it shares with this one, and defaults for
    the others.
    """
    for attribute, gathered in form.gathered.items():
        if attribute in encoded or not set(gathered.attributes) <= set(encoded):
            continue
        found = class_named(gathered.class_name)
        assert found is not None
        parameters = inspect.signature(found[0]).parameters
        state: dict[str, Any] = {
            name: encoded.get(name, parameter.default) for name, parameter in parameters.items()
        }
        state |= {name: encoded[name] for name in gathered.attributes}
        kept = {k: v for k, v in encoded.items() if k not in gathered.attributes}
        encoded = kept | {attribute: {"$class": gathered.class_name, "state": state}}
    return encoded
