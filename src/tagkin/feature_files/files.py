"""Features on disk as one array: .npy, a folder of shards, Parquet."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np

from tagkin.arrays import block_rows
from tagkin.errors import InvalidInput
from tagkin.feature_files.array_formats import FeatureFile, NpyFile, ParquetFile
from tagkin.filesystem import is_litter

__all__ = ["FeatureFiles", "open_features"]

# What a fingerprint reads at most, in how many runs of rows, and how much of it at a time.
HASHED_BYTES, N_RUNS, READ_BYTES = 2**30, 1024, 2**24


class FeatureFiles:
    """Features (N×d) in one or more files, concatenated.

    Attributes
    ----------
    shape : (N, d)
    dtype : float16, float32, float64 or a whole number of 8 or 16 bits
    """

    def __init__(self, files: Sequence[FeatureFile]):
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

        Up to a gibibyte, it depends on every number and its position. Beyond that, it depends on
        the files' sizes and times of change, and on a gibibyte of evenly spaced rows. So it reads
        at most a gibibyte, in about two seconds.
        """
        digest = hashlib.sha256(repr((self.shape, str(self.dtype))).encode())
        row_bytes = self.shape[1] * self.dtype.itemsize
        runs = _runs(len(self), max(N_RUNS, HASHED_BYTES // row_bytes))
        for file in self.files:
            digest.update(file.path.name.encode())
            if len(runs) > 1:
                status = file.path.stat()
                digest.update(repr((status.st_size, status.st_mtime_ns)).encode())
        step = max(1, READ_BYTES // row_bytes)
        for run in runs:
            for start in range(run.start, run.stop, step):
                rows = self.read(start, min(start + step, run.stop))
                digest.update(np.ascontiguousarray(rows).data)
        return digest.hexdigest()[:16]


def _runs(n: int, n_hashed: int) -> list[range]:
    """Return all of n rows, or `n_hashed` rows in evenly spaced runs of equal length."""
    if n <= n_hashed:
        return [range(n)]
    length = n_hashed // N_RUNS
    starts = np.linspace(0, n - length, N_RUNS).astype(int).tolist()
    return [range(start, start + length) for start in starts]


def open_features(path: str | os.PathLike[str] | FeatureFiles) -> FeatureFiles:
    """Open the features in a file or a folder, without reading them.

    Parameters
    ----------
    path : path
        An ``.npy`` file; a Parquet file with a column of lists or with one numeric column per
        feature; or a folder of shards, ``.npy`` or Parquet, in alphabetical order: ``part-10``
        comes before ``part-2``, and after ``part-02``.

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
    if location.is_dir():
        return FeatureFiles(_open_folder(location))
    if location.suffix in _FORMATS:
        return FeatureFiles([_FORMATS[location.suffix](location)])
    raise InvalidInput(
        f"{location} is not a file of features: pass an .npy or .parquet file, or a folder of "
        "shards."
    )


_FORMATS: dict[str, Callable[[Path], FeatureFile]] = {".npy": NpyFile, ".parquet": ParquetFile}


def _open_folder(folder: Path) -> list[FeatureFile]:
    files = (path for path in folder.iterdir() if not is_litter(path.name))
    paths = sorted(path for path in files if path.suffix in _FORMATS)
    suffixes = {path.suffix for path in paths}
    if len(suffixes) > 1:
        raise InvalidInput(f"{folder} has shards of two formats: {', '.join(sorted(suffixes))}.")
    if not paths:
        raise InvalidInput(f"{folder} has no shards: it needs .npy or .parquet files.")
    return [_FORMATS[path.suffix](path) for path in paths]
