"""Turn records into JSON values and named arrays, and back. Nothing is pickled.

`decode` builds only storable classes, and checks only what building needs. Check the result
(`tagkin.records.forms.check_record`) before you use it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse
from array_api_compat import is_torch_array

from tagkin.arrays import to_numpy
from tagkin.errors import DamagedModel, InvalidInput
from tagkin.records.forms import Later, find_storable, form_of, is_resource, is_storable
from tagkin.storage.storable_models import is_pipeline, is_scaler, new_pipeline, record_scaler
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

_Inner = Callable[[object, object], object]  # encodes a part, by its name
_DEEPEST = 100  # levels of nested values
# Packages with storable classes. Importing them has no side effect.
_PACKAGES = frozenset(
    [
        "annotator",
        "calibration",
        "denoising",
        "kernels",
        "labels",
        "lexicons",
        "neighbors",
        "space",
        "storage",
        "tag_meanings",
        "transfer",
    ]
)


class Arrays:
    """The arrays of a model by name: read at once, and read at first use."""

    def __init__(self) -> None:
        self.main: dict[str, np.ndarray] = {}
        self.apart: dict[str, np.ndarray] = {}

    @property
    def n_bytes(self) -> int:
        """Size of all arrays in bytes."""
        return sum(a.nbytes for a in (*self.main.values(), *self.apart.values()))


# --- encoding ----------------------------------------------------------------------------


def encode(value: object, path: str, arrays: Arrays) -> object:
    """Return a JSON value for `value`, and add its arrays to `arrays` by their path."""
    return _encode(value, path, arrays.main, arrays)


def _encode(value: object, path: str, into: dict[str, np.ndarray], arrays: Arrays) -> object:
    def inner(part: object, name: object) -> object:
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
        return _encode_sparse(value, inner)
    if isinstance(value, (list, tuple)):
        return _encode_list(value, inner)
    if isinstance(value, (set, frozenset)) and are_texts(list(value)):
        return _encode_list(sorted(value), inner)
    if isinstance(value, dict) and any(str(k).startswith("$") for k in value):
        # a key of the user may look like a marker
        return {"$items": [[str(k), inner(v, k)] for k, v in value.items()]}
    if isinstance(value, dict):
        return {str(k): inner(v, k) for k, v in value.items()}
    if isinstance(value, np.random.RandomState):
        return None  # it has no seed to store, and the fitted state does not need it
    if is_resource(type(value)):
        return None
    if isinstance(value, Later):
        return {"$later": _encode(value.get(), path, arrays.apart, arrays)}
    if is_pipeline(value):
        return {"$pipeline": [[name, inner(step, name)] for name, step in value.steps]}
    if is_scaler(value):
        value = record_scaler(value)
    return _encode_record(value, path, inner)


def _encode_list(value: Sequence[object], inner: _Inner) -> object:
    if len(value) >= SEVERAL and are_texts(value):
        return {"$texts": inner(texts_as_arrays(value), "texts")}
    if len(value) >= SEVERAL and are_lists_of_texts(value):
        return {"$text_lists": inner(lists_as_arrays(value), "lists")}
    return [inner(v, i) for i, v in enumerate(value)]


def _encode_sparse(value: scipy.sparse.sparray, inner: _Inner) -> object:
    """Return data, sorted indices and row ends of a sparse matrix, with short integers."""
    matrix = value.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    short = np.int32 if max(*matrix.shape, matrix.nnz) < 2**31 else np.int64
    parts = {
        "data": matrix.data,
        "indices": matrix.indices.astype(short, copy=False),
        "indptr": matrix.indptr.astype(short, copy=False),
    }
    return {"$csr": inner(parts, "csr"), "shape": list(value.shape)}


def _encode_record(value: object, path: str, inner: _Inner) -> object:
    cls = type(value)
    if not is_storable(cls):
        raise InvalidInput(
            f"Cannot save {path}: {cls.__module__}.{cls.__name__} is not a class of tagkin. Only "
            "classes of tagkin can be loaded again without running code from the folder."
        )
    form, state = form_of(cls), {}
    for name, attribute in vars(value).items():
        if name in form.rules:
            state[name] = inner(attribute, name)
        elif not name.startswith("_") and name not in form.left_out:
            raise InvalidInput(
                f"{cls.__name__}.{name} is not declared. Annotate it in the class with its rule, "
                "or with LEFT_OUT."
            )
    room = cls.__module__.split(".")[1]
    return {"$record": f"{room}.{cls.__name__}", "state": state}


# --- decoding ----------------------------------------------------------------------------


Read = Callable[[], dict[str, np.ndarray]]
Decoded = Any  # the value names its class


def decode(
    value: object, arrays: dict[str, np.ndarray], read_later: Read | None = None, depth: int = 0
) -> Decoded:
    """Return the value that `encode` was given, from a JSON value with `depth` values around it.

    `read_later` returns the arrays that are read at first use. Without it, `arrays` has them.
    """
    if depth > _DEEPEST:
        raise DamagedModel(f"The model holds values that are nested more than {_DEEPEST} deep.")

    def inner(part: object) -> Decoded:
        return decode(part, arrays, read_later, depth + 1)

    if isinstance(value, list):
        return [inner(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "$strings" in value:
        listed = value["$strings"]
        if isinstance(listed, dict):
            listed = texts_of(inner(listed))
        if not isinstance(listed, list):
            raise DamagedModel("The model holds texts that are not a list.")
        strings = np.empty(len(listed), dtype=object)
        strings[:] = listed
        return strings
    if "$texts" in value:
        return texts_of(inner(value["$texts"]))
    if "$text_lists" in value:
        return lists_of(inner(value["$text_lists"]))
    if "$array" in value:
        return _find_array(value["$array"], arrays)
    if "$csr" in value:
        return _build_csr(inner(value["$csr"]), value.get("shape"))
    if "$items" in value:
        return {str(k): inner(v) for k, v in value["$items"]}
    if "$pipeline" in value:
        return new_pipeline([(str(k), inner(v)) for k, v in value["$pipeline"]])
    if "$later" in value:
        return _decode_later(value["$later"], arrays, read_later, depth + 1)
    if "$record" in value:
        return _build(value["$record"], value.get("state"), inner)
    return {k: inner(v) for k, v in value.items()}


def _find_array(name: object, arrays: dict[str, np.ndarray]) -> np.ndarray:
    if not isinstance(name, str) or name not in arrays:
        raise DamagedModel(f"The model names the array {name!r:.80}, which is not there.")
    return arrays[name]


def _build_csr(parts: Decoded, shape: Decoded) -> scipy.sparse.csr_array:
    """Build a sparse matrix; its indices are checked, because native code trusts them."""
    names = ("data", "indices", "indptr")
    arrays: list[Decoded] = [parts.get(name) if isinstance(parts, dict) else None for name in names]
    data, indices, ends = arrays
    if not all(isinstance(a, np.ndarray) and a.ndim == 1 for a in arrays):
        raise DamagedModel("The model holds a sparse matrix without its three arrays.")
    numbers = data.dtype.name in ("float32", "float64")  # SciPy has no other real numbers
    if not numbers or indices.dtype.kind != "i" or ends.dtype.kind != "i":
        kinds = ", ".join(str(a.dtype) for a in arrays)
        raise DamagedModel(f"The model holds a sparse matrix of {kinds}.")
    whole = isinstance(shape, list) and len(shape) == 2
    if not whole or not all(type(n) is int and 0 <= n < 2**40 for n in shape):
        raise DamagedModel(f"The model holds a sparse matrix of the shape {shape!r:.80}.")
    if len(ends) != shape[0] + 1:
        raise DamagedModel(f"A sparse matrix has {len(ends) - 1:,} rows, not {shape[0]:,}.")
    try:
        matrix = scipy.sparse.csr_array((data, indices, ends), shape=tuple(shape))
        matrix.check_format(full_check=True)
    except (ValueError, OverflowError) as error:
        raise DamagedModel(f"The model holds an invalid sparse matrix: {error}.") from error
    if len(indices) != int(ends[-1]) or len(data) != len(indices):
        raise DamagedModel("The model holds a sparse matrix with entries outside of all rows.")
    return matrix


def _decode_later(
    value: object, arrays: dict[str, np.ndarray], read_later: Read | None, depth: int
) -> Later[Decoded]:
    if read_later is None:
        return Later.known(decode(value, arrays, None, depth))

    def read() -> Decoded:
        return decode(value, read_later(), None, depth)

    return Later(read)


def _build(name: object, encoded: object, inner: Callable[[object], Decoded]) -> Decoded:
    """Build a record of a storable class, with attributes that the class declares."""
    package, _, class_name = name.partition(".") if isinstance(name, str) else ("", "", "")
    if package in _PACKAGES:  # this imports a class that is imported at first use
        getattr(import_module(f"tagkin.{package}"), class_name, None)
    cls = find_storable(f"{package}.{class_name}")
    if cls is None:
        raise DamagedModel(f"{name!r:.80} is not a class that tagkin loads.")
    if not isinstance(encoded, dict):
        raise DamagedModel(f"A {name} in the model has no state.")
    form = form_of(cls)
    required = form.learned if is_dataclass(cls) else form.parameters
    if not required.keys() <= encoded.keys() <= form.rules.keys():
        raise DamagedModel(f"{name} cannot have the attributes {sorted(encoded)!r:.300}.")
    built: Decoded = object.__new__(cls)
    built.__dict__.update({key: inner(part) for key, part in encoded.items()})
    return built
