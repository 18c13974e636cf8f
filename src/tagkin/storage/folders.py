"""A model is a folder: arrays as safetensors, everything else as JSON, and a card to read.

Nothing is pickled. Loading builds storable classes and no others (`tagkin.arrays.records`), and
checks all that they hold before anything uses it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from tagkin.arrays.checks import not_fitted
from tagkin.arrays.records import form_of
from tagkin.arrays.rules import Refused
from tagkin.errors import DamagedModel, InvalidInput, MissingExtra, Parameter, StorageError
from tagkin.filesystem import (
    atomic_write,
    check_parent,
    folder_lock,
    is_litter,
    is_scratch,
    sync_folder,
    write_whole,
)
from tagkin.storage.checking import check_model, check_values, is_model
from tagkin.storage.document import (
    APART,
    ARRAYS,
    CARD,
    FORMAT,
    MODEL,
    document_text,
    is_array_file,
    named_file,
    read_document,
)
from tagkin.storage.encoding import Arrays, decode, encode
from tagkin.storage.pipelines import restore_scalers, steps_of
from tagkin.storage.tensors import Mapped, TensorBytes
from tagkin.version import __version__

__all__ = ["check_folder", "load", "save"]

_LOCK = ".saving"
_TRIES = 20  # to read a model that others go on replacing

# --- saving ------------------------------------------------------------------------------


def save(model: Any, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a fitted model to a folder, all of it or nothing.

    Whoever saves to the same folder at the same time waits. Whoever loads from it gets the model
    before or this one, whole. So does everybody after a power failure, or if this process is
    killed; what a killed process leaves, the next save removes.

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
    # before encoding: what was streamed is solved for now
    facts = [fact for part in steps_of(model) for fact in _describe(part)]
    arrays = Arrays()
    content = encode(model, "model", arrays)
    _check_loadable(type(model).__name__, content, arrays)
    summary = model.summary() if hasattr(model, "summary") else None
    card = _card(model, facts, arrays)
    with _as_storage_errors(folder):
        _put(folder, content, arrays, summary, card, overwrite)
    if hasattr(model, "saved_to"):
        model.saved_to(folder)
    return folder


def _describe(part: Any) -> list[str]:
    if hasattr(part, "describe"):
        return list(part.describe())
    return [f"{type(part).__name__} of {part.n_features_in_:,} features."]


def _check_loadable(name: str, content: Any, arrays: Arrays) -> None:
    """Refuse to write what `load` would refuse: nobody would get it back."""
    try:
        check_values(decode(content, arrays.main | arrays.apart))
    except (Refused, DamagedModel) as refusal:
        reason = str(refusal).rstrip(".")
        raise InvalidInput(
            f"This {name} cannot be saved, as it could not be loaded again: {reason}."
        ) from refusal


def check_folder(folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Refuse a folder that `save` would refuse: ask this before a long training.

    Files that systems put into folders (``.DS_Store``, ``Thumbs.db`` and others) count for
    nothing.

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
    except TimeoutError as error:
        raise StorageError(
            f"Another process has been saving to {folder} for minutes. What was there before is "
            "still there; wait until it has finished, or choose another folder."
        ) from error
    except (OSError, RuntimeError, ValueError) as error:
        where = getattr(error, "filename", None)
        reason = getattr(error, "strerror", None) or error
        raise StorageError(
            f"Could not save the model to {folder}: {f'{where}: ' if where else ''}{reason}. "
            "What was there before is still there; free some space or choose another folder."
        ) from error


def _check_contents(folder: Path, overwrite: bool, contents: Path) -> None:
    """Refuse to write to `folder` where something of `contents` is not a model's."""
    with os.scandir(contents) as entries:
        found = {entry.name: entry.is_dir() for entry in entries}
    # what systems leave, and saves that were killed or go on, is nothing to lose
    found = {
        name: is_folder
        for name, is_folder in found.items()
        if is_folder or not (is_litter(name) or _is_left(name))
    }
    if not found:
        return
    foreign = sorted(n for n, is_folder in found.items() if is_folder or n not in (MODEL, CARD))
    if foreign or not _is_document(contents / MODEL):
        raise StorageError(
            f"{folder} holds files that are not a tagkin model "
            f"({', '.join(foreign or sorted(found))}). It is left alone; choose another folder."
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


def _is_left(name: str) -> bool:
    """Whether a file of this name is a part of a model, or was on its way to be one."""
    if is_array_file(name) or name == _LOCK:
        return True
    target = name.removeprefix(".").rpartition("-")[0]
    return is_scratch(name) and (target in (MODEL, CARD) or is_array_file(target))


def _put(
    folder: Path,
    model: Any,
    arrays: Arrays,
    summary: dict[str, Any] | None,
    card: str,
    overwrite: bool,
) -> None:
    """Write a model to its folder; the document, which names the rest, takes its place last."""
    made = not folder.exists()
    check = partial(_check_contents, folder, overwrite, folder)
    try:
        with folder_lock(folder, _LOCK) as alone:
            check()
            before = {path.name for path in folder.iterdir()}
            contents = {ARRAYS: TensorBytes(arrays.main)}
            if arrays.apart:
                contents[APART] = TensorBytes(arrays.apart)
            files = {kind: _said(kind, content) for kind, content in contents.items()}
            try:
                for kind, content in contents.items():
                    _put_arrays(folder / files[kind]["name"], content)
                sync_folder(folder)
                write_whole(folder / MODEL, document_text(model, files, summary), check)
            except BaseException:
                fresh = {file["name"] for file in files.values()} - before
                _remove(folder, fresh, unless_named=True)
                raise
            write_whole(folder / CARD, card.encode())
            _tidy(folder, files, before, alone)
    except BaseException:
        if made:
            with suppress(OSError):  # not empty: somebody else's
                folder.rmdir()
        raise


def _said(kind: str, content: TensorBytes) -> dict[str, Any]:
    """What the document says of a file of arrays."""
    name = f"{kind}-{content.sha256[:16]}.safetensors"
    return {"name": name, "size": content.size, "sha256": content.sha256}


def _put_arrays(path: Path, content: TensorBytes) -> None:
    """Write a file of arrays, unless it is there."""
    try:
        Mapped(path, content.size, content.sha256).check()
    except (FileNotFoundError, DamagedModel):
        with atomic_write(path) as scratch, scratch.open("xb") as file:
            for part in content.parts():
                file.write(part)


def _tidy(folder: Path, files: dict[str, dict[str, Any]], before: set[str], alone: bool) -> None:
    """Remove the arrays of the model before, and what killed saves left."""
    present = {file["name"] for file in files.values()} | {MODEL, CARD, _LOCK}
    # without locks, files may be those of a save that goes on; arrays that were there are not
    left = {name for name in before - present if _is_left(name)}
    if not alone:
        left = {name for name in left if is_array_file(name)}
    _remove(folder, left)


def _remove(folder: Path, names: set[str], *, unless_named: bool = False) -> None:
    """Remove files; those that the document names only where it is known that it does not."""
    if unless_named and (folder / MODEL).exists():
        # a disk may fail when the document has its place already
        text = (folder / MODEL).read_text(encoding="utf-8", errors="replace")
        names = {name for name in names if name not in text}
    for name in names:
        with suppress(OSError):  # open elsewhere, on Windows: the next save removes it
            (folder / name).unlink()


def _card(model: Any, facts: list[str], arrays: Arrays) -> str:
    """A page for people: what the model is, what it was made from, how to load it."""
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

`{MODEL}` holds the settings, and names the files that hold the numbers, with their checksums:
`{ARRAYS}-….safetensors` what every use needs, `{APART}-….safetensors` what only some do (an audit,
a space that goes on learning). Do not edit any of them: the model would no longer load.
"""
    return text.encode("utf-8", "backslashreplace").decode()


# --- loading -----------------------------------------------------------------------------


def load(folder: str | os.PathLike[str], *, device: Any = None) -> Any:
    """Read a model that `save` wrote.

    Its arrays are mapped into memory, read only. All that is loaded is checked first; what is kept
    apart (sums that a space goes on learning from, what an audit reads) at its first use.

    Parameters
    ----------
    folder : path
    device : torch device, optional
        Put the model's arrays on it as torch tensors; by default they are NumPy arrays.
    """
    folder = Path(folder)
    try:
        model = _read(folder)
        check_model(model, folder)
        if device is not None:
            from tagkin.storage.placing import place

            place(model, device)
        model = restore_scalers(model)
        if hasattr(model, "opened_from"):
            model.opened_from(folder)
    except (StorageError, MissingExtra, InvalidInput):
        raise
    except OSError as error:
        raise StorageError(f"{folder} cannot be read: {error.strerror or error}.") from error
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise DamagedModel(
            f"{folder / MODEL} does not describe a model ({error!r:.300}). Save the model again."
        ) from error
    return model


def _read(folder: Path) -> Any:
    """The model, built and not yet checked."""
    document, main, apart = _opened(folder)
    read_later = cache(lambda: {} if apart is None else apart.arrays())
    return decode(document.get("content"), main.arrays(), read_later)


def _opened(folder: Path) -> tuple[dict[str, Any], Mapped, Mapped | None]:
    """The document and the files that it names, of one save: others may go on meanwhile."""
    document = read_document(folder)
    for _ in range(_TRIES):
        try:
            found = [
                None if named is None else Mapped(folder / named[0], *named[1:])
                for named in (named_file(folder, document, kind) for kind in (ARRAYS, APART))
            ]
        except FileNotFoundError as error:
            again = read_document(folder)
            if again == document:
                name = Path(error.filename).name
                raise DamagedModel(f"{folder} is incomplete: {name} is missing.") from error
            document = again
        else:
            main, apart = found
            assert main is not None
            return document, main, apart
    raise StorageError(f"{folder} cannot be read: others go on replacing it. Try again.")
