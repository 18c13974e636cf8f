"""A model is a folder: arrays as safetensors, everything else as JSON, and a card to read.

Nothing is pickled. What can be stored is listed below by name; loading builds those classes
and no others.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
import scipy.sparse
from array_api_compat import is_torch_array
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

import tagkin
from tagkin.arrays import to_numpy
from tagkin.errors import DamagedModel, InvalidInput, MissingExtra, StorageError

__all__ = ["load", "save"]

FORMAT = "tagkin-model"
FORMAT_VERSION = 1

_MODEL, _ARRAYS, _CARD = "model.json", "arrays.safetensors", "README.md"

# Where each storable class lives. The names are part of the format.
_HOMES = {
    "ArcCosine": "tagkin.kernels",
    "ExpChi2": "tagkin.kernels",
    "IndicatorView": "tagkin.labels.views",
    "LandmarkMap": "tagkin.landmarks",
    "Landmarks": "tagkin.landmarks",
    "Linear": "tagkin.kernels",
    "Moments": "tagkin._moments",
    "Projection": "tagkin.space",
    "RBF": "tagkin.kernels",
    "SemanticSpace": "tagkin.space",
}


# --- saving ------------------------------------------------------------------------------


def save(model: Any, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a fitted model to a folder, all of it or nothing.

    Parameters
    ----------
    model : a fitted estimator of tagkin
    folder : path
        Made anew. An existing model is replaced only with `overwrite`, and a folder that is
        not a model never.

    Returns
    -------
    folder : Path
    """
    folder = Path(folder).absolute()
    if type(model).__name__ not in _HOMES or not isinstance(model, BaseEstimator):
        raise InvalidInput(f"{type(model).__name__} is not a model that tagkin can save.")
    if not any(name.endswith("_") for name in vars(model)):
        raise NotFittedError(f"This {type(model).__name__} is not fitted yet; fit it, then save.")
    _check_target(folder, overwrite)
    arrays: dict[str, np.ndarray] = {}
    content = _encode(model, "model", arrays)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=folder.parent, prefix=f".{folder.name}-", ignore_cleanup_errors=True
        ) as scratch:
            fresh = Path(scratch) / folder.name
            fresh.mkdir()
            _write(fresh, model, content, arrays)
            _put_in_place(fresh, folder)
    except OSError as error:
        raise StorageError(
            f"Could not save the model to {folder}: {error.strerror or error}. "
            "Nothing there was changed; free some space or choose another folder."
        ) from error
    return folder


def _check_target(folder: Path, overwrite: bool) -> None:
    """Refuse to write where something would be lost."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise StorageError(
            f"{folder} is a file; a model is saved as a folder. Choose another name."
        )
    found = {path.name for path in folder.iterdir()}
    if not found:
        return
    foreign = sorted(found - {_MODEL, _ARRAYS, _CARD})
    if foreign or FORMAT not in (folder / _MODEL).read_text(errors="replace")[:100]:
        raise StorageError(
            f"{folder} holds files that are not a tagkin model ({', '.join(foreign) or _MODEL}). "
            "It is left alone; choose another folder."
        )
    if not overwrite:
        raise StorageError(
            f"{folder} holds a model already. Pass overwrite=True to replace it, or choose "
            "another folder."
        )


def _write(folder: Path, model: Any, content: Any, arrays: dict[str, np.ndarray]) -> None:
    safetensors.numpy.save_file(arrays, folder / _ARRAYS)
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "tagkin_version": tagkin.__version__,
        "arrays_sha256": _sha256(folder / _ARRAYS),
        "content_sha256": _content_sha256(content),
        "content": content,
    }
    (folder / _MODEL).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    (folder / _CARD).write_text(_card(model, arrays))
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _put_in_place(fresh: Path, folder: Path) -> None:
    """Rename the finished folder to its name; a model that was there goes only after that."""
    if not folder.exists() or not any(folder.iterdir()):
        fresh.replace(folder)
        return
    old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-replaced-"))
    folder.replace(old)
    try:
        fresh.replace(folder)
    except OSError:
        old.replace(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _encode(value: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    """A JSON value for `value`; arrays go to `arrays` under their path."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        return {"$strings": [str(v) for v in value.ravel()]}
    if isinstance(value, np.ndarray) or is_torch_array(value):
        arrays[path] = np.ascontiguousarray(to_numpy(value))
        return {"$array": path}
    if scipy.sparse.issparse(value):
        value = value.tocsr()
        parts = {k: getattr(value, k) for k in ("data", "indices", "indptr")}
        return {"$csr": _encode(parts, path, arrays), "shape": list(value.shape)}
    if isinstance(value, (list, tuple)):
        return [_encode(v, f"{path}.{i}", arrays) for i, v in enumerate(value)]
    if isinstance(value, dict):
        return {str(k): _encode(v, f"{path}.{k}", arrays) for k, v in value.items()}
    if isinstance(value, np.random.RandomState):
        return None  # a generator in use has no seed to write down; the fitted state has all
    name = type(value).__name__
    if _HOMES.get(name) != type(value).__module__:
        raise InvalidInput(
            f"Cannot save {path}: {type(value).__module__}.{name} is not one of tagkin's own "
            "classes. Only those can be loaded again without running code from the folder."
        )
    state = {k: _encode(v, f"{path}.{k}", arrays) for k, v in vars(value).items()}
    return {"$class": name, "state": state}


def _card(model: Any, arrays: dict[str, np.ndarray]) -> str:
    """A page for people: what the model is, what it was made from, how to load it."""
    size = sum(a.nbytes for a in arrays.values()) / 2**20
    parameters = "\n".join(
        f"| `{name}` | {'array' if hasattr(value, 'shape') else f'`{value!r}`'} |"
        for name, value in sorted(model.get_params(deep=False).items())
    )
    facts = "\n".join(f"- {fact}" for fact in model.describe())
    return f"""# {type(model).__name__}

A model of tagkin {tagkin.__version__}, {size:.1f} MiB.

{facts}

```python
import tagkin

model = tagkin.load("path/of/this/folder")
```

| parameter | value |
|---|---|
{parameters}

`{_MODEL}` holds the settings and a checksum of `{_ARRAYS}`, which holds the numbers. Do not
edit either: the model would no longer load.
"""


# --- loading -----------------------------------------------------------------------------


def load(folder: str | os.PathLike[str], *, device: Any = None) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    folder : path
    device : torch device, optional
        Put the model's arrays on it as torch tensors; by default they are NumPy arrays.
    """
    folder = Path(folder)
    document = _read_document(folder)
    path = folder / _ARRAYS
    if not path.is_file():
        raise DamagedModel(f"{folder} is incomplete: {_ARRAYS} is missing. Save the model again.")
    if _sha256(path) != document["arrays_sha256"]:
        raise DamagedModel(
            f"{path} is not as it was saved (its checksum differs): truncated or changed. "
            "Restore it from a copy, or save the model again."
        )
    try:
        arrays = safetensors.numpy.load_file(path)
    except (safetensors.SafetensorError, OSError) as error:
        raise DamagedModel(f"{path} cannot be read: {error}.") from error
    return _decode(document["content"], arrays, _placer(device))


def _read_document(folder: Path) -> dict[str, Any]:
    path = folder / _MODEL
    if not path.is_file():
        found = "it does not exist" if not folder.exists() else f"it holds no {_MODEL}"
        raise StorageError(f"{folder} is not a tagkin model: {found}.")
    try:
        document = json.loads(path.read_text())
    except (ValueError, OSError) as error:
        raise DamagedModel(f"{path} cannot be read ({error}). Save the model again.") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DamagedModel(f"{path} was not written by tagkin.")
    if document.get("format_version") != FORMAT_VERSION:
        raise DamagedModel(
            f"{folder} has model format {document.get('format_version')!r}, written by tagkin "
            f"{document.get('tagkin_version')!r}; this is tagkin {tagkin.__version__}, which "
            f"reads format {FORMAT_VERSION}. Use that version, or fit and save again."
        )
    if _content_sha256(document.get("content")) != document.get("content_sha256"):
        raise DamagedModel(
            f"{path} is not as it was saved (its checksum differs). Restore it from a copy, or "
            "save the model again."
        )
    return document


def _decode(value: Any, arrays: dict[str, np.ndarray], place: Callable[[np.ndarray], Any]) -> Any:
    """The inverse of `_encode`."""
    if isinstance(value, list):
        return [_decode(v, arrays, place) for v in value]
    if not isinstance(value, dict):
        return value
    if "$strings" in value:
        return np.asarray(value["$strings"], dtype=object)
    if "$array" in value:
        if value["$array"] not in arrays:
            raise DamagedModel(f"The array {value['$array']!r} is missing from {_ARRAYS}.")
        return place(arrays[value["$array"]])
    if "$csr" in value:
        parts = _decode(value["$csr"], arrays, lambda array: array)
        return scipy.sparse.csr_array(
            (parts["data"], parts["indices"], parts["indptr"]), shape=value["shape"]
        )
    if "$class" not in value:
        return {k: _decode(v, arrays, place) for k, v in value.items()}
    name = value["$class"]
    if name not in _HOMES:
        raise DamagedModel(f"{name!r} is not a class that tagkin loads.")
    made = object.__new__(getattr(import_module(_HOMES[name]), name))
    made.__dict__.update({k: _decode(v, arrays, place) for k, v in value["state"].items()})
    return made


def _placer(device: Any) -> Callable[[np.ndarray], Any]:
    if device is None:
        return lambda array: array
    try:
        import torch
    except ImportError as error:
        raise MissingExtra(
            "Loading to a device needs torch: pip install 'tagkin[torch]'."
        ) from error
    # indices stay on the host, where they are used
    return lambda a: a if a.dtype.kind in "iu" else torch.from_numpy(a).to(device)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _content_sha256(content: Any) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
