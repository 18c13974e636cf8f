"""Features of very many photographs, from paths to Parquet and from Parquet to Dask arrays."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tagkin.distributed.blocks import key
from tagkin.distributed.cluster import client_or_current, dask, result, submitting, wait
from tagkin.distributed.extraction import see
from tagkin.errors import ClusterLost, InvalidInput, Parameter, StorageError
from tagkin.features import get_backbone
from tagkin.filesystem import whole_file
from tagkin.images import Failure
from tagkin.sources.parquet import import_pyarrow, open_parquet, read_row_group

__all__ = ["extract_to_parquet", "read_parquet"]

_FILES = 8192  # photographs of a part where a list is given; rows of a row group
_FAILURES = b"tagkin.failures"
_NOT_TEXT = "its name is not UTF-8, and cannot stand in a Parquet file. Rename it"


def extract_to_parquet(
    files: Any,
    folder: str | os.PathLike[str],
    backbone: str = "efficientnet-lite0-whole",
    *,
    client: Any = None,
) -> list[Failure]:
    """Features of photographs into a folder of Parquet files that all workers can write to.

    For collections whose features are too many for one machine. A partition of the bag becomes
    a file with the columns ``file``, ``digest`` and ``features``, written whole or not at all:
    a second run does what is missing.

    Parameters
    ----------
    files : dask.bag.Bag of paths, or sequence of paths
        Such as ``dask.bag.read_text("paths-*.txt").map(str.strip)``; 10,000 to 100,000 paths are
        a good partition.
    folder : path
        Seen by this machine and by all workers.
    backbone : str
    client : distributed.Client, optional
        By default the one that is in use.

    Returns
    -------
    failures : list of Failure
        Photographs that could not be read; they have no row.
    """
    import_pyarrow()
    client = client_or_current(client)
    target = Path(folder).absolute()
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{target} cannot be created: {error.strerror}.") from error
    fingerprint = get_backbone(backbone).fingerprint
    write = dask().delayed(_written, pure=False)
    tasks = [
        write(part, number, str(target), backbone, fingerprint, dask_key_name=key("extract"))
        for number, part in enumerate(_partitions(files))
    ]
    with submitting(client):
        futures = client.compute(tasks)
    try:
        wait(futures, client)
        failures: list[Failure] = []
        for future in futures:
            failures += result(future, client)
    except ClusterLost as error:
        n = len(list(target.glob("part-*.parquet")))
        raise ClusterLost(f"{error} {n} of {len(tasks)} parts are in {target}.") from None
    return failures


def _partitions(files: Any) -> list[Any]:
    if hasattr(files, "to_delayed"):
        return list(files.to_delayed())
    if isinstance(files, (str, bytes, os.PathLike)):
        raise InvalidInput(f"files is a list of paths; found one path, {os.fspath(files)!r}.")
    paths = [os.path.abspath(file) for file in files]
    return [paths[i : i + _FILES] for i in range(0, len(paths), _FILES)]


def _written(
    files: Sequence[str], number: int, folder: str, backbone: str, fingerprint: str
) -> list[Failure]:
    """One part, on a worker; its failures. A part that is there already is left as it is."""
    pyarrow, parquet = import_pyarrow()
    paths = [os.fspath(file) for file in files]
    named = "\0".join([fingerprint, *paths]).encode(errors="surrogateescape")
    mark = hashlib.sha256(named).hexdigest()[:12]
    target = Path(folder) / f"part-{number:06d}-{mark}.parquet"
    for other in target.parent.glob(f"part-{number:06d}-*.parquet"):
        if other != target:
            raise InvalidInput(
                f"{other} holds features of other photographs, or by another network. Choose an "
                "empty folder, or the same partitions."
            )
    if target.exists():
        known = parquet.read_schema(target).metadata or {}
        return [Failure(*pair) for pair in json.loads(known.get(_FAILURES, b"[]"))]
    failures = [Failure(path, _NOT_TEXT) for path in paths if not _is_text(path)]
    paths = [path for path in paths if _is_text(path)]
    tables = []
    for start in range(0, len(paths), _FILES):
        seen = see(paths[start : start + _FILES], backbone, fingerprint)
        failures += seen.failures
        tables.append(_table(pyarrow, seen))
    if not tables:
        return failures
    noted = json.dumps([[one.file, one.reason] for one in failures]).encode()
    table = pyarrow.concat_tables(tables).replace_schema_metadata({_FAILURES: noted})
    try:
        with whole_file(target) as scratch:
            parquet.write_table(table, scratch, row_group_size=_FILES)
    except OSError as error:
        raise StorageError(f"{target} cannot be written: {error}") from error
    return failures


def _is_text(path: str) -> bool:
    """Whether a path can stand in a table: on some systems, names are any bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _table(pyarrow: Any, seen: Any) -> Any:
    width = seen.features.shape[1]
    features = pyarrow.FixedSizeListArray.from_arrays(seen.features.ravel(), width)
    return pyarrow.table({"file": seen.files, "digest": seen.digests, "features": features})


def read_parquet(path: str | os.PathLike[str], column: str = "features") -> Any:
    """A column of a Parquet file, or of a folder of them, as a Dask array.

    Parameters
    ----------
    path : path
        Files of a folder come in the order of their names. All workers must see them.
    column : str, default "features"
        A column of lists of one length gives an array (N×d), any other one an array (N,).

    Returns
    -------
    array : Dask array
        A chunk for each row group.
    """
    da = dask().array
    found = Path(path).absolute()
    names = sorted(found.glob("*.parquet")) if found.is_dir() else [found]
    if not names or not names[0].exists():
        raise InvalidInput(f"There is no Parquet file at {found}.")
    sizes: list[int] = []
    parts = []
    for name in names:
        about = open_parquet(name).metadata
        _check_column(about.schema.to_arrow_schema(), column, name)
        for group in range(about.num_row_groups):
            sizes.append(about.row_group(group).num_rows)
            parts.append((str(name), group))
    if not sum(sizes):
        raise InvalidInput(f"The Parquet files at {found} have no rows.")
    first = next(part for part, size in zip(parts, sizes, strict=True) if size)
    like = _group(*first, column, None, None)
    read = dask().delayed(_group, pure=False)
    arrays = [
        da.from_delayed(
            read(*part, column, like.shape[1:], like.dtype, dask_key_name=key("parquet")),
            shape=(size, *like.shape[1:]),
            dtype=like.dtype,
        )
        for part, size in zip(parts, sizes, strict=True)
        if size
    ]
    return da.concatenate(arrays, axis=0)


def _check_column(schema: Any, column: str, name: Path) -> None:
    if column not in schema.names:
        raise InvalidInput(
            f"{name} has no column {column!r}; it has {', '.join(schema.names)}. Pass another ",
            Parameter("column"),
            ".",
        )


def _group(path: str, number: int, column: str, shape: Any, dtype: Any) -> np.ndarray:
    """One row group of a column, which must be like that of the first file."""
    rows = read_row_group(open_parquet(path), number, [column], path)[0]
    if shape is not None and (rows.shape[1:] != shape or rows.dtype != dtype):
        raise InvalidInput(
            f"The column {column!r} of {path} holds {rows.dtype} of shape {rows.shape[1:]} where "
            f"the first file has {dtype} of shape {shape}. Files of one collection are alike."
        )
    return rows
