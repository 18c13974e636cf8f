"""Objects as JSON values and named arrays, and back. Nothing is pickled.

What comes back is built by what the files say, and is not to be used before
`tagkin.storage.forms` has checked it; here is checked only what building needs.
"""

from __future__ import annotations

import inspect
import os
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse
from array_api_compat import is_torch_array

from tagkin.arrays import to_numpy
from tagkin.errors import DamagedModel, InvalidInput
from tagkin.storage.deferral import Later
from tagkin.storage.pipelines import is_pipeline, new_pipeline
from tagkin.storage.schema import class_named, is_resource, stored_form
from tagkin.storage.texts import (
    SEVERAL,
    are_lists_of_texts,
    are_texts,
    lists_as_arrays,
    lists_of,
    texts_as_arrays,
    texts_of,
)

__all__ = ["Arrays", "decode", "encode"]

_DEEPEST = 100  # values in values
# What scikit-learn's meta-estimators are to hand on when they fit: no part of what was learned.
_OF_CALLERS = ("_metadata_request",)


class Arrays:
    """The arrays of a model, by name: those that are always needed, and those that are apart."""

    def __init__(self) -> None:
        self.main: dict[str, np.ndarray] = {}
        self.apart: dict[str, np.ndarray] = {}

    @property
    def n_bytes(self) -> int:
        """Of all of them."""
        return sum(a.nbytes for a in (*self.main.values(), *self.apart.values()))


# --- encoding ----------------------------------------------------------------------------


def encode(value: Any, path: str, arrays: Arrays) -> Any:
    """A JSON value for `value`; arrays go to `arrays` under their path."""
    return _encode(value, path, arrays.main, arrays)


def _encode(value: Any, path: str, into: dict[str, np.ndarray], arrays: Arrays) -> Any:
    def inner(part: Any, name: Any) -> Any:
        return _encode(part, f"{path}.{name}", into, arrays)

    if isinstance(value, np.generic):  # before numbers: np.float64 is a float, too
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        listed = [str(v) for v in value.ravel()]
        if len(listed) < SEVERAL:
            return {"$strings": listed}
        return {"$strings": inner(texts_as_arrays(listed), "texts")}
    if isinstance(value, np.ndarray) or is_torch_array(value):
        into[path] = np.ascontiguousarray(to_numpy(value))
        return {"$array": path}
    if scipy.sparse.issparse(value):
        return {"$csr": inner(_csr_parts(value), "csr"), "shape": list(value.shape)}
    if isinstance(value, (list, tuple)):
        return _encode_list(value, inner)
    if isinstance(value, (set, frozenset)) and are_texts(list(value)):
        return _encode_list(sorted(value), inner)
    if isinstance(value, dict) and any(str(k).startswith("$") for k in value):
        # a user's own key may look like one of ours
        return {"$items": [[str(k), inner(v, k)] for k, v in value.items()]}
    if isinstance(value, dict):
        return {str(k): inner(v, k) for k, v in value.items()}
    if isinstance(value, np.random.RandomState):
        return None  # a generator in use has no seed to write down; the fitted state has all
    if is_resource(value):
        return None
    if is_pipeline(value):
        return {"$pipeline": [[name, inner(step, name)] for name, step in value.steps]}
    return _encode_object(value, path, into, arrays)


def _encode_list(value: list[Any] | tuple[Any, ...], inner: Any) -> Any:
    if len(value) >= SEVERAL and are_texts(value):
        return {"$texts": inner(texts_as_arrays(value), "texts")}
    if len(value) >= SEVERAL and are_lists_of_texts(value):
        return {"$text_lists": inner(lists_as_arrays(value), "lists")}
    return [inner(v, i) for i, v in enumerate(value)]


def _csr_parts(value: Any) -> dict[str, np.ndarray]:
    """Data, indices and row ends of a sparse matrix; sorted, and no wider than they need be."""
    matrix = value.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    short = np.int32 if max(*matrix.shape, matrix.nnz) < 2**31 else np.int64
    return {
        "data": matrix.data,
        "indices": matrix.indices.astype(short, copy=False),
        "indptr": matrix.indptr.astype(short, copy=False),
    }


def _encode_object(value: Any, path: str, into: dict[str, np.ndarray], arrays: Arrays) -> Any:
    name, form = type(value).__name__, stored_form(value)
    if form is None:
        raise InvalidInput(
            f"Cannot save {path}: {type(value).__module__}.{name} is not one of tagkin's own "
            "classes. Only those can be loaded again without running code from the folder."
        )
    apart = {k: getattr(value, k) for k in form.apart if hasattr(value, k)}
    kept = {k: v for k, v in vars(value).items() if k not in (*_OF_CALLERS, *form.left_out, *apart)}
    state = {k: _encode(v, f"{path}.{k}", into, arrays) for k, v in kept.items()}
    encoded = {"$class": name, "state": state}
    if apart:
        later = {k: _encode(v, f"{path}.{k}", arrays.apart, arrays) for k, v in apart.items()}
        encoded["apart"] = later
    return encoded


# --- decoding ----------------------------------------------------------------------------


def decode(value: Any, arrays: dict[str, np.ndarray], later: Later | None, depth: int = 0) -> Any:
    """The inverse of `encode`; `later` reads what is apart, and without it `arrays` have that."""
    if depth > _DEEPEST:
        raise DamagedModel(f"The model holds values in values, over {_DEEPEST} deep.")

    def inner(part: Any) -> Any:
        return decode(part, arrays, later, depth + 1)

    if isinstance(value, list):
        return [inner(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "$strings" in value:
        found = value["$strings"]
        listed = texts_of(inner(found)) if isinstance(found, dict) else found
        if not isinstance(listed, list):
            raise DamagedModel("The model holds texts that are none.")
        strings = np.empty(len(listed), dtype=object)
        strings[:] = listed
        return strings
    if "$texts" in value:
        return texts_of(inner(value["$texts"]))
    if "$text_lists" in value:
        return lists_of(inner(value["$text_lists"]))
    if "$array" in value:
        return _array_named(value["$array"], arrays)
    if "$csr" in value:
        return _csr(inner(value["$csr"]), value.get("shape"))
    if "$items" in value:
        return {str(k): inner(v) for k, v in value["$items"]}
    if "$pipeline" in value:
        return new_pipeline([(str(k), inner(v)) for k, v in value["$pipeline"]])
    if "$class" in value:
        return _build(value, arrays, later, depth)
    return {k: inner(v) for k, v in value.items()}


def _array_named(name: Any, arrays: dict[str, np.ndarray]) -> np.ndarray:
    if not isinstance(name, str) or name not in arrays:
        raise DamagedModel(f"The model names the array {name!r:.80}, which is not there.")
    return arrays[name]


def _csr(parts: Any, shape: Any) -> scipy.sparse.csr_array:
    """A sparse matrix whose indices are in range: native code believes them."""
    names = ("data", "indices", "indptr")
    arrays: list[Any] = [parts.get(name) if isinstance(parts, dict) else None for name in names]
    data, indices, ends = arrays
    if not all(isinstance(a, np.ndarray) and a.ndim == 1 for a in arrays):
        raise DamagedModel("The model holds a sparse matrix without its three arrays.")
    numbers = data.dtype.name in ("float32", "float64")  # SciPy knows no other real ones
    if not numbers or indices.dtype.kind != "i" or ends.dtype.kind != "i":
        kinds = ", ".join(str(a.dtype) for a in arrays)
        raise DamagedModel(f"The model holds a sparse matrix of {kinds}.")
    whole = isinstance(shape, list) and len(shape) == 2
    if not whole or not all(type(n) is int and 0 <= n < 2**40 for n in shape):
        raise DamagedModel(f"The model holds a sparse matrix of the shape {shape!r:.80}.")
    if len(ends) != shape[0] + 1:
        raise DamagedModel(f"A sparse matrix of {shape[0]:,} rows has {len(ends) - 1:,} of them.")
    try:
        matrix = scipy.sparse.csr_array((data, indices, ends), shape=tuple(shape))
        matrix.check_format(full_check=True)
    except (ValueError, OverflowError) as error:
        raise DamagedModel(f"The model holds a sparse matrix that is none: {error}.") from error
    if len(indices) != int(ends[-1]) or len(data) != len(indices):
        raise DamagedModel("The model holds a sparse matrix with entries in no row.")
    return matrix


def _build(
    value: dict[str, Any], arrays: dict[str, np.ndarray], later: Later | None, depth: int
) -> Any:
    """An object of a listed class, with exactly the attributes that it has."""
    name, encoded = value["$class"], value.get("state")
    found = class_named(name) if isinstance(name, str) else None
    if found is None:
        raise DamagedModel(f"{name!r:.80} is not a class that tagkin loads.")
    if not isinstance(encoded, dict):
        raise DamagedModel(f"A {name} in the model has no state.")
    cls, form = found
    state = {k: decode(v, arrays, later, depth + 1) for k, v in encoded.items()}
    apart = value.get("apart", {})
    if apart and (not isinstance(apart, dict) or set(apart) != set(form.apart)):
        raise DamagedModel(f"A {name} in the model has parts that it cannot have apart.")
    present = {*state, *apart}
    if is_dataclass(cls):
        fits = present == {field.name for field in fields(cls)}
    else:
        parameters = inspect.signature(cls).parameters
        known = {*form.parameters, *form.learned}
        fits = set(parameters) <= set(state) and present <= known
    if not fits:
        raise DamagedModel(f"{name} cannot have the attributes {sorted(present)!r:.300}.")
    built: Any = object.__new__(cls)
    built.__dict__.update(state)
    if apart and later is not None:
        built.__dict__["_deferred"] = later.of(form, apart)
    elif apart:
        found_apart = {k: decode(v, arrays, None, depth + 1) for k, v in apart.items()}
        built.__dict__.update(found_apart)
    return built
