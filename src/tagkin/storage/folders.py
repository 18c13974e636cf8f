"""Save a model to a folder, and load it: one file with arrays and settings, and a card.

Nothing is pickled. Loading builds only storable classes (`tagkin.records.forms`), and checks
everything in them before it is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tagkin.arrays import on_device
from tagkin.arrays.checks import not_fitted
from tagkin.errors import DamagedModel, InvalidInput, MissingExtra, Parameter, StorageError
from tagkin.filesystem import check_parent, folder_lock, is_litter, is_scratch, write_whole
from tagkin.records.forms import check_record, form_of, is_storable
from tagkin.records.rules import AxisSizes, Refused
from tagkin.storage.encoding import decode, encode
from tagkin.storage.model_file import MODEL, is_model_file, model_bytes, read_model
from tagkin.version import __version__

__all__ = ["check_folder", "load", "save"]

CARD = "README.md"
_LOCK = ".saving"

# --- saving ------------------------------------------------------------------------------


def save(model: object, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a fitted model to a folder, completely or not at all.

    Processes that save to the same folder wait for each other. A process that loads from it gets
    the old or the new model as a whole, even after a power failure or if this process is killed.
    The next save removes the remains of a killed one.

    Parameters
    ----------
    model : a fitted estimator of tagkin
    folder : path
        A new folder. With `overwrite`, an existing model is replaced once the new model is
        complete. A folder with other files is never written to.

    Returns
    -------
    folder : Path

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import tagkin
    >>> model = tagkin.paper.NeighborVoting(2).fit(np.eye(4), np.eye(4, 2))
    >>> folder = tempfile.mkdtemp() + "/model"
    >>> tagkin.save(model, folder).name
    'model'
    """
    name = type(model).__name__
    if not hasattr(model, "describe"):
        raise InvalidInput(
            f"{name} is not a model that tagkin can save: models are tagkin's own estimators. Save "
            "each estimator of a pipeline by itself."
        )
    if not is_dataclass(model) and not any(attribute.endswith("_") for attribute in vars(model)):
        raise not_fitted(f"This {name} is not fitted yet; fit it, then save.")
    folder = check_folder(folder, overwrite=overwrite)
    facts = model.describe()  # before encoding, because this solves a streamed space
    arrays: dict[str, np.ndarray] = {}
    settings = encode(model, "model", arrays)
    try:
        check_record(decode(settings, arrays), AxisSizes(), "model")
    except (Refused, DamagedModel) as refusal:
        reason = str(refusal).rstrip(".")
        raise InvalidInput(
            f"This {name} cannot be saved, because it could not be loaded again: {reason}."
        ) from refusal
    data = model_bytes(settings, arrays)
    with _as_storage_errors(folder):
        _write_model(folder, data, _card(model, facts, len(data)), overwrite)
    return folder


def check_folder(folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Reject a folder that `save` would reject, before a long training; return its path.

    Files that systems put into folders (``.DS_Store``, ``Thumbs.db`` and others) do not count.

    Parameters
    ----------
    folder : path
        The folder to write a model to.
    overwrite : bool, default False
        Whether `save` may replace a model.
    """
    with _as_storage_errors(folder):
        path = Path(folder).resolve()
        check_parent(path)
        if path.exists() and not path.is_dir():
            raise StorageError(
                f"{folder} is a file; a model is saved as a folder. Choose another name."
            )
        if path.exists():
            _check_contents(Path(folder), overwrite, path)
    return path


@contextmanager
def _as_storage_errors(folder: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except TimeoutError as error:
        raise StorageError(
            f"Another process has been saving to {folder} for minutes. Nothing was changed; wait "
            "until it has finished, or choose another folder."
        ) from error
    except (OSError, RuntimeError, ValueError) as error:
        where = getattr(error, "filename", None)
        reason = getattr(error, "strerror", None) or error
        raise StorageError(
            f"Could not save the model to {folder}: {f'{where}: ' if where else ''}{reason}. "
            "Nothing was changed; free some space or choose another folder."
        ) from error


def _check_contents(folder: Path, overwrite: bool, contents: Path) -> None:
    """Reject a folder whose `contents` are not a model's; error messages name the `folder`."""
    with os.scandir(contents) as entries:
        is_folder = {entry.name: entry.is_dir() for entry in entries}
    # files of the system, and of saves that were killed or are running, may be lost
    names = sorted(n for n in is_folder if is_folder[n] or not (is_litter(n) or _is_remains(n)))
    if not names:
        return
    foreign = [name for name in names if is_folder[name] or name not in (MODEL, CARD)]
    if foreign or not is_model_file(contents / MODEL):
        raise StorageError(
            f"{folder} holds files that are not a tagkin model ({', '.join(foreign or names)}). "
            "Nothing was changed; choose another folder, or move them away."
        )
    if not overwrite:
        raise StorageError(
            f"{folder} holds a model already. Pass ",
            Parameter("overwrite", True),
            " to replace it, or choose another folder.",
        )


def _is_remains(name: str) -> bool:
    """Whether this is the name of a file that a save has not finished, or of its lock."""
    target = name.removeprefix(".").rpartition("-")[0]
    return name == _LOCK or (is_scratch(name) and target in (MODEL, CARD))


def _write_model(folder: Path, data: bytes, card: str, overwrite: bool) -> None:
    """Write a model to its folder, and remove the remains of killed saves."""
    is_new = not folder.exists()
    check = partial(_check_contents, folder, overwrite, folder)
    try:
        with folder_lock(folder, _LOCK) as alone:
            check()
            write_whole(folder / MODEL, data, check)
            write_whole(folder / CARD, card.encode())
            # without locks, they may belong to a save that is running
            for path in folder.iterdir() if alone else ():
                if _is_remains(path.name) and path.name != _LOCK:
                    path.unlink()
    except BaseException:
        if is_new:
            with suppress(OSError):  # it holds a model, or files of another process
                folder.rmdir()
        raise


def _card(model: object, facts: list[str], n_bytes: int) -> str:
    """Return a page that describes the model, its parameters and how to load it."""
    values = {name: getattr(model, name) for name in sorted(form_of(type(model)).parameters)}
    parameters = "\n".join(
        f"| `{name}` | {'array' if hasattr(value, 'shape') else f'`{value!r}`'} |"
        for name, value in values.items()
    )
    listed = "\n".join(f"- {fact}" for fact in facts)
    text = f"""# {type(model).__name__}

A model of tagkin {__version__}, {n_bytes / 2**20:.1f} MiB.

{listed}

```python
import tagkin

model = tagkin.load("path/of/this/folder")
```

| parameter | value |
|---|---|
{parameters}

`{MODEL}` has the numbers, and the settings as JSON in its array `settings`. Do not edit it: the
model would no longer load.
"""
    return text.encode("utf-8", "backslashreplace").decode()


# --- loading -----------------------------------------------------------------------------


def load(folder: str | os.PathLike[str], *, device: object = None) -> Any:  # the class is stored
    """Read a model that `save` wrote. Everything is checked first.

    Parameters
    ----------
    folder : path
    device : torch device, optional
        Put the model's arrays on it as torch tensors; by default they are NumPy arrays.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import tagkin
    >>> model = tagkin.paper.NeighborVoting(2).fit(np.eye(4), np.eye(4, 2))
    >>> folder = tagkin.save(model, tempfile.mkdtemp() + "/model")
    >>> tagkin.load(folder).n_labels_
    2
    """
    folder = Path(folder)
    try:
        model = decode(*read_model(folder))
        if not hasattr(model, "describe"):
            raise DamagedModel(f"{folder} holds {type(model).__name__}, which is not a model.")
        check_record(model, AxisSizes(), "model")
        if device is not None:
            _place(model, device)
    except (StorageError, MissingExtra, InvalidInput):
        raise
    except Refused as refusal:
        raise DamagedModel(
            f"{folder} is damaged: {refusal}. Restore it from a copy, or save the model again."
        ) from refusal
    except OSError as error:
        raise StorageError(f"{folder} cannot be read: {error.strerror or error}.") from error
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise DamagedModel(
            f"{folder / MODEL} does not describe a model ({error!r:.300}). Save the model again."
        ) from error
    return model


def _place(value: object, device: object) -> object:
    """Return a value with its arrays as torch tensors on a device. Records change in place.

    Indices and fields whose rule says so stay on the host, where they are used.
    """
    if isinstance(value, np.ndarray) and value.dtype.kind not in "iuO":
        return on_device(value, device)
    if isinstance(value, list):
        return [_place(entry, device) for entry in value]
    if isinstance(value, dict):
        return {key: _place(entry, device) for key, entry in value.items()}
    if is_storable(type(value)):
        rules, state = form_of(type(value)).rules, vars(value)
        for name in [name for name in state if name in rules and not rules[name].on_host]:
            state[name] = _place(state[name], device)
    return value
