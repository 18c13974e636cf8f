"""Files of named arrays in the safetensors format."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tagkin.errors import DamagedModel, InvalidInput
from tagkin.storage.document import open_model_file

__all__ = ["ArrayFile", "array_bytes"]


def array_bytes(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return arrays, by name, as the bytes of a file."""
    try:
        return save(dict(arrays))
    except SafetensorError as error:
        dtypes = ", ".join(sorted({str(array.dtype) for array in arrays.values()}))
        raise InvalidInput(f"Cannot save arrays of {dtypes}: {error}.") from error


class ArrayFile:
    """An open file of arrays; it stays readable if the file is renamed or removed.

    `size` and `sha256` are those that it must have; a missing file raises `FileNotFoundError`.
    """

    def __init__(self, path: Path, size: int, sha256: str):
        self.path, self._sha256 = path, sha256
        with open_model_file(path) as file:
            n_bytes = os.fstat(file.fileno()).st_size
            if n_bytes != size:
                raise self._changed_error(f"it has {n_bytes:,} bytes, not {size:,}")
            self._bytes = _map_or_read(file) if n_bytes else b""

    def check(self) -> None:
        """Reject a file with another checksum."""
        if hashlib.sha256(self._bytes).hexdigest() != self._sha256:
            raise self._changed_error("its checksum differs")

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays, after checking the whole file."""
        self.check()
        try:
            arrays = load(bytes(self._bytes))
        except KeyError as error:
            raise self._unreadable_error(f"it has numbers of the type {error}") from error
        except (SafetensorError, ValueError) as error:
            raise self._unreadable_error(str(error).rstrip(".")) from error
        for name, array in arrays.items():
            if array.dtype == bool and array.view(np.uint8).max(initial=0) > 1:
                raise self._unreadable_error(f"{name!r} has flags that are neither 0 nor 1")
        return arrays

    def _unreadable_error(self, reason: str) -> DamagedModel:
        return DamagedModel(f"{self.path} cannot be read: {reason}. Save the model again.")

    def _changed_error(self, reason: str) -> DamagedModel:
        return DamagedModel(
            f"{self.path} is not as it was saved ({reason}): truncated or changed. Restore it from "
            "a copy, or save the model again."
        )


def _map_or_read(file: BinaryIO) -> mmap.mmap | bytes:
    try:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError:  # some file systems cannot map files
        return bytes(file.read())
