"""Read row groups of Parquet files as arrays, for features on disk and a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from tagkin.errors import InvalidInput, MissingExtra, pip_install

__all__ = ["import_pyarrow", "is_list", "open_parquet", "read_row_group"]


def import_pyarrow() -> tuple[Any, Any]:
    """Return ``pyarrow`` and ``pyarrow.parquet``, or an error that says how to install them."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra(f"Parquet needs pyarrow: {pip_install('files')}") from error
    return pyarrow, pyarrow.parquet


def open_parquet(path: str | os.PathLike[str]) -> Any:
    """Open a Parquet file as a ``pyarrow.parquet.ParquetFile``; only its footer is read."""
    pyarrow, parquet = import_pyarrow()
    try:
        return parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise InvalidInput(f"{path} is not a complete Parquet file: {error}") from error


def is_list(kind: Any) -> bool:
    """Whether a column of this Arrow type contains lists, of a fixed length or not."""
    types = import_pyarrow()[0].types
    kinds = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(is_kind(kind) for is_kind in kinds)


def read_row_group(
    file: Any, group: int, columns: Sequence[str], path: str | os.PathLike[str]
) -> list[np.ndarray]:
    """Read columns of one row group of a ``pyarrow.parquet.ParquetFile``, which errors call `path`.

    A column of lists, which must have the same length, gives an array (n×d), any other one (n,).
    """
    table = file.read_row_group(group, columns=list(columns))
    return [_decode(table.column(name).combine_chunks(), name, path) for name in columns]


def _decode(values: Any, column: str, path: str | os.PathLike[str]) -> np.ndarray:
    numbers = values.flatten() if is_list(values.type) else values
    if numbers.null_count and import_pyarrow()[0].types.is_integer(numbers.type):
        raise InvalidInput(f"Numbers of the column {column!r} of {path} are missing.")
    if not is_list(values.type):
        return np.asarray(values.to_numpy(zero_copy_only=False))
    flat = numbers.to_numpy(zero_copy_only=False)
    lengths = np.unique(np.asarray(values.value_lengths()))
    if values.null_count or len(lengths) > 1:
        raise InvalidInput(
            f"Lists of the column {column!r} of {path} differ in length or are missing."
        )
    return np.asarray(flat.reshape(len(values), int(lengths[0]) if len(lengths) else 0))
