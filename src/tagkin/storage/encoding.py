"""Turn records into JSON values and named arrays, and back. Nothing is pickled.

`decode` builds only storable classes, and checks only what building needs. Check the result
(`tagkin.records.forms.check_record`) before you use it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse
from array_api_compat import is_torch_array

from tagkin.arrays import to_numpy
from tagkin.errors import DamagedModel, InvalidInput
from tagkin.records.forms import find_storable, form_of, is_resource, is_storable

__all__ = ["decode", "encode"]

Arrays = dict[str, np.ndarray]
Decoded = Any  # the value names its class

# Packages with storable classes. Importing them has no side effect.
_PACKAGES = frozenset(
    [
        "annotator",
        "calibration",
        "kernels",
        "labels",
        "neighbors",
        "paper",
        "space",
        "tag_meanings",
        "transfer",
    ]
)


# --- encoding ----------------------------------------------------------------------------


def encode(value: object, path: str, arrays: Arrays) -> object:
    """Return a JSON value for `value`, and add its arrays to `arrays` by their path."""

    def inner(part: object, name: object) -> object:
        return encode(part, f"{path}.{name}", arrays)

    if isinstance(value, np.generic):  # before numbers: np.float64 is a float, too
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        return {"$texts": [str(v) for v in value.ravel()]}
    if isinstance(value, np.ndarray) or is_torch_array(value):
        arrays[path] = np.ascontiguousarray(to_numpy(value))
        return {"$array": path}
    if scipy.sparse.issparse(value):
        return _encode_sparse(value, inner)
    if isinstance(value, (list, tuple)):
        return list(value) if _are_texts(value) else [inner(v, i) for i, v in enumerate(value)]
    if isinstance(value, dict):
        return {"$table": {str(k): inner(v, k) for k, v in value.items()}}
    if is_resource(type(value)):
        return None
    return _encode_record(value, path, inner)


def _are_texts(values: list[object] | tuple[object, ...]) -> bool:
    return set(map(type, values)) <= {str}


def _encode_sparse(
    value: scipy.sparse.sparray, inner: Callable[[object, object], object]
) -> object:
    """Return data, sorted indices and row ends of a sparse matrix, with short integers."""
    matrix = value.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    short = np.int32 if max(*matrix.shape, matrix.nnz) < 2**31 else np.int64
    indices, ends = (part.astype(short, copy=False) for part in (matrix.indices, matrix.indptr))
    parts = [matrix.data, indices, ends]
    names = ("csr.data", "csr.indices", "csr.indptr")
    return {
        "$csr": [inner(part, name) for part, name in zip(parts, names, strict=True)],
        "shape": list(value.shape),
    }


def _encode_record(value: object, path: str, inner: Callable[[object, object], object]) -> object:
    cls = type(value)
    if not is_storable(cls):
        raise InvalidInput(
            f"Cannot save {path}: {cls.__module__}.{cls.__name__} is not a class of tagkin. Only "
            "classes of tagkin can be loaded again without running code from the folder."
        )
    form = form_of(cls)
    room = cls.__module__.split(".")[1]
    record: dict[str, object] = {"$record": f"{room}.{cls.__name__}"}
    for name, attribute in vars(value).items():
        if name in form.rules:
            record[name] = inner(attribute, name)
        elif not name.startswith("_") and name not in form.left_out:
            raise InvalidInput(
                f"{cls.__name__}.{name} is not declared. Annotate it in the class with its rule, "
                "or with LEFT_OUT."
            )
    return record


# --- decoding ----------------------------------------------------------------------------


def decode(value: object, arrays: Arrays) -> Decoded:
    """Return the value that `encode` was given."""
    if isinstance(value, list):
        return value if _are_texts(value) else [decode(v, arrays) for v in value]
    if not isinstance(value, dict):
        return value
    if "$texts" in value:
        texts = value["$texts"]
        if not isinstance(texts, list):
            raise DamagedModel("The model holds texts that are not a list.")
        strings = np.empty(len(texts), dtype=object)
        strings[:] = texts
        return strings
    if "$array" in value:
        return _find_array(value["$array"], arrays)
    if "$csr" in value:
        return _build_csr(decode(value["$csr"], arrays), value.get("shape"))
    if "$table" in value:
        return {key: decode(entry, arrays) for key, entry in value["$table"].items()}
    return _build(value, arrays)


def _find_array(name: object, arrays: Arrays) -> np.ndarray:
    if not isinstance(name, str) or name not in arrays:
        raise DamagedModel(f"The model names the array {name!r:.80}, which is not there.")
    return arrays[name]


def _build_csr(parts: Decoded, shape: Decoded) -> scipy.sparse.csr_array:
    """Build a sparse matrix; its indices are checked, because native code trusts them."""
    if not isinstance(parts, list) or len(parts) != 3:
        raise DamagedModel("The model holds a sparse matrix without its three arrays.")
    if not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts):
        raise DamagedModel("The model holds a sparse matrix without its three arrays.")
    data, indices, ends = parts
    numbers = data.dtype.name in ("float32", "float64")  # SciPy has no other real numbers
    if not numbers or indices.dtype.kind != "i" or ends.dtype.kind != "i":
        kinds = ", ".join(str(part.dtype) for part in parts)
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


def _build(record: dict[str, object], arrays: Arrays) -> Decoded:
    """Build a record of a storable class, with attributes that the class declares."""
    name = record.get("$record")
    package, _, class_name = name.partition(".") if isinstance(name, str) else ("", "", "")
    if package in _PACKAGES:  # this imports a class that is imported at first use
        getattr(import_module(f"tagkin.{package}"), class_name, None)
    cls = find_storable(f"{package}.{class_name}")
    if cls is None:
        raise DamagedModel(f"{name!r:.80} is not a class that tagkin loads.")
    form, fields = form_of(cls), record.keys() - {"$record"}
    required = form.learned if is_dataclass(cls) else form.parameters
    if not required.keys() <= fields <= form.rules.keys():
        raise DamagedModel(
            f"{name} cannot have the attributes {sorted(fields)!r:.300}: it was "
            "edited, or saved by another version of tagkin."
        )
    built: Decoded = object.__new__(cls)
    built.__dict__.update({field: decode(record[field], arrays) for field in fields})
    return built
