"""A model is a folder: arrays as safetensors, everything else as JSON, and a card to read.

Nothing is pickled. What can be stored is listed below by name; loading builds those classes
and no others.
"""

from __future__ import annotations

import glob
import hashlib
import inspect
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
import scipy.sparse
from array_api_compat import is_torch_array
from sklearn.exceptions import NotFittedError

from tagkin.arrays import on_device, to_numpy
from tagkin.errors import DamagedModel, InvalidInput, MissingExtra, StorageError
from tagkin.filesystem import aside_prefix, check_parent, is_litter, put_folder, sync
from tagkin.version import __version__

__all__ = ["check_folder", "load", "save"]

FORMAT = "tagkin-model"
FORMAT_VERSION = 1

_MODEL, _ARRAYS, _CARD = "model.json", "arrays.safetensors", "README.md"

# Where each storable class lives. The names are part of the format.
_HOMES = {
    "Annotator": "tagkin.annotator.annotator",
    "ArcCosine": "tagkin.kernels.arc_cosine",
    "Chi2View": "tagkin.space.chi2_view",
    "ExactNeighbors": "tagkin.neighbors.exact",
    "ExpChi2": "tagkin.kernels.exp_chi2",
    "FaissNeighbors": "tagkin.neighbors.faiss",
    "IndicatorView": "tagkin.space.views",
    "LabelCalibrator": "tagkin.calibration.calibrator",
    "LandmarkMap": "tagkin.space.landmarks",
    "Landmarks": "tagkin.space.landmarks",
    "Linear": "tagkin.kernels.linear",
    "LinearSVM": "tagkin.transfer.linear",
    "Moments": "tagkin.space.moments",
    "NeighborVoting": "tagkin.transfer.voting",
    "OntologyView": "tagkin.labels.ontology",
    "Projection": "tagkin.space.solution",
    "RBF": "tagkin.kernels.rbf",
    "RidgeTransfer": "tagkin.transfer.linear",
    "SemanticSpace": "tagkin.space.semantic_space",
    "Setting": "tagkin.denoising.trials",
    "TagDenoiser": "tagkin.denoising.denoiser",
    "TagProp": "tagkin.transfer.tagprop",
    "TagRelevance": "tagkin.transfer.voting",
    "TwoPassKNN": "tagkin.transfer.twopass",
    "Vocabulary": "tagkin.labels.vocabulary",
    "WordVectorView": "tagkin.labels.word_view",
    "WordVectors": "tagkin.lexicons.word_vectors",
}

# Classes that version 0.1 stored under another name.
_FORMERLY = {"Recipe": "Setting"}


# --- saving ------------------------------------------------------------------------------


def save(model: Any, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a fitted model to a folder, all of it or nothing.

    Parameters
    ----------
    model : a fitted estimator of tagkin
    folder : path
        Made anew. An existing model is replaced only with `overwrite`, when the new one is
        complete; a folder with anything else in it never.

    Returns
    -------
    folder : Path
    """
    name = type(model).__name__
    if _HOMES.get(name) != type(model).__module__ or not hasattr(model, "describe"):
        raise InvalidInput(f"{name} is not a model that tagkin can save.")
    if not any(attribute.endswith("_") for attribute in vars(model)):
        raise NotFittedError(f"This {name} is not fitted yet; fit it, then save.")
    folder = check_folder(folder, overwrite=overwrite)
    facts = model.describe()  # before encoding: what was streamed is solved for now
    arrays: dict[str, np.ndarray] = {}
    content = _encode(model, "model", arrays)
    with _as_storage_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=folder.parent, prefix=f".{folder.name}-", ignore_cleanup_errors=True
        ) as scratch:
            fresh = Path(scratch) / folder.name
            fresh.mkdir()
            _write(fresh, content, arrays, _card(model, facts, arrays))
            put_folder(fresh, folder, partial(_check_contents, folder, overwrite))
    if hasattr(model, "_saved_to"):
        model._saved_to(folder)
    return folder


def check_folder(folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Refuse a folder that `save` would refuse: ask this before a long training.

    Files that systems put into folders (``.DS_Store``, ``Thumbs.db`` and others) count for
    nothing, and go with the model that is replaced.

    Returns
    -------
    folder : Path
        Where the model will be.
    """
    with _as_storage_errors(folder):
        found = Path(folder).resolve()
        check_parent(found)
        if found.exists() and not found.is_dir():
            raise StorageError(
                f"{folder} is a file; a model is saved as a folder. Choose another name."
            )
        if found.exists():
            _check_contents(Path(folder), overwrite, found)
    return found


@contextmanager
def _as_storage_errors(folder: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except (OSError, RuntimeError, ValueError, safetensors.SafetensorError) as error:
        where = getattr(error, "filename", None)
        reason = getattr(error, "strerror", None) or error
        raise StorageError(
            f"Could not save the model to {folder}: {f'{where}: ' if where else ''}{reason}. "
            "What was there before is still there; free some space or choose another folder."
        ) from error


def _check_contents(folder: Path, overwrite: bool, contents: Path) -> None:
    """Refuse to write to `folder` where something of `contents` would be lost."""
    found = {path.name: path.is_file() for path in contents.iterdir()}
    found = {name: is_file for name, is_file in found.items() if not (is_file and is_litter(name))}
    if not found:
        return
    ours = {_MODEL, _ARRAYS, _CARD}
    foreign = sorted(name for name, is_file in found.items() if name not in ours or not is_file)
    model = contents / _MODEL
    written = (
        model.is_file() and FORMAT in model.read_text(encoding="utf-8", errors="replace")[:100]
    )
    if foreign or not written:
        raise StorageError(
            f"{folder} holds files that are not a tagkin model "
            f"({', '.join(foreign or sorted(found))}). It is left alone; choose another folder."
        )
    if not overwrite:
        raise StorageError(
            f"{folder} holds a model already. Pass overwrite=True to replace it, or choose "
            "another folder."
        )


def _write(folder: Path, content: Any, arrays: dict[str, np.ndarray], card: str) -> None:
    safetensors.numpy.save_file(arrays, folder / _ARRAYS)
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "tagkin_version": __version__,
        "arrays_sha256": _sha256(folder / _ARRAYS),
        "content_sha256": _content_sha256(content),
        "content": content,
    }
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    # a file name that is not UTF-8 holds surrogates, which JSON has escapes for
    (folder / _MODEL).write_bytes(text.encode("utf-8", "backslashreplace"))
    (folder / _CARD).write_text(card, encoding="utf-8")
    # safetensors lets nobody else read what it writes; a model is a file like any other
    shutil.copymode(folder / _MODEL, folder / _ARRAYS)
    for path in folder.iterdir():
        sync(path)


def _encode(value: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
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
        return {"$csr": _encode(parts, path, arrays), "shape": list(value.shape)}
    if isinstance(value, (list, tuple)):
        return [_encode(v, f"{path}.{i}", arrays) for i, v in enumerate(value)]
    if isinstance(value, dict) and any(str(k).startswith("$") for k in value):
        # a user's own key may look like one of ours
        return {"$items": [[k, _encode(v, f"{path}.{k}", arrays)] for k, v in value.items()]}
    if isinstance(value, dict):
        return {str(k): _encode(v, f"{path}.{k}", arrays) for k, v in value.items()}
    if isinstance(value, np.random.RandomState):
        return None  # a generator in use has no seed to write down; the fitted state has all
    if getattr(value, "is_resource", False):
        return None  # read from files of this machine; the fitted state has what was taken from it
    name = type(value).__name__
    if _HOMES.get(name) != type(value).__module__:
        raise InvalidInput(
            f"Cannot save {path}: {type(value).__module__}.{name} is not one of tagkin's own "
            "classes. Only those can be loaded again without running code from the folder."
        )
    left_out = getattr(value, "_not_stored", ())  # what is made again from the rest
    state = {
        k: _encode(v, f"{path}.{k}", arrays) for k, v in vars(value).items() if k not in left_out
    }
    return {"$class": name, "state": state}


def _card(model: Any, facts: list[str], arrays: dict[str, np.ndarray]) -> str:
    """A page for people: what the model is, what it was made from, how to load it."""
    size = sum(a.nbytes for a in arrays.values()) / 2**20
    parameters = "\n".join(
        f"| `{name}` | {'array' if hasattr(value, 'shape') else f'`{value!r}`'} |"
        for name, value in sorted(model.get_params(deep=False).items())
    )
    listed = "\n".join(f"- {fact}" for fact in facts)
    return f"""# {type(model).__name__}

A model of tagkin {__version__}, {size:.1f} MiB.

{listed}

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
    try:
        document = _read_document(folder)
        arrays = _read_arrays(folder / _ARRAYS, document.get("arrays_sha256"))
        model = _decode(document.get("content"), arrays, device)
    except (StorageError, MissingExtra, InvalidInput):
        raise
    except OSError as error:
        raise StorageError(f"{folder} cannot be read: {error.strerror or error}.") from error
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise DamagedModel(
            f"{folder / _MODEL} does not describe a model ({error!r}). Save the model again."
        ) from error
    if not hasattr(model, "describe"):
        raise DamagedModel(f"{folder} holds {type(model).__name__}, which is not a model.")
    if hasattr(model, "_opened_from"):
        model._opened_from(folder)
    return model


def _read_document(folder: Path) -> dict[str, Any]:
    path = folder / _MODEL
    if not folder.exists():
        beside = folder.absolute().parent.glob(glob.escape(aside_prefix(folder)) + "*")
        aside = sorted((p.stat().st_mtime, p) for p in beside if (p / _MODEL).is_file())
        hint = f" A save was interrupted: rename {aside[-1][1]} back to it." if aside else ""
        raise StorageError(f"{folder} is not a tagkin model: it does not exist.{hint}")
    if not path.is_file():
        raise StorageError(f"{folder} is not a tagkin model: it holds no {_MODEL}.")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DamagedModel(f"{path} cannot be read ({error}). Save the model again.") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DamagedModel(f"{path} was not written by tagkin.")
    if document.get("format_version") != FORMAT_VERSION:
        raise DamagedModel(
            f"{folder} has model format {document.get('format_version')!r}, written by tagkin "
            f"{document.get('tagkin_version')!r}; this is tagkin {__version__}, which "
            f"reads format {FORMAT_VERSION}. Use that version, or fit and save again."
        )
    if _content_sha256(document.get("content")) != document.get("content_sha256"):
        raise DamagedModel(
            f"{path} is not as it was saved (its checksum differs). Restore it from a copy, or "
            "save the model again."
        )
    return document


def _read_arrays(path: Path, checksum: Any) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise DamagedModel(f"{path.parent} is incomplete: {path.name} is missing.")
    if _sha256(path) != checksum:
        raise DamagedModel(
            f"{path} is not as it was saved (its checksum differs): truncated or changed. "
            "Restore it from a copy, or save the model again."
        )
    try:
        return safetensors.numpy.load_file(path)
    except safetensors.SafetensorError as error:
        raise DamagedModel(f"{path} cannot be read: {error}.") from error


def _decode(value: Any, arrays: dict[str, np.ndarray], device: Any) -> Any:
    """The inverse of `_encode`."""
    if isinstance(value, list):
        return [_decode(v, arrays, device) for v in value]
    if not isinstance(value, dict):
        return value
    if "$strings" in value:
        return np.asarray(value["$strings"], dtype=object)
    if "$array" in value:
        array = arrays[value["$array"]]
        # indices stay on the host, where they are used
        return array if device is None or array.dtype.kind in "iu" else on_device(array, device)
    if "$csr" in value:
        parts = _decode(value["$csr"], arrays, None)
        return scipy.sparse.csr_array(
            (parts["data"], parts["indices"], parts["indptr"]), shape=value["shape"]
        )
    if "$items" in value:
        return {k: _decode(v, arrays, device) for k, v in value["$items"]}
    if "$class" in value:
        return _build(value["$class"], value["state"], arrays, device)
    return {k: _decode(v, arrays, device) for k, v in value.items()}


def _build(name: str, encoded: Any, arrays: dict[str, np.ndarray], device: Any) -> Any:
    """An object of a listed class, with exactly the attributes that it has."""
    name = _FORMERLY.get(name, name)
    if name not in _HOMES:
        raise DamagedModel(f"{name!r} is not a class that tagkin loads.")
    cls = getattr(import_module(_HOMES[name]), name)
    if hasattr(cls, "_not_stored"):
        device = None  # what is left out is made again on the host
    on_host = getattr(cls, "_on_host", ())  # small arrays that are used there
    state = {k: _decode(v, arrays, None if k in on_host else device) for k, v in encoded.items()}
    if is_dataclass(cls):
        fits = set(state) == {field.name for field in fields(cls)}
    else:
        parameters = set(cls._get_param_names())
        # a model of an earlier version does without the parameters that came later
        of_init, later = inspect.signature(cls.__init__).parameters, getattr(cls, "_later", ())
        state = {name: of_init[name].default for name in later} | state
        fits = parameters <= set(state) and not (set(state) - parameters) & set(dir(cls))
    if not fits:
        raise DamagedModel(f"{name} cannot have the attributes {sorted(state)}.")
    made = object.__new__(cls)
    made.__dict__.update(state)
    return made


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _content_sha256(content: Any) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
