"""Features on disk as one array: an .npy file, or a folder of such shards."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np

from tagkin.arrays import block_rows
from tagkin.errors import InvalidInput
from tagkin.filesystem import is_litter

__all__ = ["FeatureFiles", "open_features"]

_DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int16", "uint16")
_GAP = 16  # rows nearer than this are read in one call
_N_HASHED = 1024  # rows


class NpyFile:
    """Rows of features in NumPy's own format.

    They are read when needed, not mapped, because used maps count as memory.
    """

    def __init__(self, path: Path):
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise InvalidInput(f"{path} is not a complete .npy file of numbers: {error}") from error
        if array.ndim != 2 or array.shape[1] < 1:
            raise InvalidInput(
                f"{path} contains an array of shape {array.shape}; expected images × features."
            )
        if str(array.dtype) not in _DTYPES:
            raise InvalidInput(
                f"{path} contains numbers of type {array.dtype}; expected one of "
                f"{', '.join(_DTYPES)}."
            )
        if not array.flags.c_contiguous:
            raise InvalidInput(
                f"{path} is stored column by column. Write it again with "
                "np.save(path, np.ascontiguousarray(array))."
            )
        self.path, self.shape, self.dtype = path, array.shape, array.dtype
        self._row_bytes = self.shape[1] * self.dtype.itemsize
        self._offset = array.offset  # not computed from the end, because more data may follow

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read rows start … stop − 1."""
        shape, offset = (stop - start, self.shape[1]), self._offset + start * self._row_bytes
        numbers = np.fromfile(self.path, self.dtype, shape[0] * shape[1], offset=offset)
        if numbers.size < shape[0] * shape[1]:
            raise InvalidInput(f"{self.path} ends before row {stop}. Is it still being copied?")
        return numbers.reshape(shape)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Read rows by ascending number."""
        taken = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        cuts = np.flatnonzero(np.diff(rows) > _GAP) + 1
        for numbers in np.split(np.arange(len(rows)), cuts) if len(rows) else []:
            first = int(rows[numbers[0]])
            block = self.read(first, int(rows[numbers[-1]]) + 1)
            taken[numbers] = block[rows[numbers] - first]
        return taken


class FeatureFiles:
    """Features (N×d) in one or more files, concatenated.

    Attributes
    ----------
    shape : (N, d)
    dtype : float16, float32, float64 or a whole number of 8 or 16 bits
    """

    def __init__(self, files: Sequence[NpyFile]):
        first = files[0]
        for file in files[1:]:
            if file.dtype != first.dtype or file.shape[1] != first.shape[1]:
                raise InvalidInput(
                    f"{file.path} has {file.shape[1]} features in {file.dtype}, but "
                    f"{first.path} has {first.shape[1]} in {first.dtype}. All shards of a "
                    "collection must have the same width and type."
                )
        self.files = list(files)
        self._starts = np.concatenate([[0], np.cumsum([file.shape[0] for file in files])])
        self.shape = int(self._starts[-1]), first.shape[1]
        self.dtype = first.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read rows start … stop − 1.

        Parameters
        ----------
        start : int
            The first row.
        stop : int
            The row after the last.
        """
        parts = []
        for file, first in zip(self.files, self._starts[:-1].tolist(), strict=True):
            here = max(start - first, 0), min(stop - first, file.shape[0])
            if here[0] < here[1]:
                parts.append(file.read(*here))
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty((0, self.shape[1]), self.dtype)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Read rows by ascending number."""
        taken = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        of_file = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(of_file).tolist():
            here = of_file == number
            taken[here] = self.files[number].take(rows[here] - self._starts[number])
        return taken

    def blocks(self, start: int = 0) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield consecutive rows from `start` on, in blocks of a third of the memory budget.

        A thread reads the next block while the caller uses this one. Block boundaries do not
        depend on `start`, so resumed work gives the same result.
        """
        step = block_rows(3 * self.shape[1] * self.dtype.itemsize)
        stops = range(start - start % step + step, len(self) + step, step)
        cuts = [start, *(min(stop, len(self)) for stop in stops)]
        with ThreadPoolExecutor(1) as pool:
            waiting = None
            for first, last in pairwise(cuts):
                if first >= last:
                    continue
                following = pool.submit(self.read, first, last)
                if waiting is not None:
                    yield waiting[0], waiting[1].result()
                waiting = slice(first, last), following
            if waiting is not None:
                yield waiting[0], waiting[1].result()

    def fingerprint(self) -> str:
        """Return a short text that changes with the features.

        It depends on the files' names, sizes and times of change, and on 1,024 of the rows.
        """
        digest = hashlib.sha256(repr((self.shape, str(self.dtype))).encode())
        for file in self.files:
            status = file.path.stat()
            digest.update(repr((file.path.name, status.st_size, status.st_mtime_ns)).encode())
        rows = np.unique(np.linspace(0, max(0, len(self) - 1), _N_HASHED).astype(int))
        digest.update(self.take(rows[: len(self)]).data)
        return digest.hexdigest()[:16]


def open_features(path: str | os.PathLike[str] | FeatureFiles) -> FeatureFiles:
    """Open the features in a file or a folder, without reading them.

    Parameters
    ----------
    path : path
        An ``.npy`` file, or a folder of such files, which are concatenated in the order of their
        names: ``part-10`` comes before ``part-2``, and after ``part-02``.

    Examples
    --------
    >>> from tagkin.feature_files import open_features
    >>> open_features("features/").shape  # doctest: +SKIP
    (1000000, 1280)
    """
    if isinstance(path, FeatureFiles):
        return path
    location = Path(path)
    if not location.exists():
        raise InvalidInput(f"There are no features at {location}.")
    if not location.is_dir() and location.suffix != ".npy":
        raise InvalidInput(f"{location} is not an .npy file, nor a folder of such shards.")
    paths = [location]
    if location.is_dir():
        paths = sorted(path for path in location.glob("*.npy") if not is_litter(path.name))
    if not paths:
        raise InvalidInput(f"{location} has no shards: it needs .npy files.")
    return FeatureFiles([NpyFile(path) for path in paths])
