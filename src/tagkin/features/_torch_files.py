"""Tensors from files that torch wrote, without torch and without running anything in them.

Such a file is a pickle with arrays beside it, and unpickling a stranger's file can run any
program. Here the operations of the pickle are listed, not executed, and the few of them that a
plain dictionary of tensors needs are followed on a stack of our own. A name that is not in
`_NAMES` is refused. Both forms are read: the zip archive (torch 1.6 and later) and the older
stream.

It is kept because package registries have the weights of the default networks in no other form,
and torch itself, which reads them, is a download of hundreds of megabytes for one file.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import pickletools
import zipfile
from collections.abc import Callable, Collection, Iterator
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
    """A run of numbers in the file, or the part of one that a view shows."""

    key: str
    dtype: str
    start: int
    length: int


class _Tensor(NamedTuple):
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Refused(Exception):
    """Why a file is not read."""


def sha256_of_file(path: str | os.PathLike[str]) -> str:
    """Hash of a file's content, in hexadecimal digits."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}.") from error


def read_tensors(
    path: str | os.PathLike[str], only: Collection[str] | None = None
) -> dict[str, np.ndarray]:
    """The tensors of a file that ``torch.save(model.state_dict(), path)`` wrote, by name.

    They are copies in the machine's byte order, C-contiguous whatever their strides were: of all,
    or of those that are asked for.
    """
    path = Path(path)
    try:
        if zipfile.is_zipfile(path):
            return _from_zip(path, only)
        return _from_stream(path, only)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (_Refused, ValueError, IndexError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise InvalidInput(
            f"{path} is not a plain dictionary of tensors as torch saves it: {error}. Save it "
            "with torch.save(model.state_dict(), path), or get a fresh copy of the file."
        ) from error


# --- the two forms of file ---------------------------------------------------------------


def _from_zip(path: Path, only: Collection[str] | None) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as archive:
        if any(item.compress_type != zipfile.ZIP_STORED for item in archive.infolist()):
            raise _Refused("the archive is compressed")
        named = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(named) != 1:
            raise _Refused("the archive has no data.pkl")
        root = named[0].removesuffix("data.pkl")
        order = f"{root}byteorder"
        if order in archive.namelist() and archive.read(order) != b"little":
            raise _Refused("it was written on a machine of the other byte order")
        found = _follow(archive.read(named[0]))

        def numbers(storage: _Storage) -> np.ndarray:
            return np.frombuffer(archive.read(f"{root}data/{storage.key}"), storage.dtype)

        return _arrays(found, numbers, only)


def _from_stream(path: Path, only: Collection[str] | None) -> dict[str, np.ndarray]:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise _Refused("it is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if _follow(data) != _MAGIC or _follow(data) != _VERSION:
                raise _Refused("it does not begin as such a file")
            if not _follow(data)["little_endian"]:
                raise _Refused("it was written on a machine of the other byte order")
            found, keys = _follow(data), _follow(data)
            dtypes = {t.storage.key: t.storage.dtype for t in _tensors(found).values()}
            spans: dict[str, tuple[int, int]] = {}
            for key in keys:
                count = int.from_bytes(data.read(8), "little")
                spans[key] = (data.tell(), count)
                # numbers that no tensor uses have no known size
                n_bytes = count * np.dtype(dtypes[key]).itemsize
                if data.tell() + n_bytes > len(data):
                    raise _Refused("it ends too soon")
                data.seek(n_bytes, os.SEEK_CUR)

            def numbers(storage: _Storage) -> np.ndarray:
                start, count = spans[storage.key]
                size = count * np.dtype(storage.dtype).itemsize
                return np.frombuffer(data[start : start + size], storage.dtype)

            return _arrays(found, numbers, only)


def _tensors(found: Any) -> dict[str, _Tensor]:
    if not isinstance(found, dict):
        raise _Refused("it holds no dictionary")
    for name, value in found.items():
        if not isinstance(name, str) or not isinstance(value, _Tensor):
            raise _Refused(f"{name!r} is not a tensor")
    return found


def _arrays(
    found: Any, numbers: Callable[[_Storage], np.ndarray], only: Collection[str] | None
) -> dict[str, np.ndarray]:
    arrays = {}
    for name, tensor in _tensors(found).items():
        if only is not None and name not in only:
            continue
        storage, offset, shape, strides = tensor
        flat = numbers(storage)[storage.start : storage.start + storage.length]
        whole = all(isinstance(n, int) and n >= 0 for n in (offset, *shape, *strides))
        if not whole or len(shape) != len(strides):
            raise _Refused(f"the shape of {name!r} makes no sense")
        steps = zip(shape, strides, strict=True)
        last = offset + sum((n - 1) * step for n, step in steps) if all(shape) else -1
        if last >= len(flat) or len(flat) != storage.length:
            raise _Refused(f"{name!r} reaches beyond its numbers")
        in_bytes = [step * flat.itemsize for step in strides]
        view = np.lib.stride_tricks.as_strided(flat[offset:], shape, in_bytes, writeable=False)
        arrays[name] = np.array(view, dtype=flat.dtype.newbyteorder("="), order="C")
    return arrays


# --- the pickle --------------------------------------------------------------------------


def _operations(data: Any) -> Iterator[tuple[str, Any]]:
    for operation, argument, _ in pickletools.genops(data):
        yield operation.name, argument


def _follow(data: Any) -> Any:
    """What one pickle describes; tensors stay descriptions. Nothing named in it is called."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}

    def from_mark() -> list[Any]:
        start = marks.pop()
        items = stack[start:]
        del stack[start:]
        return items

    def last(n: int) -> list[Any]:
        if len(stack) < n:
            raise _Refused("its pickle is damaged")
        items = stack[len(stack) - n :]
        del stack[len(stack) - n :]
        return items

    for name, argument in _operations(data):
        match name:
            case "PROTO":
                pass
            case "STOP":
                return last(1)[0]
            case "MARK":
                marks.append(len(stack))
            case "GLOBAL":
                if argument not in _NAMES:
                    raise _Refused(f"it names {argument.replace(' ', '.')}, which is not read")
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
                stack.append(tuple(last(int(name[-1]) if name[-1].isdigit() else 0)))
            case "TUPLE":
                stack.append(tuple(from_mark()))
            case "EMPTY_LIST":
                stack.append([])
            case "EMPTY_DICT":
                stack.append({})
            case "APPEND" | "APPENDS":
                items = last(1) if name == "APPEND" else from_mark()
                stack[-1].extend(items)
            case "SETITEM" | "SETITEMS":
                items = last(2) if name == "SETITEM" else from_mark()
                stack[-1].update(zip(items[::2], items[1::2], strict=True))
            case "BINPERSID":
                stack.append(_storage(last(1)[0]))
            case "REDUCE" | "NEWOBJ":
                stack.append(_made(*last(2)))
            case "BUILD":
                last(1)  # metadata and flags: nothing that a tensor's numbers depend on
            case _:
                raise _Refused(f"its pickle uses {name}, which no dictionary of tensors needs")
    raise _Refused("its pickle has no end")


def _storage(described: Any) -> _Storage:
    kind, type_, key, _, length, *view = described
    if kind != "storage" or not isinstance(type_, _Name) or type_.name not in _TYPES:
        raise _Refused(f"it refers to {described!r}")
    start = 0
    if view and view[0] is not None:
        _, start, length = view[0]
    if not isinstance(start, int) or not isinstance(length, int) or min(start, length) < 0:
        raise _Refused(f"it refers to {described!r}")
    return _Storage(str(key), _TYPES[type_.name], start, length)


def _made(what: Any, arguments: Any) -> Any:
    if not isinstance(what, _Name):
        raise _Refused(f"it calls {what!r}")
    if what.name == _DICTIONARY and not arguments:
        return {}
    if what.name in _TENSORS and isinstance(arguments[0], _Storage):
        storage, offset, shape, strides = arguments[:4]
        return _Tensor(storage, offset, tuple(shape), tuple(strides))
    if what.name in _PARAMETERS and isinstance(arguments[0], _Tensor):
        return arguments[0]
    raise _Refused(f"it calls {what.name.replace(' ', '.')} as torch does not")
