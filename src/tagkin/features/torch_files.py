"""Read tensors from a file of torch without torch, which is a download of hundreds of megabytes.

The weights of the default network come in no other format. The file is a sequence of pickles
followed by arrays, as torch before 1.6 wrote it. Unpickling can run any program, so this module
interprets the few operations of a dictionary of tensors, and calls nothing that the file names.
"""

from __future__ import annotations

import io
import pickletools
from typing import Any

import numpy as np

from tagkin.errors import InvalidInput

__all__ = ["read_tensors"]

_TYPES = {"torch FloatStorage": "<f4", "torch LongStorage": "<i8"}
_TENSOR = "torch._utils _rebuild_tensor_v2"
_MARK = object()


def read_tensors(data: bytes) -> dict[str, np.ndarray]:
    """Return the tensors by name."""
    file = io.BytesIO(data)
    for _ in range(3):  # a number, a version, and facts about the machine that wrote the file
        _interpret(file)
    tensors, keys = _interpret(file), _interpret(file)
    types = {storage[2]: _TYPES[storage[1]] for storage, *_ in tensors.values()}
    arrays = {}
    for key in keys:
        dtype = np.dtype(types[key])
        count = int.from_bytes(file.read(8), "little")
        arrays[key] = np.frombuffer(file.read(count * dtype.itemsize), dtype)
    return {name: _view(arrays[tensor[0][2]], *tensor[1:4]) for name, tensor in tensors.items()}


def _view(
    numbers: np.ndarray, start: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> np.ndarray:
    """Return a tensor's numbers in its shape."""
    n_bytes = numbers.itemsize
    in_bytes = tuple(step * n_bytes for step in strides)
    # unlike `as_strided`, it checks that the numbers are there
    return np.ndarray(shape, numbers.dtype, numbers, offset=start * n_bytes, strides=in_bytes)


def _interpret(file: io.BytesIO) -> Any:
    """Return the value of a pickle; a tensor is a list of its storage, start, shape and strides."""
    stack: list[Any] = []  # a pickle may hold anything
    memo: dict[object, object] = {}

    def pop(n: int) -> list[Any]:
        items = stack[len(stack) - n :]
        del stack[len(stack) - n :]
        return items

    def pop_to_mark() -> list[Any]:
        items = pop(stack[::-1].index(_MARK))
        stack.pop()
        return items

    for operation, argument, _ in pickletools.genops(file):
        match name := operation.name:
            case "PROTO" | "BINPERSID":
                pass  # a storage stays the tuple that describes it
            case "MARK":
                stack.append(_MARK)
            case "BINPUT" | "LONG_BINPUT":
                memo[argument] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[argument])
            case "GLOBAL" | "BINUNICODE" | "BININT" | "BININT1" | "BININT2" | "LONG1":
                stack.append(argument)
            case "NONE" | "NEWTRUE" | "NEWFALSE":
                stack.append(None)
            case "EMPTY_TUPLE" | "TUPLE1" | "TUPLE2":
                stack.append(tuple(pop(int(name[-1]) if name[-1].isdigit() else 0)))
            case "TUPLE":
                stack.append(tuple(pop_to_mark()))
            case "EMPTY_LIST" | "EMPTY_DICT":
                stack.append([] if name == "EMPTY_LIST" else {})
            case "APPENDS":
                items = pop_to_mark()
                stack[-1].extend(items)
            case "SETITEM" | "SETITEMS":
                items = pop(2) if name == "SETITEM" else pop_to_mark()
                stack[-1].update(zip(items[::2], items[1::2], strict=True))
            case "REDUCE":
                function, arguments = pop(2)
                stack.append(list(arguments) if function == _TENSOR else {})
            case "BUILD":
                stack.pop()  # metadata, which does not change the numbers
            case "STOP":
                return stack.pop()
            case _:
                raise InvalidInput(f"A file of weights has {name}, which no tensor needs.")
    raise InvalidInput("A file of weights ends too soon.")
