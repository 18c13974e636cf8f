"""The file of a model: arrays in the safetensors format, with the settings as JSON among them.

It is one file, so replacing it replaces the whole model in one step.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tagkin.errors import DamagedModel, InvalidInput, StorageError
from tagkin.version import __version__

__all__ = ["MODEL", "is_model_file", "model_bytes", "read_checksum", "read_model"]

FORMAT = "tagkin-model"
FORMAT_VERSION = "7"

MODEL = "model.safetensors"
_SETTINGS = "settings"  # array with the bytes of the JSON
_LONGEST_HEADER = 100_000_000  # bytes, as in safetensors


def model_bytes(settings: object, arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the bytes of a model's file, given a JSON value and its arrays."""
    # file names that are not UTF-8 contain surrogates
    text = json.dumps(settings, ensure_ascii=False).encode("utf-8", "surrogatepass")
    contents = {**arrays, _SETTINGS: np.frombuffer(text, np.uint8)}
    about = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "tagkin_version": __version__,
        "sha256": _checksum(contents),
    }
    try:
        return save(contents, about)
    except SafetensorError as error:
        dtypes = ", ".join(sorted({str(array.dtype) for array in arrays.values()}))
        raise InvalidInput(f"Cannot save arrays of {dtypes}: {error}.") from error


def read_model(folder: Path) -> tuple[object, dict[str, np.ndarray]]:
    """Return the JSON value and the arrays of a model, if they are as they were saved."""
    path = folder / MODEL
    with _open_model(folder) as file:
        about = _read_about(file)
        file.seek(0)
        data = file.read()
    if about.get("format") != FORMAT:
        raise DamagedModel(f"{path} cannot be read: it is damaged, or not a model of tagkin.")
    if about.get("format_version") != FORMAT_VERSION:
        raise DamagedModel(
            f"{folder} has model format {about.get('format_version')!r:.80}, written by tagkin "
            f"{about.get('tagkin_version')!r:.80}; this is tagkin {__version__}, which reads "
            f"format {FORMAT_VERSION!r}. Fit and save the model again."
        )
    try:
        arrays = load(data)
        if _checksum(arrays) != about.get("sha256"):
            raise DamagedModel(
                f"{path} is not as it was saved: its checksum differs. Restore it from a copy, or "
                "save the model again."
            )
        _check_flags(arrays)
        text = arrays.pop(_SETTINGS, np.empty(0)).tobytes().decode("utf-8", "surrogatepass")
        return json.loads(text), arrays
    except KeyError as error:
        raise _unreadable(path, f"it has numbers of the type {error}") from error
    except (SafetensorError, ValueError, RecursionError) as error:
        raise _unreadable(path, str(error).rstrip(".")) from error


def read_checksum(folder: Path) -> str:
    """Return the SHA-256 of a model's arrays and settings, as its file says."""
    with _open_model(folder) as file:
        return str(_read_about(file).get("sha256"))


def is_model_file(path: Path) -> bool:
    """Whether this is the file of a model, of any version."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _read_about(file).get("format") == FORMAT


def _read_about(file: BinaryIO) -> dict[str, object]:
    """Return what the header of a safetensors file says about it; empty if it says nothing."""
    size = int.from_bytes(file.read(8), "little")
    try:
        header = json.loads(file.read(min(size, _LONGEST_HEADER)))
    except (ValueError, RecursionError):
        return {}
    about = header.get("__metadata__") if isinstance(header, dict) else None
    return about if isinstance(about, dict) else {}


def _open_model(folder: Path) -> BinaryIO:
    """Open the file of a model for reading, if it is a regular file in the folder.

    A link may lead anywhere, a pipe may never end, and opening a device may do something.
    """
    path = folder / MODEL
    if not folder.exists():
        raise StorageError(f"{folder} is not a tagkin model: it does not exist.")
    if not os.path.lexists(path):
        raise StorageError(f"{folder} is not a tagkin model: it holds no {MODEL}.")
    refusal = DamagedModel(f"{path} is not a regular file.")
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise refusal
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    file = open(path, "rb", opener=lambda name, also: os.open(name, also | flags))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise refusal
    return file


def _checksum(arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _check_flags(arrays: Mapping[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        if array.dtype == bool and array.view(np.uint8).max(initial=0) > 1:
            raise ValueError(f"{name!r} has flags that are neither 0 nor 1")


def _unreadable(path: Path, reason: str) -> DamagedModel:
    return DamagedModel(f"{path} cannot be read: {reason}. Save the model again.")
