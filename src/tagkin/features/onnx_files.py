"""Read what must be known of an ONNX file before onnxruntime opens it.

An ONNX file is a message of protobuf: fields with a number, some of which are messages again. Only
the names of operators and of other files are read, so weights of gigabytes are passed over, and the
package onnx is not needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tagkin.errors import InvalidInput, StorageError

__all__ = ["OnnxFile", "read_onnx_file"]

_MAX_BYTES = (1 << 31) - 1  # that the format allows; larger weights are in other files
_VARINT = 10  # bytes of a number at most
# The messages inside a message, by the numbers of their fields in onnx.proto.
_PARTS = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {
        5: "tensor",
        6: "graph",
        10: "tensor",
        11: "graph",
        22: "sparse",
        23: "sparse",
    },
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
_OPERATOR = 4  # of a node
_KEY, _VALUE = 1, 2  # of an entry


@dataclass(frozen=True)
class OnnxFile:
    """What a model runs, and where its weights are."""

    operators: frozenset[str]
    weights: tuple[Path, ...]
    """Other files with weights, in the folder of the model."""


class _Malformed(Exception):
    """The file is not a message of protobuf."""


def read_onnx_file(path: Path) -> OnnxFile:
    """Read a model; reject weights outside of its folder."""
    operators, names = set(), set()
    try:
        if path.exists() and not path.is_file():
            raise InvalidInput(f"{path} is not a regular file.")
        with path.open("rb") as file:
            n_bytes = file.seek(0, os.SEEK_END)
            if n_bytes > _MAX_BYTES:
                raise InvalidInput(f"{path} has more than 2 GB, which ONNX does not allow.")
            pending = [("model", 0, n_bytes)]
            while pending:  # not recursive, because a file may nest graphs as deep as it likes
                kind, start, end = pending.pop()
                texts = {}
                for number, first, last in _fields(file, start, end):
                    if (part := _PARTS.get(kind, {}).get(number)) is not None:
                        pending.append((part, first, last))
                    elif (kind == "node" and number == _OPERATOR) or kind == "entry":
                        file.seek(first)
                        texts[number] = file.read(last - first).decode("utf-8")
                if kind == "node":
                    operators.add(texts.get(_OPERATOR, ""))
                elif texts.get(_KEY) == "location":
                    names.add(texts.get(_VALUE, ""))
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (_Malformed, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not an ONNX model: {error}") from error
    return OnnxFile(frozenset(operators), tuple(_weights(path, name) for name in sorted(names)))


def _weights(path: Path, name: str) -> Path:
    """Return the other file of this name that a model keeps weights in."""
    if Path(name).name != name or name in ("", ".", "..") or "\\" in name or "\0" in name:
        raise InvalidInput(f"{path} names weights outside of its folder: {name!r}.")
    file = path.parent / name
    if not file.is_file():
        raise StorageError(f"{path} keeps weights in {file}, which is not there.")
    return file


def _fields(file: BinaryIO, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the number, first and last position of the texts and messages in a message."""
    position = start
    while position < end:
        file.seek(position)
        key = _read_number(file)
        match key & 7:
            case 0:
                _read_number(file)
                position = file.tell()
            case 1:
                position = file.tell() + 8
            case 5:
                position = file.tell() + 4
            case 2:
                n_bytes = _read_number(file)
                first = file.tell()
                position = first + n_bytes
                if position <= end:
                    yield key >> 3, first, position
            case other:
                raise _Malformed(f"it has a field of the unknown type {other}.")
        if position > end:
            raise _Malformed("a field is longer than the message around it.")


def _read_number(file: BinaryIO) -> int:
    """Return a number whose bytes have seven bits each, and a bit that says whether more follow."""
    number = 0
    for place in range(_VARINT):
        byte = file.read(1)
        if not byte:
            raise _Malformed("it ends in the middle of a number.")
        number |= (byte[0] & 127) << 7 * place
        if byte[0] < 128:
            return number
    raise _Malformed(f"a number has more than {_VARINT} bytes.")
