"""Ways in which the files of a model can be wrong, one at a time."""

import copy
import json
import math
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from tests.hardening.crafting import Crafted, header_of

# --- arrays ------------------------------------------------------------------------------

ARRAY_CHANGES: dict[str, Callable[[np.ndarray], np.ndarray | None]] = {
    "missing": lambda a: None,
    "one row less": lambda a: a[1:] if a.ndim else a,
    "one row more": lambda a: np.concatenate([a, a[-1:]]) if a.ndim else a,
    "one column less": lambda a: a[..., 1:] if a.ndim else a,
    "empty": lambda a: a[:0],
    "flat": lambda a: a.reshape(-1) if a.ndim > 1 else a[None],
    "transposed": lambda a: a.T.copy() if a.ndim > 1 else a[:, None],
    "float16": lambda a: a.astype(np.float16),
    "float64": lambda a: a.astype(np.float64),
    "int64": lambda a: np.nan_to_num(a).astype(np.int64),
    "bool": lambda a: a.astype(bool),
    "uint8": lambda a: np.nan_to_num(a).astype(np.uint8),
    "nan": lambda a: _with(a, np.nan),
    "infinity": lambda a: _with(a, np.inf),
    "huge": lambda a: _with(a, 1e300 if a.dtype == np.float64 else 3e38),
    "large": lambda a: _with(a, 1e29),
    "negative": lambda a: _with(a, -1),
    "zeros": np.zeros_like,
    "all negative": lambda a: (
        -a if a.dtype.kind == "f" else (-a.astype(np.int64) - 1).astype(a.dtype)
    ),
    "next": lambda a: a + 1 if a.dtype.kind in "iuf" else a,
    "previous": lambda a: a - 1 if a.dtype.kind in "iuf" else a,
    "largest": lambda a: _with(a, 2**31 - 1) if a.dtype.kind in "i" else a,
    "lowest": lambda a: _with(a, -(2**31)) if a.dtype.kind in "i" else a,
    "reversed": lambda a: a[::-1].copy(),
}


def _with(a: np.ndarray, number: float) -> np.ndarray:
    """The array with this number in its middle, as far as it can hold it."""
    changed = a.copy()
    if a.size:
        with np.errstate(all="ignore"):
            changed.reshape(-1)[a.size // 2] = np.array(number).astype(a.dtype)
    return changed


def changed_array(original: Crafted, name: str, change: str) -> Crafted:
    """A copy of a model with one array changed in one of these ways."""
    crafted = copy.deepcopy(original)
    changed = ARRAY_CHANGES[change](crafted.arrays[name])
    if changed is None:
        del crafted.arrays[name]
    else:
        crafted.arrays[name] = np.ascontiguousarray(changed)
    return crafted


# --- the settings ------------------------------------------------------------------------

VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    3,
    10**30,
    1e308,
    math.nan,
    "",
    "x" * 5000,
    "\0\ud800",
    "../../../etc/passwd",
    [],
    [[]],
    {},
    {"$array": "model"},
    {"$record": "kernels.Linear"},
    {"$texts": "text"},
    {"$table": []},
    {"$csr": [], "shape": [10**9, 10**9]},
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where values stand in the settings; of long lists and tables the first few."""
    yield path
    if isinstance(value, dict):
        for key in list(value)[:40]:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for i in range(min(len(value), 3)):
            yield from places(value[i], (*path, i))


def changed_settings(crafted: Crafted, path: tuple[Any, ...], change: Callable[[Any, Any], None]):
    """Apply a change to what holds the value at a path, and to its key there."""
    holder: Any = {"settings": crafted.settings}
    *above, last = "settings", *path
    for key in above:
        holder = holder[key]
    change(holder, last)


def put(value: Any) -> Callable[[Any, Any], None]:
    def change(holder: Any, key: Any) -> None:
        holder[key] = copy.deepcopy(value)

    return change


def remove(holder: Any, key: Any) -> None:
    del holder[key]


def rename(holder: Any, key: Any) -> None:
    if isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
    else:
        holder.append(holder[key])


def deep(holder: Any, key: Any) -> None:
    """500 values in values: what the parser takes and nobody else need."""
    value: Any = holder[key]
    for _ in range(500):
        value = [value]
    holder[key] = value


# --- bytes -------------------------------------------------------------------------------


def with_header(header: Any, rest: bytes) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + rest


def _in_first(change: Callable[[dict[str, Any]], Any]) -> Callable[[bytes], bytes]:
    def changed(data: bytes) -> bytes:
        header, rest = header_of(data)
        arrays = {name: entry for name, entry in header.items() if name != "__metadata__"}
        change(header[max(arrays, key=lambda name: math.prod(arrays[name]["shape"]))])
        return with_header(header, rest)

    return changed


BYTE_CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda data: b"",
    "seven bytes": lambda data: data[:7],
    "half": lambda data: data[: len(data) // 2],
    "one byte less": lambda data: data[:-1],
    "more at the end": lambda data: data + b"\0" * 64,
    "a header of 100 GB": lambda data: (10**11).to_bytes(8, "little") + data[8:],
    "an endless header": lambda data: b"\xff" * 8 + data[8:],
    "no JSON": lambda data: data[:8] + b"\0" * len(data[8:]),
    "a list": lambda data: with_header([1, 2], b""),
    "deep JSON": lambda data: (10**5).to_bytes(8, "little") + b"[" * 10**5,
    "100 GB of numbers": _in_first(lambda e: e.update(shape=[10**5, 250_000])),
    "a shape that overflows": _in_first(lambda e: e.update(shape=[2**62, 2**62, 16])),
    "a negative shape": _in_first(lambda e: e.update(shape=[-n for n in e["shape"]])),
    "a shape of texts": _in_first(lambda e: e.update(shape=["1", None])),
    "no shape": _in_first(lambda e: e.pop("shape")),
    "another dtype": _in_first(lambda e: e.update(dtype="F8_E5M2")),
    "a dtype in a list": _in_first(lambda e: e.update(dtype=["F32"])),
    "offsets beyond the end": _in_first(
        lambda e: e.update(data_offsets=[n + 10**6 for n in e["data_offsets"]])
    ),
    "offsets below 0": _in_first(lambda e: e.update(data_offsets=[-8, e["data_offsets"][1] - 8])),
    "offsets turned around": _in_first(lambda e: e["data_offsets"].reverse()),
    "offsets of one byte more": _in_first(
        lambda e: e.update(data_offsets=[n + 1 for n in e["data_offsets"]])
    ),
}


# --- one at random -----------------------------------------------------------------------


def mutated(original: Crafted, rng: random.Random) -> tuple[Crafted, str]:
    """A model with one or two things wrong, and what."""
    crafted, changes = copy.deepcopy(original), []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        way = rng.random()
        try:
            if way < 0.5:
                name = rng.choice(sorted(crafted.arrays))
                change = rng.choice(sorted(ARRAY_CHANGES))
                crafted = changed_array(crafted, name, change)
                changes.append(f"{name}: {change}")
            elif way < 0.55:
                change = rng.choice(sorted(BYTE_CHANGES))
                crafted.change = BYTE_CHANGES[change]
                changes.append(change)
            elif way < 0.65:
                places_of_bytes = [(rng.random(), rng.randrange(256)) for _ in range(8)]
                crafted.change = partial(_with_bytes, changes=places_of_bytes)
                changes.append("bytes at random")
            else:
                path = rng.choice([p for p in places(crafted.settings) if p])
                edit = rng.choice((put(rng.choice(VALUES)), remove, rename, deep))
                changed_settings(crafted, path, edit)
                changes.append(f"{path}: {edit.__qualname__}")
        except (KeyError, IndexError, TypeError, ValueError, RecursionError):
            # a change before has taken away what this one would change, or nested it deeply
            continue
    return crafted, "; ".join(changes)


def _with_bytes(data: bytes, changes: list[tuple[float, int]]) -> bytes:
    """The data with other bytes at places from 0 to 1."""
    changed = bytearray(data)
    for place, byte in changes:
        changed[int(place * len(changed))] = byte
    return bytes(changed)
