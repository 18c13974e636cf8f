"""Many texts as few arrays: a hundred thousand names are read in a moment, and take their bytes."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

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
"""Texts from which on they are arrays; fewer can be read in the JSON."""


def are_texts(values: Sequence[Any]) -> bool:
    """Whether all of the values are texts."""
    return all(type(value) is str for value in values)


def are_lists_of_texts(values: Sequence[Any]) -> bool:
    """Whether all of the values are lists of texts."""
    return all(isinstance(row, (list, tuple)) and are_texts(row) for row in values)


def texts_as_arrays(texts: Sequence[str]) -> dict[str, np.ndarray]:
    """UTF-8 of all texts, and where each ends. Names of files may hold what UTF-8 does not."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(part) for part in encoded], dtype=np.int64)
    return {"bytes": np.frombuffer(b"".join(encoded), np.uint8), "ends": _short(ends)}


def texts_of(arrays: Any) -> list[str]:
    """The inverse of `texts_as_arrays`."""
    found, ends = _parts(arrays, "bytes", "ends")
    if found.dtype != np.uint8:
        raise DamagedModel(f"Texts are stored as {found.dtype}, not as bytes.")
    places = _places(ends, len(found))
    data = found.tobytes()
    try:
        whole = data.decode("utf-8", "surrogatepass")
        if len(whole) == len(data):  # one byte, one character
            return [whole[a:b] for a, b in pairwise(places)]
        return [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(places)]
    except UnicodeDecodeError as error:
        raise DamagedModel(f"Texts of the model are not UTF-8 ({error.reason}).") from error


def lists_as_arrays(rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The different texts, the number of each of the texts in all rows, and where each row ends."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(text, len(numbers)) for row in rows for text in row]
    ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
    return {
        "words": list(numbers),
        "codes": np.array(codes, dtype=np.int32),
        "ends": _short(ends),
    }


def lists_of(arrays: Any) -> list[list[str]]:
    """The inverse of `lists_as_arrays`."""
    codes, ends = _parts(arrays, "codes", "ends")
    words = arrays.get("words")
    if not isinstance(words, list) or not are_texts(words):
        raise DamagedModel("Lists of texts are stored without their texts.")
    if codes.dtype.kind != "i" or (
        codes.size and not 0 <= int(codes.min()) <= int(codes.max()) < len(words)
    ):
        raise DamagedModel(f"Lists of texts name others than the {len(words):,} that are there.")
    places = _places(ends, len(codes))
    texts = [words[code] for code in codes.tolist()]
    with _not_collecting():
        return [texts[a:b] for a, b in pairwise(places)]


@contextmanager
def _not_collecting() -> Iterator[None]:
    """Without the garbage collector, which goes through everything each time there are more lists.

    For a hundred thousand lists it takes longer than all else, and there is no garbage among them.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _parts(arrays: Any, *names: str) -> list[np.ndarray]:
    found = [arrays.get(name) if isinstance(arrays, dict) else None for name in names]
    if not all(isinstance(array, np.ndarray) and array.ndim == 1 for array in found):
        raise DamagedModel(f"Texts are stored without {' or '.join(names)}.")
    return [array for array in found if array is not None]


def _places(ends: np.ndarray, size: int) -> list[int]:
    """0 and the ends, when they are in order and the last of them is the end."""
    if ends.dtype.kind != "i":
        raise DamagedModel(f"Texts end at {ends.dtype}, not at whole numbers.")
    places = np.append(0, ends)
    if places[-1] != size or (np.diff(places) < 0).any():
        raise DamagedModel(f"Texts do not end one after the other, at {size:,} bytes.")
    return places.tolist()


def _short(ends: np.ndarray) -> np.ndarray:
    return ends.astype(np.int32) if not len(ends) or ends[-1] < 2**31 else ends
