"""Files of named arrays in the safetensors format, mapped into memory.

A file has the length of its header (8 bytes), the header (JSON: name → dtype, shape, position), and
the arrays. Everything in the header is compared with the file before it is used.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tagkin.errors import DamagedModel, InvalidInput
from tagkin.storage.document import open_model_file

__all__ = ["Mapped", "TensorBytes"]

_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items()}
_LARGEST_HEADER = 2**26
_MOST_DIMENSIONS = 8
_SMALL = 2**20  # bytes


class TensorBytes:
    """Arrays, by name, as the bytes of a file."""

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        # the widest numbers first, so each array is aligned
        order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
        self._arrays = [arrays[name] for name in order]
        header: dict[str, dict[str, object]] = {}
        end = 0
        for name, array in zip(order, self._arrays, strict=True):
            if array.dtype.newbyteorder("<") not in _NAMES:
                raise InvalidInput(f"Cannot save {name}: it is an array of {array.dtype}.")
            begin, end = end, end + array.nbytes
            header[name] = {
                "dtype": _NAMES[array.dtype.newbyteorder("<")],
                "shape": list(array.shape),
                "data_offsets": [begin, end],
            }
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        self._header = len(text).to_bytes(8, "little") + text
        self.size = len(self._header) + end
        self.sha256 = self._digest()

    def parts(self) -> Iterator[bytes | memoryview]:
        """Yield the bytes of the file in order; small arrays are joined."""
        small, n_small = [memoryview(self._header)], len(self._header)
        for array in self._arrays:
            plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            piece = plain.reshape(-1).view(np.uint8).data
            if piece.nbytes > _SMALL:
                yield b"".join(small)
                yield piece
                small, n_small = [], 0
                continue
            small.append(piece)
            n_small += piece.nbytes
            if n_small > _SMALL:
                yield b"".join(small)
                small, n_small = [], 0
        yield b"".join(small)

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for part in self.parts():
            digest.update(part)
        return digest.hexdigest()


class Mapped:
    """An open file of arrays; it stays readable if the file is renamed or removed.

    `size` and `sha256` are those that it must have; a missing file raises `FileNotFoundError`.
    """

    def __init__(self, path: Path, size: int, sha256: str):
        self.path, self._sha256 = path, sha256
        with open_model_file(path) as file:
            n_bytes = os.fstat(file.fileno()).st_size
            if n_bytes != size:
                raise self._changed_error(f"it has {n_bytes:,} bytes, not {size:,}")
            if n_bytes < 8:
                raise self._changed_error("it is empty")
            self._bytes = _map_or_read(file)

    def check(self) -> None:
        """Reject a file with another checksum."""
        if hashlib.sha256(self._bytes).hexdigest() != self._sha256:
            raise self._changed_error("its checksum differs")

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays, read only, after checking the whole file."""
        self.check()
        size = int.from_bytes(self._bytes[:8], "little")
        start = 8 + size
        if size > _LARGEST_HEADER or start > len(self._bytes):
            raise self._format_error(f"its header claims {size:,} bytes of {len(self._bytes):,}")
        try:
            header = json.loads(self._bytes[8:start])
        except (ValueError, RecursionError) as error:
            raise self._format_error(f"its header is not JSON ({error})") from error
        if not isinstance(header, dict):
            raise self._format_error("its header is not a table of arrays")
        header.pop("__metadata__", None)
        return {name: self._read_array(name, entry, start) for name, entry in header.items()}

    def _read_array(self, name: str, entry: Mapping[str, Any], start: int) -> np.ndarray:
        try:
            dtype = np.dtype(_DTYPES[entry["dtype"]])
            shape = tuple(entry["shape"])
            begin, end = entry["data_offsets"]
        except (KeyError, TypeError, ValueError) as error:
            raise self._format_error(f"it does not say what {name!r} is ({error!r})") from error
        if not _are_counts(*shape, begin, end) or len(shape) > _MOST_DIMENSIONS:
            raise self._format_error(f"{name!r} has the shape {shape} from {begin!r} to {end!r}")
        count = math.prod(shape)
        if end - begin != count * dtype.itemsize or end > len(self._bytes) - start:
            raise self._format_error(
                f"{name!r} is {count:,} numbers of {dtype.itemsize} bytes, at bytes {begin:,} to "
                f"{end:,} of {len(self._bytes) - start:,}"
            )
        if not count:
            return np.empty(shape, dtype)
        array = np.frombuffer(self._bytes, dtype, count, start + begin).reshape(shape)
        if dtype.kind == "b" and array.view(np.uint8).max() > 1:
            raise self._format_error(f"{name!r} has flags that are neither 0 nor 1")
        return array if array.flags.aligned else array.copy()

    def _changed_error(self, reason: str) -> DamagedModel:
        return DamagedModel(
            f"{self.path} is not as it was saved ({reason}): truncated or changed. Restore it from "
            "a copy, or save the model again."
        )

    def _format_error(self, reason: str) -> DamagedModel:
        return DamagedModel(f"{self.path} cannot be read: {reason}. Save the model again.")


def _are_counts(*numbers: object) -> bool:
    """Whether these are whole numbers that can be sizes or positions in a file."""
    return all(type(number) is int and 0 <= number < 2**48 for number in numbers)


def _map_or_read(file: BinaryIO) -> mmap.mmap | bytes:
    try:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError:  # some file systems cannot map files
        return bytes(file.read())
