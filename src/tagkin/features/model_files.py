"""Read the files of models, which anybody may have written: graphs, names of weights, settings."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tagkin.errors import InvalidInput, StorageError, UnreadableImage
from tagkin.features.onnx_sessions import first_line
from tagkin.images.image_files import read_bytes

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = [
    "external_files",
    "parts_of",
    "read_json",
    "read_model",
    "read_settings",
    "sha256_of_file",
]

T = TypeVar("T")

_MAX_GRAPH = (1 << 31) - 1  # bytes that its format allows; larger weights are in other files
_MAX_JSON = 1 << 20  # bytes; usually some thousand


def sha256_of_file(path: str | os.PathLike[str]) -> str:
    """Return the hash of a file's content, in hexadecimal digits."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}.") from error


def read_json(path: Path) -> object:
    """Return the content of a JSON file.

    Raises `FileNotFoundError` if there is no such file, `StorageError` if it cannot be read, is not
    a regular file or is larger than a megabyte, and `InvalidInput` if it is not JSON.
    """
    if not os.path.lexists(path):
        raise FileNotFoundError(path)
    try:
        data = read_bytes(path, _MAX_JSON)
    except UnreadableImage as error:
        raise StorageError(f"{path} cannot be read: {error}.") from error
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not JSON ({error}).") from error


def read_settings(record: type[T], values: object, where: str) -> T:
    """Return a record of settings from an object of JSON; the record checks its values."""
    known = {
        field.name: field.default is MISSING and field.default_factory is MISSING
        for field in fields(record)  # type: ignore[arg-type]
    }
    if not isinstance(values, Mapping):
        raise InvalidInput(f"{where} is {values!r}; expected an object with {', '.join(known)}.")
    if unknown := [key for key in values if key not in known]:
        raise InvalidInput(f"{where}: unknown {', '.join(unknown)}; known are {', '.join(known)}.")
    if missing := [key for key, is_required in known.items() if is_required and key not in values]:
        raise InvalidInput(f"{where} lacks {' and '.join(missing)}.")
    try:
        return record(**values)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error


def read_model(path: Path) -> ModelProto:
    """Return a model without the weights in other files."""
    import onnx

    if path.exists() and not path.is_file():
        raise InvalidInput(f"{path} is not a regular file.")
    if path.exists() and path.stat().st_size > _MAX_GRAPH:
        raise InvalidInput(f"{path} has more than 2 GB, which ONNX does not allow.")
    try:
        return onnx.load(path, load_external_data=False)
    except Exception as error:  # protobuf's errors have no common ancestor
        raise InvalidInput(f"{path} is not an ONNX model: {first_line(error)}") from error


def external_files(path: Path, model: ModelProto) -> dict[str, Path]:
    """Return the other files with weights by name; reject files outside of the model's folder."""
    from onnx import TensorProto

    files = {}
    entries = (e for tensor in parts_of(model, TensorProto) for e in tensor.external_data)
    for name in sorted({entry.value for entry in entries if entry.key == "location"}):
        file = path.parent / name
        if Path(name).name != name or name in ("", ".", "..") or "\\" in name:
            raise InvalidInput(f"{path} names weights outside of its folder: {name!r}.")
        if not file.is_file():
            raise StorageError(f"{path} keeps weights in {file}, which is not there.")
        files[name] = file
    return files


def parts_of(message: Any, kind: type[T]) -> Iterator[T]:  # onnx has no types
    """Yield all parts of a kind in a message of protobuf, such as the nodes of a model."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in [value] if hasattr(value, "ListFields") else value:
                if isinstance(part, kind):
                    yield part
                yield from parts_of(part, kind)
