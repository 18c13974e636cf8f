"""Save a model to a folder, and load it: arrays as safetensors, the rest as JSON, and a card.

Nothing is pickled. Loading builds only storable classes (`tagkin.records.forms`), and checks
everything in them before it is used.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from tagkin.arrays.checks import not_fitted
from tagkin.errors import DamagedModel, InvalidInput, MissingExtra, Parameter, StorageError
from tagkin.filesystem import (
    check_parent,
    folder_lock,
    is_litter,
    is_scratch,
    sync_folder,
    write_whole,
)
from tagkin.records.forms import form_of
from tagkin.records.rules import Refused
from tagkin.storage.document import (
    APART,
    ARRAYS,
    CARD,
    FORMAT,
    MODEL,
    NamedFile,
    document_text,
    is_array_file,
    named_file,
    read_document,
)
from tagkin.storage.encoding import Arrays, decode, encode
from tagkin.storage.storable_models import (
    check_model,
    check_values,
    is_model,
    place,
    restore_scalers,
    steps_of,
)
from tagkin.storage.tensors import ArrayFile, array_bytes
from tagkin.version import __version__

__all__ = ["check_folder", "load", "save"]

_LOCK = ".saving"
_TRIES = 20  # to read a model that other processes keep replacing
_SAME = 3  # times that a file must be missing: a process may replace a model and put it back

# --- saving ------------------------------------------------------------------------------


def save(model: object, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a fitted model to a folder, completely or not at all.

    Processes that save to the same folder wait for each other. A process that loads from it gets
    the old or the new model as a whole, even after a power failure or if this process is killed.
    The next save removes the remains of a killed one.

    Parameters
    ----------
    model : a fitted estimator of tagkin, or a scikit-learn Pipeline of such estimators
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
    >>> model = tagkin.NeighborVoting(2).fit(np.eye(4), np.eye(4, 2))
    >>> folder = tempfile.mkdtemp() + "/model"
    >>> tagkin.save(model, folder).name
    'model'
    """
    for part in steps_of(model):
        name = type(part).__name__
        if not is_model(part):
            raise InvalidInput(
                f"{name} is not a model that tagkin can save. A pipeline can have tagkin's "
                "estimators and StandardScaler as its steps. Apply other steps to the features "
                "yourself, before fit and before suggest."
            )
        is_fitted = is_dataclass(part) or any(attribute.endswith("_") for attribute in vars(part))
        if not is_fitted:
            raise not_fitted(f"This {name} is not fitted yet; fit it, then save.")
    folder = check_folder(folder, overwrite=overwrite)
    # before encoding, because this solves a streamed space
    facts = [fact for part in steps_of(model) for fact in _describe(part)]
    arrays = Arrays()
    content = encode(model, "model", arrays)
    _check_loadable(type(model).__name__, content, arrays)
    card = _card(model, facts, arrays)
    with _as_storage_errors(folder):
        _write_model(folder, content, arrays, card, overwrite)
    if hasattr(model, "remember_paths"):
        model.remember_paths(folder)
    return folder


def _describe(part: object) -> list[str]:
    if hasattr(part, "describe"):
        return list(part.describe())
    return [f"{type(part).__name__} of {getattr(part, 'n_features_in_', 0):,} features."]


def _check_loadable(name: str, content: object, arrays: Arrays) -> None:
    """Refuse to save a model that `load` would reject."""
    try:
        check_values(decode(content, arrays.main | arrays.apart))
    except (Refused, DamagedModel) as refusal:
        reason = str(refusal).rstrip(".")
        raise InvalidInput(
            f"This {name} cannot be saved, because it could not be loaded again: {reason}."
        ) from refusal


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
    names = sorted(n for n in is_folder if is_folder[n] or not (is_litter(n) or _is_own_file(n)))
    if not names:
        return
    foreign = [name for name in names if is_folder[name] or name not in (MODEL, CARD)]
    if foreign or not _is_document(contents / MODEL):
        raise StorageError(
            f"{folder} holds files that are not a tagkin model ({', '.join(foreign or names)}). "
            "Nothing was changed; choose another folder."
        )
    if not overwrite:
        raise StorageError(
            f"{folder} holds a model already. Pass ",
            Parameter("overwrite", True),
            " to replace it, or choose another folder.",
        )


def _is_document(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return FORMAT.encode() in file.read(100)


def _is_own_file(name: str) -> bool:
    """Whether this is the name of a model's file, or of a file that a save has not finished."""
    if is_array_file(name) or name == _LOCK:
        return True
    target = name.removeprefix(".").rpartition("-")[0]
    return is_scratch(name) and (target in (MODEL, CARD) or is_array_file(target))


def _write_model(folder: Path, model: object, arrays: Arrays, card: str, overwrite: bool) -> None:
    """Write a model to its folder; the document, which names the other files, comes last."""
    is_new = not folder.exists()
    check = partial(_check_contents, folder, overwrite, folder)
    try:
        with folder_lock(folder, _LOCK) as alone:
            check()
            before = {path.name for path in folder.iterdir()}
            contents = {ARRAYS: array_bytes(arrays.main)}
            if arrays.apart:
                contents[APART] = array_bytes(arrays.apart)
            files = {kind: _file_entry(kind, content) for kind, content in contents.items()}
            try:
                for kind, content in contents.items():
                    _write_arrays(folder, files[kind], content)
                sync_folder(folder)
                write_whole(folder / MODEL, document_text(model, files), check)
            except BaseException:
                fresh = {file["name"] for file in files.values()} - before
                if (folder / MODEL).exists():
                    # a disk may fail after the document was written
                    text = (folder / MODEL).read_text(encoding="utf-8", errors="replace")
                    fresh = {name for name in fresh if name not in text}
                _remove(folder, fresh)
                raise
            write_whole(folder / CARD, card.encode())
            _tidy(folder, files, before, alone)
    except BaseException:
        if is_new:
            with suppress(OSError):  # another process has written to it
                folder.rmdir()
        raise


def _file_entry(kind: str, content: bytes) -> NamedFile:
    """Return the entry of a file of arrays in the document."""
    digest = hashlib.sha256(content).hexdigest()
    return {
        "name": f"{kind}-{digest[:16]}.safetensors",
        "size": len(content),
        "sha256": digest,
    }


def _write_arrays(folder: Path, file: NamedFile, content: bytes) -> None:
    """Write a file of arrays, unless it exists."""
    path = folder / file["name"]
    try:
        ArrayFile(path, file["size"], file["sha256"]).check()
    except (FileNotFoundError, DamagedModel):
        write_whole(path, content)


def _tidy(folder: Path, files: Mapping[str, NamedFile], before: set[str], alone: bool) -> None:
    """Remove the arrays of the old model, and the remains of killed saves."""
    present = {file["name"] for file in files.values()} | {MODEL, CARD, _LOCK}
    # without locks, other files may belong to a save that is running
    left = {name for name in before - present if _is_own_file(name)}
    if not alone:
        left = {name for name in left if is_array_file(name)}
    _remove(folder, left)


def _remove(folder: Path, names: set[str]) -> None:
    for name in names:
        with suppress(OSError):  # if it is open on Windows, the next save removes it
            (folder / name).unlink()


def _card(model: object, facts: list[str], arrays: Arrays) -> str:
    """Return a page that describes the model, its parameters and how to load it."""
    values = {name: getattr(model, name) for name in sorted(form_of(type(model)).parameters)}
    parameters = "\n".join(
        f"| `{name}` | {'array' if hasattr(value, 'shape') else f'`{value!r}`'} |"
        for name, value in values.items()
    )
    listed = "\n".join(f"- {fact}" for fact in facts)
    text = f"""# {type(model).__name__}

A model of tagkin {__version__}, {arrays.n_bytes / 2**20:.1f} MiB.

{listed}

```python
import tagkin

model = tagkin.load("path/of/this/folder")
```

| parameter | value |
|---|---|
{parameters}

`{MODEL}` has the settings, and the names and checksums of the files that hold the numbers:
`{ARRAYS}-….safetensors` for every use, and `{APART}-….safetensors` for some uses only (an audit, or
adding images to a space). Do not edit these files: the model would no longer load.
"""
    return text.encode("utf-8", "backslashreplace").decode()


# --- loading -----------------------------------------------------------------------------


def load(folder: str | os.PathLike[str], *, device: object = None) -> Any:  # the class is stored
    """Read a model that `save` wrote.

    Everything is checked first, except arrays that only some uses need (sums for adding images to a
    space, probabilities for an audit). These are read and checked at their first use.

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
    >>> model = tagkin.NeighborVoting(2).fit(np.eye(4), np.eye(4, 2))
    >>> folder = tagkin.save(model, tempfile.mkdtemp() + "/model")
    >>> tagkin.load(folder).n_labels_
    2
    """
    folder = Path(folder)
    try:
        model = _read(folder)
        check_model(model, folder)
        if device is not None:
            place(model, device)
        model = restore_scalers(model)
        if hasattr(model, "find_photographs"):
            model.find_photographs(folder)
    except (StorageError, MissingExtra, InvalidInput):
        raise
    except OSError as error:
        raise StorageError(f"{folder} cannot be read: {error.strerror or error}.") from error
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise DamagedModel(
            f"{folder / MODEL} does not describe a model ({error!r:.300}). Save the model again."
        ) from error
    return model


def _read(folder: Path) -> Any:  # see `load`
    """Build the model without checking it."""
    document, main, apart = _open(folder)
    read_later = cache(lambda: {} if apart is None else apart.arrays())
    return decode(document.get("content"), main.arrays(), read_later)


def _open(folder: Path) -> tuple[dict[str, object], ArrayFile, ArrayFile | None]:
    """Open the document and the files that it names, all of one save."""
    document, n_same = read_document(folder), 0
    for _ in range(_TRIES):
        try:
            files = [
                None
                if named is None
                else ArrayFile(folder / named["name"], named["size"], named["sha256"])
                for named in (named_file(folder, document, kind) for kind in (ARRAYS, APART))
            ]
        except FileNotFoundError as error:
            again = read_document(folder)
            n_same = n_same + 1 if again == document else 0
            if n_same == _SAME:
                name = Path(error.filename).name
                raise DamagedModel(f"{folder} is incomplete: {name} is missing.") from error
            document = again
        else:
            main, apart = files
            assert main is not None
            return document, main, apart
    raise StorageError(f"{folder} cannot be read: other processes keep replacing it. Try again.")
