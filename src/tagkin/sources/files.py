"""Features on disk as one array: .npy, a folder of shards, Parquet, Zarr."""

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
from tagkin.filesystem import is_litter
from tagkin.sources._formats import FeatureFile, NpyFile, ParquetFile, ZarrFile

__all__ = ["FeatureFiles", "open_features"]

# What a fingerprint reads at most, in how many runs of rows, and how much of it at a time.
_HASHED_BYTES, _N_RUNS, _READ_BYTES = 2**30, 1024, 2**24


class FeatureFiles:
    """Features (N×d) in one or more files, one after the other.

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
                    f"{file.path} holds {file.shape[1]} features in {file.dtype} where "
                    f"{first.path} holds {first.shape[1]} in {first.dtype}. Shards of one "
                    "collection are of one width and type."
                )
        self.files = list(files)
        self._starts = np.concatenate([[0], np.cumsum([file.shape[0] for file in files])])
        self.shape = int(self._starts[-1]), first.shape[1]
        self.dtype = first.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, start: int, stop: int) -> np.ndarray:
        """Rows start … stop − 1, in memory."""
        parts = []
        for file, first in zip(self.files, self._starts[:-1].tolist(), strict=True):
            here = max(start - first, 0), min(stop - first, file.shape[0])
            if here[0] < here[1]:
                parts.append(file.read(*here))
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty((0, self.shape[1]), self.dtype)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Rows by ascending number, in memory."""
        taken = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        of_file = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(of_file).tolist():
            here = of_file == number
            taken[here] = self.files[number].take(rows[here] - self._starts[number])
        return taken

    def blocks(self, start: int = 0) -> Iterator[tuple[slice, np.ndarray]]:
        """Consecutive rows from `start` on, in blocks of a third of the memory budget.

        A thread reads the next block while this one is worked on. Blocks begin at the same rows
        wherever one starts, so that work that was broken off goes on to the same result.
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
        """A short text for the features, which differs where they do.

        Up to a gibibyte every number and its position count. Of more, the files' sizes and times of
        change count, and a gibibyte of rows in runs that are spread over all of them. So it costs
        the reading of a gibibyte at most, and two seconds.
        """
        seen = hashlib.sha256(repr((self.shape, str(self.dtype))).encode())
        row_bytes = self.shape[1] * self.dtype.itemsize
        runs = _runs(len(self), max(_N_RUNS, _HASHED_BYTES // row_bytes))
        for file in self.files:
            seen.update(file.path.name.encode())
            if len(runs) > 1:
                status = file.path.stat()
                seen.update(repr((status.st_size, status.st_mtime_ns)).encode())
        step = max(1, _READ_BYTES // row_bytes)
        for run in runs:
            for start in range(run.start, run.stop, step):
                some = self.read(start, min(start + step, run.stop))
                seen.update(np.ascontiguousarray(some).data)
        return seen.hexdigest()[:16]


def _runs(n: int, n_hashed: int) -> list[range]:
    """All of n rows, or so many of them in runs of equal length, the last of them at the end."""
    if n <= n_hashed:
        return [range(n)]
    length = n_hashed // _N_RUNS
    starts = np.linspace(0, n - length, _N_RUNS).astype(int).tolist()
    return [range(start, start + length) for start in starts]


def open_features(path: str | os.PathLike[str] | FeatureFiles) -> FeatureFiles:
    """Features from a file or a folder, without reading them.

    Parameters
    ----------
    path : path
        An ``.npy`` file; a Parquet file with a column of lists or with one numeric column per
        feature; a Zarr array; or a folder of shards, ``.npy`` or Parquet, in the order of their
        names as texts: ``part-10`` comes before ``part-2``, and after ``part-02``.

    Examples
    --------
    >>> from tagkin.sources import open_features
    >>> open_features("features/").shape  # doctest: +SKIP
    (1000000, 1280)
    """
    if isinstance(path, FeatureFiles):
        return path
    found = Path(path)
    if not found.exists():
        raise InvalidInput(f"There are no features at {found}.")
    if found.is_dir():
        return FeatureFiles(_in_folder(found))
    if found.suffix in _FORMATS:
        return FeatureFiles([_FORMATS[found.suffix](found)])
    raise InvalidInput(
        f"{found} is not a file of features: pass an .npy or .parquet file, a Zarr array, or a "
        "folder of shards."
    )


_FORMATS: dict[str, Callable[[Path], FeatureFile]] = {".npy": NpyFile, ".parquet": ParquetFile}


def _in_folder(folder: Path) -> list[FeatureFile]:
    if any((folder / name).exists() for name in ("zarr.json", ".zarray")):
        return [ZarrFile(folder)]
    there = (path for path in folder.iterdir() if not is_litter(path.name))
    paths = sorted(path for path in there if path.suffix in _FORMATS)
    suffixes = {path.suffix for path in paths}
    if len(suffixes) > 1:
        raise InvalidInput(f"{folder} holds shards of two formats: {', '.join(sorted(suffixes))}.")
    if not paths:
        raise InvalidInput(f"{folder} holds no shards: no .npy and no .parquet file.")
    return [_FORMATS[path.suffix](path) for path in paths]
