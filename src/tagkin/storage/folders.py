"""A model is a folder: arrays as safetensors, everything else as JSON, and a card to read.

Nothing is pickled. What can be stored is declared in `tagkin.storage.schema`; loading builds those
classes and no others.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from tagkin.errors import DamagedModel, InvalidInput, MissingExtra, StorageError
from tagkin.filesystem import aside_prefix, check_parent, is_litter, put_folder, sync
from tagkin.storage.encoding import decode, encode
from tagkin.storage.schema import stored_form
from tagkin.version import __version__

__all__ = ["check_folder", "load", "save"]

FORMAT = "tagkin-model"
FORMAT_VERSION = 1

_MODEL, _ARRAYS, _CARD = "model.json", "arrays.safetensors", "README.md"

# --- saving ------------------------------------------------------------------------------


def save(model: Any, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a fitted model to a folder, all of it or nothing.

    Parameters
    ----------
    model : a fitted estimator of tagkin, or a scikit-learn Pipeline of such
    folder : path
        Made anew. An existing model is replaced only with `overwrite`, when the new one is
        complete; a folder with anything else in it never.

    Returns
    -------
    folder : Path
    """
    for part in _parts(model):
        name, form = type(part).__name__, stored_form(part)
        if form is None or not hasattr(part, "describe"):
            raise InvalidInput(f"{name} is not a model that tagkin can save.")
        if not any(attribute.endswith("_") for attribute in vars(part)):
            raise NotFittedError(f"This {name} is not fitted yet; fit it, then save.")
    folder = check_folder(folder, overwrite=overwrite)
    # before encoding: what was streamed is solved for now
    facts = [fact for part in _parts(model) for fact in part.describe()]
    arrays: dict[str, np.ndarray] = {}
    content = encode(model, "model", arrays)
    with _as_storage_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=folder.parent, prefix=f".{folder.name}-", ignore_cleanup_errors=True
        ) as scratch:
            fresh = Path(scratch) / folder.name
            fresh.mkdir()
            _write(fresh, content, arrays, _card(model, facts, arrays))
            put_folder(fresh, folder, partial(_check_contents, folder, overwrite))
    form = stored_form(model)
    if form is not None and form.told_its_folder:
        model.saved_to(folder)
    return folder


def _parts(model: Any) -> list[Any]:
    """The steps of a pipeline, or the model itself."""
    if not isinstance(model, Pipeline):
        return [model]
    return [step for _, step in model.steps]


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
        model = decode(document.get("content"), arrays, device)
    except (StorageError, MissingExtra, InvalidInput):
        raise
    except OSError as error:
        raise StorageError(f"{folder} cannot be read: {error.strerror or error}.") from error
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise DamagedModel(
            f"{folder / _MODEL} does not describe a model ({error!r}). Save the model again."
        ) from error
    if not all(hasattr(part, "describe") for part in _parts(model)):
        raise DamagedModel(f"{folder} holds {type(model).__name__}, which is not a model.")
    form = stored_form(model)
    if form is not None and form.told_its_folder:
        model.opened_from(folder)
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


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _content_sha256(content: Any) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
