"""Store many texts as few arrays, which are small and quick to read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeGuard

import numpy as np

from tagkin.errors import DamagedModel

__all__ = [
    "SEVERAL",
    "are_lists_of_texts",
    "are_texts",
    "lists_as_arrays",
    "lists_of",
    "texts_as_arrays",
    "texts_of",
]

SEVERAL = 100
"""Number of texts from which on they become arrays; fewer stay readable in the JSON."""


def are_texts(values: Sequence[object]) -> TypeGuard[Sequence[str]]:
    """Whether all of the values are texts."""
    return all(type(value) is str for value in values)


def are_lists_of_texts(values: Sequence[object]) -> TypeGuard[Sequence[Sequence[str]]]:
    """Whether all of the values are lists of texts."""
    return all(isinstance(row, (list, tuple)) and are_texts(row) for row in values)


def texts_as_arrays(texts: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the UTF-8 bytes of all texts, and where each text ends.

    File names may contain surrogates, which plain UTF-8 does not allow.
    """
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(part) for part in encoded], dtype=np.int64)
    return {"bytes": np.frombuffer(b"".join(encoded), np.uint8), "ends": _shorten(ends)}


def texts_of(arrays: object) -> list[str]:
    """Return the texts that `texts_as_arrays` was given."""
    stored, ends = _take_arrays(arrays, "bytes", "ends")
    if stored.dtype != np.uint8:
        raise DamagedModel(f"Texts are stored as {stored.dtype}, not as bytes.")
    places = _check_ends(ends, len(stored))
    data = stored.tobytes()
    try:
        whole = data.decode("utf-8", "surrogatepass")
        if len(whole) == len(data):  # one byte, one character
            return [whole[a:b] for a, b in pairwise(places)]
        return [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(places)]
    except UnicodeDecodeError as error:
        raise DamagedModel(f"Texts of the model are not UTF-8 ({error.reason}).") from error


def lists_as_arrays(rows: Sequence[Sequence[str]]) -> dict[str, object]:
    """Return the distinct texts, the number of every text in all rows, and where each row ends."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(text, len(numbers)) for row in rows for text in row]
    ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
    return {
        "words": list(numbers),
        "codes": np.array(codes, dtype=np.int32),
        "ends": _shorten(ends),
    }


def lists_of(arrays: object) -> list[list[str]]:
    """Return the lists that `lists_as_arrays` was given."""
    codes, ends = _take_arrays(arrays, "codes", "ends")
    words = arrays.get("words") if isinstance(arrays, dict) else None
    if not isinstance(words, list) or not are_texts(words):
        raise DamagedModel("Lists of texts are stored without their texts.")
    if codes.dtype.kind != "i" or (
        codes.size and not 0 <= int(codes.min()) <= int(codes.max()) < len(words)
    ):
        raise DamagedModel(f"Lists of texts refer to more than the {len(words):,} stored texts.")
    places = _check_ends(ends, len(codes))
    texts = [words[code] for code in codes.tolist()]
    return [texts[a:b] for a, b in pairwise(places)]


def _take_arrays(arrays: object, *names: str) -> list[np.ndarray]:
    parts = [arrays.get(name) if isinstance(arrays, dict) else None for name in names]
    if not all(isinstance(array, np.ndarray) and array.ndim == 1 for array in parts):
        raise DamagedModel(f"Texts are stored without {' or '.join(names)}.")
    return [array for array in parts if array is not None]


def _check_ends(ends: np.ndarray, size: int) -> list[int]:
    """Return 0 and the ends, which must ascend up to the size."""
    if ends.dtype.kind != "i":
        raise DamagedModel(f"The ends of texts are {ends.dtype}, not whole numbers.")
    places = np.append(0, ends)
    if places[-1] != size or (np.diff(places) < 0).any():
        raise DamagedModel(f"The ends of texts do not ascend to {size:,}.")
    return places.tolist()


def _shorten(ends: np.ndarray) -> np.ndarray:
    return ends.astype(np.int32) if not len(ends) or ends[-1] < 2**31 else ends
