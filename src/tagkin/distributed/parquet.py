"""Write features of many photographs to Parquet files, and read them as Dask arrays."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from tagkin.distributed.chunks import key
from tagkin.distributed.cluster import client_or_current, dask, detect_loss, result, wait
from tagkin.distributed.extraction import see
from tagkin.errors import ClusterLost, InvalidInput, Parameter, StorageError
from tagkin.feature_files.array_formats import import_pyarrow, open_parquet, read_row_group
from tagkin.features import Extraction, get_backbone
from tagkin.filesystem import atomic_write
from tagkin.images import Failure

if TYPE_CHECKING:
    from dask.array import Array as DaskArray
    from dask.bag import Bag
    from dask.delayed import Delayed
    from distributed import Client

__all__ = ["extract_to_parquet", "read_parquet"]

_FILES = 8192  # photographs per part if `files` is a list; rows of a row group
_FAILURES = b"tagkin.failures"
_NOT_TEXT = "its name is not UTF-8, which a Parquet file cannot store. Rename it"


def extract_to_parquet(
    files: Bag | Sequence[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    backbone: str = "efficientnet-lite0-whole",
    *,
    client: Client | None = None,
) -> list[Failure]:
    """Extract features of photographs into a folder of Parquet files, which workers write.

    Use it for collections whose features do not fit on a single machine. Each partition of the bag
    becomes a file with the columns ``file``, ``digest`` and ``features``. Files are written
    completely or not at all; a second run writes only the missing files.

    Parameters
    ----------
    files : dask.bag.Bag of paths, or sequence of paths
        Such as ``dask.bag.read_text("paths-*.txt").map(str.strip)``; 10,000 to 100,000 paths are
        a good partition.
    folder : path
        Visible to this machine and all workers.
    backbone : str
    client : distributed.Client, optional

    Returns
    -------
    failures : list of Failure
        Unreadable photographs; they have no row.
    """
    import_pyarrow()
    client = client_or_current(client)
    target = Path(folder).absolute()
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{target} cannot be created: {error.strerror}.") from error
    fingerprint = get_backbone(backbone).fingerprint
    write = dask().delayed(_write_part, pure=False)
    tasks = [
        write(part, number, str(target), backbone, fingerprint, dask_key_name=key("extract"))
        for number, part in enumerate(_partitions(files))
    ]
    with detect_loss(client):
        futures = client.compute(tasks)
    try:
        wait(futures, client)
        failures: list[Failure] = []
        for future in futures:
            failures += result(future, client, list)
    except ClusterLost as error:
        n = len(list(target.glob("part-*.parquet")))
        raise ClusterLost(f"{error} {n} of {len(tasks)} parts are in {target}.") from None
    return failures


def _partitions(
    files: Bag | Sequence[str | os.PathLike[str]],
) -> list[Delayed] | list[list[str]]:
    if hasattr(files, "to_delayed"):
        return list(files.to_delayed())
    if isinstance(files, (str, bytes, os.PathLike)):
        raise InvalidInput(f"files must be a list of paths; found one path, {os.fspath(files)!r}.")
    paths = [os.path.abspath(file) for file in files]
    return [paths[i : i + _FILES] for i in range(0, len(paths), _FILES)]


def _write_part(
    files: Sequence[str], number: int, folder: str, backbone: str, fingerprint: str
) -> list[Failure]:
    """Write one part on a worker, unless it exists; return its failures."""
    pyarrow, parquet = import_pyarrow()
    paths = [os.fspath(file) for file in files]
    identity = "\0".join([fingerprint, *paths]).encode(errors="surrogateescape")
    digest = hashlib.sha256(identity).hexdigest()[:12]
    target = Path(folder) / f"part-{number:06d}-{digest}.parquet"
    for other in target.parent.glob(f"part-{number:06d}-*.parquet"):
        if other != target:
            raise InvalidInput(
                f"{other} has features of other photographs or of another network. Choose an empty "
                "folder, or the same partitions."
            )
    if target.exists():
        metadata = parquet.read_schema(target).metadata or {}
        return [Failure(*pair) for pair in json.loads(metadata.get(_FAILURES, b"[]"))]
    failures = [Failure(path, _NOT_TEXT) for path in paths if not _is_text(path)]
    paths = [path for path in paths if _is_text(path)]
    tables = []
    for start in range(0, len(paths), _FILES):
        extraction = see(paths[start : start + _FILES], backbone, fingerprint)
        failures += extraction.failures
        tables.append(_table(pyarrow, extraction))
    if not tables:
        return failures
    stored = json.dumps([[failure.file, failure.reason] for failure in failures]).encode()
    table = pyarrow.concat_tables(tables).replace_schema_metadata({_FAILURES: stored})
    try:
        with atomic_write(target) as scratch:
            parquet.write_table(table, scratch, row_group_size=_FILES)
    except OSError as error:
        raise StorageError(f"{target} cannot be written: {error}") from error
    return failures


def _is_text(path: str) -> bool:
    """Whether a table can store a path; on some systems, names are arbitrary bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _table(pyarrow: ModuleType, extraction: Extraction) -> object:
    width = extraction.features.shape[1]
    features = pyarrow.FixedSizeListArray.from_arrays(extraction.features.ravel(), width)
    return pyarrow.table(
        {"file": extraction.files, "digest": extraction.digests, "features": features}
    )


def read_parquet(path: str | os.PathLike[str], column: str = "features") -> DaskArray:
    """Read a column of a Parquet file, or of a folder of Parquet files, as a Dask array.

    Parameters
    ----------
    path : path
        Files of a folder are in the order of their names. All workers must see them.
    column : str, default "features"
        A column of lists of the same length gives an array (N×d), any other column an array (N,).

    Returns
    -------
    array : Dask array
        One chunk for each row group.
    """
    da = dask().array
    location = Path(path).absolute()
    names = sorted(location.glob("*.parquet")) if location.is_dir() else [location]
    if not names or not names[0].exists():
        raise InvalidInput(f"There is no Parquet file at {location}.")
    sizes: list[int] = []
    parts = []
    for name in names:
        metadata = open_parquet(name).metadata
        columns = metadata.schema.to_arrow_schema().names
        if column not in columns:
            raise InvalidInput(
                f"{name} has no column {column!r}; it has {', '.join(columns)}. Pass another ",
                Parameter("column"),
                ".",
            )
        for group in range(metadata.num_row_groups):
            sizes.append(metadata.row_group(group).num_rows)
            parts.append((str(name), group))
    if not sum(sizes):
        raise InvalidInput(f"The Parquet files at {location} have no rows.")
    first = next(part for part, size in zip(parts, sizes, strict=True) if size)
    like = _group(*first, column)
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


def _group(
    path: str,
    number: int,
    column: str,
    shape: tuple[int, ...] | None = None,
    dtype: np.dtype | None = None,
) -> np.ndarray:
    """Read one row group of a column, which must have the first file's shape and type."""
    rows = read_row_group(open_parquet(path), number, [column], path)[0]
    if shape is not None and (rows.shape[1:] != shape or rows.dtype != dtype):
        raise InvalidInput(
            f"The column {column!r} of {path} has {rows.dtype} of shape {rows.shape[1:]}, but the "
            f"first file has {dtype} of shape {shape}. All files must have the same shape and type."
        )
    return rows
