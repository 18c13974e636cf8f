"""Read the JSON files of models, which anybody may have written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tagkin.errors import InvalidInput, StorageError, UnreadableImage
from tagkin.images.image_files import read_bytes

__all__ = ["read_json"]

_MAX_JSON = 1 << 20  # bytes; usually some thousand


def read_json(path: Path) -> Any:
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
