"""Read tensors from torch's files without torch and without running code in the files.

Such a file is a pickle with arrays, and unpickling an untrusted file can run any program. Here,
the names in a pickle lead to the few functions of this module, and all other names are rejected.
The zip archive (torch 1.6 and later) and the older stream are read. The weights of the default
networks come in no other format, and torch is a download of hundreds of megabytes.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from tagkin.errors import InvalidInput, StorageError

__all__ = ["read_tensors", "sha256_of_file"]

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001
_TYPES = {
    "torch.BoolStorage": "?",
    "torch.ByteStorage": "u1",
    "torch.CharStorage": "i1",
    "torch.DoubleStorage": "<f8",
    "torch.FloatStorage": "<f4",
    "torch.HalfStorage": "<f2",
    "torch.IntStorage": "<i4",
    "torch.LongStorage": "<i8",
    "torch.ShortStorage": "<i2",
}


class _Storage(NamedTuple):
    """A range of numbers in the file."""

    key: str
    dtype: str
    start: int
    length: int


class _Tensor(NamedTuple):
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def __setstate__(self, state: object) -> None:
        """Ignore flags, which do not change a tensor's numbers."""


class _Dictionary(dict[str, object]):
    def __setstate__(self, state: object) -> None:
        """Ignore metadata."""


class _Rejected(Exception):
    """A file cannot be read; the message says why."""


def sha256_of_file(path: str | os.PathLike[str]) -> str:
    """Return the hash of a file's content, in hexadecimal digits."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}.") from error


def read_tensors(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the tensors of a file that ``torch.save(model.state_dict(), path)`` wrote, by name.

    The arrays are C-contiguous copies in the machine's byte order.
    """
    path = Path(path)
    try:
        if zipfile.is_zipfile(path):
            return _read_zip(path)
        return _read_stream(path)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}.") from error
    except Exception as error:  # unpickling a damaged file raises nearly everything
        raise InvalidInput(
            f"{path} is not a plain dictionary of tensors as torch saves it: {error}. Save it "
            "with torch.save(model.state_dict(), path), or get a fresh copy of the file."
        ) from error


# --- the two forms of file ---------------------------------------------------------------


def _read_zip(path: Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as archive:
        if any(item.compress_type != zipfile.ZIP_STORED for item in archive.infolist()):
            raise _Rejected("the archive is compressed")
        pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise _Rejected("the archive has no data.pkl")
        root = pickles[0].removesuffix("data.pkl")
        order = f"{root}byteorder"
        if order in archive.namelist() and archive.read(order) != b"little":
            raise _Rejected("it was written on a machine of the other byte order")
        content = _unpickle(io.BytesIO(archive.read(pickles[0])))

        def numbers(storage: _Storage) -> np.ndarray:
            return np.frombuffer(archive.read(f"{root}data/{storage.key}"), storage.dtype)

        return _make_arrays(content, numbers)


def _read_stream(path: Path) -> dict[str, np.ndarray]:
    size = path.stat().st_size
    with path.open("rb") as file:
        if size == 0:
            raise _Rejected("it is empty")
        if _unpickle(file) != _MAGIC or _unpickle(file) != _VERSION:
            raise _Rejected("it does not start like a torch file")
        if not _unpickle(file)["little_endian"]:
            raise _Rejected("it was written on a machine of the other byte order")
        content, keys = _unpickle(file), _unpickle(file)
        dtypes = {t.storage.key: t.storage.dtype for t in _check_tensors(content).values()}
        spans: dict[str, tuple[int, int]] = {}
        for key in keys:
            count = int.from_bytes(file.read(8), "little")
            spans[key] = file.tell(), count
            # a storage that no tensor uses has no known size
            end = file.tell() + count * np.dtype(dtypes[key]).itemsize
            if end > size:
                raise _Rejected("it ends too soon")
            file.seek(end)

        def numbers(storage: _Storage) -> np.ndarray:
            start, count = spans[storage.key]
            return np.fromfile(path, storage.dtype, count, offset=start)

        return _make_arrays(content, numbers)


def _check_tensors(content: object) -> dict[str, _Tensor]:
    """Return the tensors by name; reject anything but a dictionary of tensors."""
    if not isinstance(content, dict):
        raise _Rejected("it does not contain a dictionary")
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, _Tensor):
            raise _Rejected(f"{name!r} is not a tensor")
    return content


def _make_arrays(
    content: object, numbers: Callable[[_Storage], np.ndarray]
) -> dict[str, np.ndarray]:
    arrays = {}
    for name, tensor in _check_tensors(content).items():
        storage, offset, shape, strides = tensor
        flat = numbers(storage)[storage.start : storage.start + storage.length]
        valid = all(isinstance(n, int) and n >= 0 for n in (offset, *shape, *strides))
        if not valid or len(shape) != len(strides):
            raise _Rejected(f"the shape of {name!r} makes no sense")
        steps = zip(shape, strides, strict=True)
        last = offset + sum((n - 1) * step for n, step in steps) if all(shape) else -1
        if last >= len(flat) or len(flat) != storage.length:
            raise _Rejected(f"{name!r} reaches beyond its numbers")
        in_bytes = [step * flat.itemsize for step in strides]
        view = np.lib.stride_tricks.as_strided(flat[offset:], shape, in_bytes, writeable=False)
        arrays[name] = np.array(view, dtype=flat.dtype.newbyteorder("="), order="C")
    return arrays


# --- the pickle --------------------------------------------------------------------------


class _Unpickler(pickle.Unpickler):
    """Makes descriptions of tensors; names in the pickle lead to nothing but `_NAMES`."""

    def find_class(self, module: str, name: str) -> object:
        """Return the stand-in for a class or a function."""
        full = f"{module}.{name}"
        if full not in _NAMES:
            raise _Rejected(f"it names {full}, which is not read")
        return _NAMES[full]

    def persistent_load(self, description: Any) -> _Storage:
        """Return the description of a range of numbers in the file."""
        kind, dtype, key, _, length, *view = description
        start = 0
        if view and view[0] is not None:
            _, start, length = view[0]
        whole = isinstance(start, int) and isinstance(length, int) and min(start, length) >= 0
        if kind != "storage" or dtype not in _TYPES.values() or not whole:
            raise _Rejected(f"it refers to {description!r}")
        return _Storage(str(key), dtype, start, length)


def _unpickle(file: BinaryIO) -> Any:  # a pickle may hold anything
    return _Unpickler(file).load()


def _make_tensor(
    storage: _Storage, offset: int, shape: Iterable[int], strides: Iterable[int], *_: object
) -> _Tensor:
    return _Tensor(storage, offset, tuple(shape), tuple(strides))


def _make_parameter(tensor: _Tensor, *_: object) -> _Tensor:
    return tensor


_NAMES: dict[str, object] = {
    "collections.OrderedDict": _Dictionary,
    "torch._utils._rebuild_tensor": _make_tensor,
    "torch._utils._rebuild_tensor_v2": _make_tensor,
    "torch._utils._rebuild_parameter": _make_parameter,
    "torch.nn.parameter.Parameter": _make_parameter,
    **_TYPES,
}
