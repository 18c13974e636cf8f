"""Files of named arrays, in the format of safetensors: mapped into memory, and never believed.

A file is the length of a header (8 bytes), the header (JSON: name → dtype, shape, place), and the
arrays. Whatever a header says is held against the file before anything is read by it.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

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
    """Arrays as the bytes of a file.

    Parameters
    ----------
    arrays : mapping of str to array
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        # the widest first, so that each begins where its numbers may
        order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
        self._arrays = [arrays[name] for name in order]
        header: dict[str, Any] = {}
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
        """All of the file, in order; what is small in one piece."""
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
    """A file of arrays, open from now on: what happens to its name changes nothing here.

    Parameters
    ----------
    path : Path
        A file that is not there is a `FileNotFoundError`.
    size, sha256 : int and str
        What the file has to be, by those who name it.
    """

    def __init__(self, path: Path, size: Any, sha256: Any):
        self.path, self._sha256 = path, sha256
        with open_model_file(path) as file:
            found = os.fstat(file.fileno())
            if size is not None and found.st_size != size:
                raise self._changed(f"it has {found.st_size:,} bytes, not {size:,}")
            if found.st_size < 8:
                raise self._changed("it is empty")
            self._bytes: Any = _mapped_or_read(file)

    def check(self) -> None:
        """Refuse a file that is not as it was written."""
        if hashlib.sha256(self._bytes).hexdigest() != self._sha256:
            raise self._changed("its checksum differs")

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays (read only), when all of the file is found to be as it was written."""
        self.check()
        size = int.from_bytes(self._bytes[:8], "little")
        start = 8 + size
        if size > _LARGEST_HEADER or start > len(self._bytes):
            raise self._wrong(f"its header claims {size:,} bytes of {len(self._bytes):,}")
        try:
            header = json.loads(self._bytes[8:start])
        except (ValueError, RecursionError) as error:
            raise self._wrong(f"its header is not JSON ({error})") from error
        if not isinstance(header, dict):
            raise self._wrong("its header is not a table of arrays")
        header.pop("__metadata__", None)
        return {name: self._array(name, entry, start) for name, entry in header.items()}

    def _array(self, name: str, entry: Any, start: int) -> np.ndarray:
        try:
            dtype = np.dtype(_DTYPES[entry["dtype"]])
            shape = tuple(entry["shape"])
            begin, end = entry["data_offsets"]
        except (KeyError, TypeError, ValueError) as error:
            raise self._wrong(f"it does not say what {name!r} is ({error!r})") from error
        if not _are_counts(*shape, begin, end) or len(shape) > _MOST_DIMENSIONS:
            raise self._wrong(f"{name!r} has the shape {shape} from {begin!r} to {end!r}")
        count = math.prod(shape)
        if end - begin != count * dtype.itemsize or end > len(self._bytes) - start:
            raise self._wrong(
                f"{name!r} is {count:,} numbers of {dtype.itemsize} bytes, at bytes {begin:,} to "
                f"{end:,} of {len(self._bytes) - start:,}"
            )
        if not count:
            return np.empty(shape, dtype)
        found = np.frombuffer(self._bytes, dtype, count, start + begin).reshape(shape)
        if dtype.kind == "b" and found.view(np.uint8).max() > 1:
            raise self._wrong(f"{name!r} has flags that are neither 0 nor 1")
        return found if found.flags.aligned else found.copy()

    def _changed(self, found: str) -> DamagedModel:
        return DamagedModel(
            f"{self.path} is not as it was saved ({found}): truncated or changed. Restore it from "
            "a copy, or save the model again."
        )

    def _wrong(self, found: str) -> DamagedModel:
        return DamagedModel(f"{self.path} cannot be read: {found}. Save the model again.")


def _are_counts(*numbers: Any) -> bool:
    """Whether these are whole numbers that a file can have so many of."""
    return all(type(number) is int and 0 <= number < 2**48 for number in numbers)


def _mapped_or_read(file: Any) -> mmap.mmap | bytes:
    try:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError:  # not every file system can
        return bytes(file.read())
