"""Read tensors from torch's files without torch and without running code in the files.

Such a file is a pickle with arrays, and unpickling an untrusted file can run any program. This
module interprets only the few operations that a plain dictionary of tensors needs, and rejects all
names but `_NAMES`. It reads the zip archive (torch 1.6 and later) and the older stream. The weights
of the default networks come in no other format, and torch is a download of hundreds of megabytes.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import pickletools
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tagkin.errors import InvalidInput, StorageError

__all__ = ["read_tensors", "sha256_of_file"]

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001
_TYPES = {
    "torch BoolStorage": "?",
    "torch ByteStorage": "u1",
    "torch CharStorage": "i1",
    "torch DoubleStorage": "<f8",
    "torch FloatStorage": "<f4",
    "torch HalfStorage": "<f2",
    "torch IntStorage": "<i4",
    "torch LongStorage": "<i8",
    "torch ShortStorage": "<i2",
}
_DICTIONARY = "collections OrderedDict"
_TENSORS = ("torch._utils _rebuild_tensor", "torch._utils _rebuild_tensor_v2")
_PARAMETERS = ("torch._utils _rebuild_parameter", "torch.nn.parameter Parameter")
_NAMES = {_DICTIONARY, *_TENSORS, *_PARAMETERS, *_TYPES}


class _Name(NamedTuple):
    """A class or function that the file names."""

    name: str


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
    except (_Rejected, ValueError, IndexError, KeyError, TypeError, zipfile.BadZipFile) as error:
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
        content = _interpret(archive.read(pickles[0]))

        def numbers(storage: _Storage) -> np.ndarray:
            return np.frombuffer(archive.read(f"{root}data/{storage.key}"), storage.dtype)

        return _make_arrays(content, numbers)


def _read_stream(path: Path) -> dict[str, np.ndarray]:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise _Rejected("it is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if _interpret(data) != _MAGIC or _interpret(data) != _VERSION:
                raise _Rejected("it does not start like a torch file")
            if not _interpret(data)["little_endian"]:
                raise _Rejected("it was written on a machine of the other byte order")
            content, keys = _interpret(data), _interpret(data)
            dtypes = {t.storage.key: t.storage.dtype for t in _check_tensors(content).values()}
            spans: dict[str, tuple[int, int]] = {}
            for key in keys:
                count = int.from_bytes(data.read(8), "little")
                spans[key] = (data.tell(), count)
                # a storage that no tensor uses has no known size
                n_bytes = count * np.dtype(dtypes[key]).itemsize
                if data.tell() + n_bytes > len(data):
                    raise _Rejected("it ends too soon")
                data.seek(n_bytes, os.SEEK_CUR)

            def numbers(storage: _Storage) -> np.ndarray:
                start, count = spans[storage.key]
                size = count * np.dtype(storage.dtype).itemsize
                return np.frombuffer(data[start : start + size], storage.dtype)

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


def _interpret(data: Any) -> Any:  # bytes or a memory map
    """Return the value of a pickle, with descriptions of tensors; call nothing that it names."""
    stack: list[Any] = []  # a pickle may hold anything
    marks: list[int] = []
    memo: dict[object, object] = {}

    def pop(n: int) -> list[Any]:
        if not 0 <= n <= len(stack):
            raise _Rejected("its pickle is damaged")
        items = stack[len(stack) - n :]
        del stack[len(stack) - n :]
        return items

    def from_mark() -> list[Any]:
        return pop(len(stack) - marks.pop())

    for operation, argument, _ in pickletools.genops(data):
        match name := operation.name:
            case "PROTO":
                pass
            case "STOP":
                return pop(1)[0]
            case "MARK":
                marks.append(len(stack))
            case "GLOBAL":
                if argument not in _NAMES:
                    name = str(argument).replace(" ", ".")
                    raise _Rejected(f"it names {name}, which is not read")
                stack.append(_Name(argument))
            case "BINPUT" | "LONG_BINPUT":
                memo[argument] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[argument])
            case "BININT" | "BININT1" | "BININT2" | "LONG1" | "BINFLOAT":
                stack.append(argument)
            case "BINUNICODE" | "BINSTRING" | "SHORT_BINSTRING":
                stack.append(argument)
            case "NONE" | "NEWTRUE" | "NEWFALSE":
                stack.append({"NONE": None, "NEWTRUE": True, "NEWFALSE": False}[name])
            case "EMPTY_TUPLE" | "TUPLE1" | "TUPLE2" | "TUPLE3":
                stack.append(tuple(pop(int(name[-1]) if name[-1].isdigit() else 0)))
            case "TUPLE":
                stack.append(tuple(from_mark()))
            case "EMPTY_LIST" | "EMPTY_DICT":
                stack.append([] if name == "EMPTY_LIST" else {})
            case "APPEND" | "APPENDS":
                items = pop(1) if name == "APPEND" else from_mark()
                stack[-1].extend(items)
            case "SETITEM" | "SETITEMS":
                items = pop(2) if name == "SETITEM" else from_mark()
                stack[-1].update(zip(items[::2], items[1::2], strict=True))
            case "BINPERSID":
                stack.append(_make_storage(pop(1)[0]))
            case "REDUCE" | "NEWOBJ":
                stack.append(_make_value(*pop(2)))
            case "BUILD":
                pop(1)  # metadata and flags, which do not change a tensor's numbers
            case _:
                raise _Rejected(f"its pickle uses {name}, which no dictionary of tensors needs")
    raise _Rejected("its pickle has no end")


def _make_storage(description: Any) -> _Storage:
    kind, type_, key, _, length, *view = description
    if kind != "storage" or not isinstance(type_, _Name) or type_.name not in _TYPES:
        raise _Rejected(f"it refers to {description!r}")
    start = 0
    if view and view[0] is not None:
        _, start, length = view[0]
    if not isinstance(start, int) or not isinstance(length, int) or min(start, length) < 0:
        raise _Rejected(f"it refers to {description!r}")
    return _Storage(str(key), _TYPES[type_.name], start, length)


def _make_value(function: object, arguments: Any) -> dict[str, object] | _Tensor:
    if not isinstance(function, _Name):
        raise _Rejected(f"it calls {function!r}")
    if function.name == _DICTIONARY and not arguments:
        return {}
    if function.name in _TENSORS and isinstance(arguments[0], _Storage):
        storage, offset, shape, strides = arguments[:4]
        return _Tensor(storage, offset, tuple(shape), tuple(strides))
    if function.name in _PARAMETERS and isinstance(arguments[0], _Tensor):
        return arguments[0]
    raise _Rejected(f"it calls {function.name.replace(' ', '.')} as torch does not")
