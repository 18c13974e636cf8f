"""File formats of features (n×d): .npy, and Parquet, which a Dask cluster also reads."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from tagkin.errors import InvalidInput, MissingExtra, pip_install

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

__all__ = [
    "FeatureFile",
    "NpyFile",
    "ParquetFile",
    "import_pyarrow",
    "open_parquet",
    "read_row_group",
]

_DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int16", "uint16")
_GAP = 16  # rows of an .npy file nearer than this are read in one call


class FeatureFile(ABC):
    """Rows of features in a file, read when needed."""

    path: Path
    shape: tuple[int, int]
    dtype: np.dtype

    def _describe(self, path: Path, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        """Check and store path, shape and type of the file."""
        if len(shape) != 2 or shape[1] < 1:
            raise InvalidInput(
                f"{path} contains an array of shape {tuple(shape)}; expected images × features."
            )
        if str(dtype) not in _DTYPES:
            raise InvalidInput(
                f"{path} contains numbers of type {dtype}; expected one of {', '.join(_DTYPES)}."
            )
        self.path, self.shape, self.dtype = path, (int(shape[0]), int(shape[1])), np.dtype(dtype)

    @abstractmethod
    def read(self, start: int, stop: int) -> np.ndarray:
        """Read rows start … stop − 1."""

    @abstractmethod
    def take(self, rows: np.ndarray) -> np.ndarray:
        """Read rows by ascending number."""


class NpyFile(FeatureFile):
    """NumPy's own format. Rows are read, not mapped, because used maps count as memory."""

    def __init__(self, path: Path):
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise InvalidInput(f"{path} is not a complete .npy file of numbers: {error}") from error
        self._describe(path, array.shape, array.dtype)
        if not array.flags.c_contiguous:
            raise InvalidInput(
                f"{path} is stored column by column. Write it again with "
                "np.save(path, np.ascontiguousarray(array))."
            )
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


class ParquetFile(FeatureFile):
    """A Parquet file with one column of lists, or with one numeric column per feature."""

    def __init__(self, path: Path):
        self.path = path
        types = import_pyarrow()[0].types
        self._file = open_parquet(path)
        schema = self._file.schema_arrow
        lists = [field.name for field in schema if _is_list(field.type)]
        if len(lists) > 1:
            raise InvalidInput(
                f"{path} has several columns of lists ({', '.join(lists)}). Keep only the features."
            )
        self._list = bool(lists)
        numeric = [f.name for f in schema if types.is_integer(f.type) or types.is_floating(f.type)]
        self._columns = lists or numeric
        if not self._columns:
            raise InvalidInput(f"{path} has neither a column of lists nor numeric columns.")
        kinds = {
            schema.field(name).type.value_type if self._list else schema.field(name).type
            for name in self._columns
        }
        if len(kinds) > 1:
            names = ", ".join(sorted(str(kind) for kind in kinds))
            raise InvalidInput(f"{path} mixes numbers of types {names}; use one type.")
        sizes = [
            self._file.metadata.row_group(i).num_rows for i in range(self._file.num_row_groups)
        ]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        self._last: tuple[int, np.ndarray] = (-1, np.empty((0, 0)))
        dtype = np.dtype(kinds.pop().to_pandas_dtype())
        width = len(self._columns)
        if self._list:
            filled = np.flatnonzero(sizes)
            width = self._group(int(filled[0])).shape[1] if len(filled) else 0
        self._describe(path, (int(self._starts[-1]), width), dtype)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read rows start … stop − 1."""
        return self.take(np.arange(start, stop))

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Read rows by ascending number."""
        taken = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        groups = np.searchsorted(self._starts, rows, side="right") - 1
        for group in np.unique(groups).tolist():
            here, decoded = groups == group, self._group(group)
            if decoded.shape[1] != self.shape[1]:
                raise InvalidInput(
                    f"Lists of the column {self._columns[0]!r} of {self.path} differ in length: "
                    f"{self.shape[1]} in its first rows, {decoded.shape[1]} from row "
                    f"{self._starts[group]} on."
                )
            taken[here] = decoded[rows[here] - self._starts[group]]
        return taken

    def _group(self, number: int) -> np.ndarray:
        """Return a decoded row group; cache the last, because blocks end within groups."""
        if self._last[0] == number:
            return self._last[1]
        columns = read_row_group(self._file, number, self._columns, self.path)
        rows = columns[0] if self._list else np.column_stack(columns)
        self._last = number, rows
        return rows


# --- Parquet -----------------------------------------------------------------------------


def import_pyarrow() -> tuple[ModuleType, ModuleType]:
    """Return ``pyarrow`` and ``pyarrow.parquet``, or an error that says how to install them."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra(f"Parquet needs pyarrow: {pip_install('files')}") from error
    return pyarrow, pyarrow.parquet


def open_parquet(path: str | os.PathLike[str]) -> pyarrow.parquet.ParquetFile:
    """Open a Parquet file as a ``pyarrow.parquet.ParquetFile``; only its footer is read."""
    pyarrow, parquet = import_pyarrow()
    try:
        return parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise InvalidInput(f"{path} is not a complete Parquet file: {error}") from error


def _is_list(kind: pyarrow.DataType) -> bool:
    """Whether a column of this Arrow type contains lists, of a fixed length or not."""
    types = import_pyarrow()[0].types
    kinds = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(is_kind(kind) for is_kind in kinds)


def read_row_group(
    file: pyarrow.parquet.ParquetFile,
    group: int,
    columns: Sequence[str],
    path: str | os.PathLike[str],
) -> list[np.ndarray]:
    """Read columns of one row group of a ``pyarrow.parquet.ParquetFile``, which errors call `path`.

    A column of lists, which must have the same length, gives an array (n×d), any other one (n,).
    """
    table = file.read_row_group(group, columns=list(columns))
    return [_decode(table.column(name).combine_chunks(), name, path) for name in columns]


def _decode(values: pyarrow.Array, column: str, path: str | os.PathLike[str]) -> np.ndarray:
    numbers = values.flatten() if _is_list(values.type) else values
    if numbers.null_count and import_pyarrow()[0].types.is_integer(numbers.type):
        raise InvalidInput(f"Numbers of the column {column!r} of {path} are missing.")
    if not _is_list(values.type):
        return np.asarray(values.to_numpy(zero_copy_only=False))
    flat = numbers.to_numpy(zero_copy_only=False)
    lengths = np.unique(np.asarray(values.value_lengths()))
    if values.null_count or len(lengths) > 1:
        raise InvalidInput(
            f"Lists of the column {column!r} of {path} differ in length or are missing."
        )
    return np.asarray(flat.reshape(len(values), int(lengths[0]) if len(lengths) else 0))
