"""Read the files of models, which anybody may have written: their hashes and settings."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TypeVar

from tagkin.errors import InvalidInput, StorageError, UnreadableImage
from tagkin.images.image_files import read_bytes

__all__ = ["read_json", "read_settings", "sha256_of_file"]

T = TypeVar("T")

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
