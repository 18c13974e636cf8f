"""Features and labels as Dask arrays with the same chunks."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

from tagkin.arrays import as_block, check_label_matrix
from tagkin.arrays.namespaces import LabelMatrix
from tagkin.distributed.cluster import compute, dask
from tagkin.errors import InvalidInput

if TYPE_CHECKING:
    from dask.array import Array as DaskArray
    from dask.delayed import Delayed
    from distributed import Client


@dataclass(frozen=True)
class Block:
    """Consecutive rows of an array, or a result computed from them, on a worker."""

    value: Delayed
    start: int
    stop: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.stop - self.start


def key(name: str) -> str:
    """Return a unique name for a task, which the dashboard shows."""
    return f"tagkin-{name}-{uuid.uuid4().hex}"


def put_in_graph(value: object, name: str) -> Delayed:
    """Make a model part of the graph, so it survives the loss of a worker."""
    return dask().delayed(value, traverse=False, pure=False, name=key(name))


def as_features(X: DaskArray | np.ndarray, name: str = "X") -> DaskArray:
    """Return X (N×d) as a Dask array with chunks of complete rows, without empty chunks."""
    da = dask().array
    if isinstance(X, np.ndarray):
        X = da.from_array(X, name=key(name))
    if not isinstance(X, da.Array):
        raise InvalidInput(
            f"{name} is a Dask array (images × features); found {type(X).__name__}. Create it with "
            "dask.array.from_array, from_zarr or from_npy_stack."
        )
    if X.ndim != 2:
        raise InvalidInput(f"Expected a 2D Dask array for {name}; found shape {X.shape}.")
    if X.dtype.kind not in "fiub":
        raise InvalidInput(f"{name} has the type {X.dtype}; features are real numbers.")
    _check_known(X, name)
    if X.shape[0] < 1 or X.shape[1] < 1:
        raise InvalidInput(f"{name} is empty: it has the shape {X.shape}.")
    return _rechunk_rows(X, tuple(size for size in X.chunks[0] if size))


def as_labels(Y: DaskArray | LabelMatrix, X: DaskArray) -> DaskArray:
    """Return labels Y (N×D), a dense or CSR Dask array or an array in memory, in X's chunks."""
    da = dask().array
    n, cuts = X.shape[0], X.chunks[0]
    if isinstance(Y, da.Array):
        if Y.ndim != 2:
            raise InvalidInput(
                f"Expected a 2D Dask array for Y (images × labels); found {Y.ndim}D."
            )
        _check_known(Y, "Y")
        if Y.shape[0] != n:
            raise InvalidInput(
                f"X and Y must have one row per image; found {n} rows in X and {Y.shape[0]} in Y."
            )
        return _rechunk_rows(Y, cuts)
    Y = check_label_matrix(Y, n)
    stops = np.cumsum(cuts).tolist()
    parts = [Y[stop - size : stop] for size, stop in zip(cuts, stops, strict=True)]
    return stack([put_in_graph(part, "labels") for part in parts], cuts, Y.shape[1], Y[:0])


def _check_known(array: DaskArray, name: str) -> None:
    if any(np.isnan(size) for sizes in array.chunks for size in sizes):
        raise InvalidInput(
            f"The chunk sizes of {name} are unknown, as after reading a table. Call "
            f"{name}.compute_chunk_sizes() first."
        )


def _rechunk_rows(array: DaskArray, cuts: tuple[int, ...]) -> DaskArray:
    wanted = (cuts, (array.shape[1],))
    return array if array.chunks == wanted else array.rechunk(wanted)


def stack(parts: list[Delayed], cuts: tuple[int, ...], width: int, like: LabelMatrix) -> DaskArray:
    """Stack delayed blocks into one Dask array; `like` is an empty array of their kind."""
    da = dask().array
    arrays = [
        da.from_delayed(part, shape=(size, width), dtype=like.dtype, meta=like)
        for part, size in zip(parts, cuts, strict=True)
    ]
    return da.concatenate(arrays, axis=0)


def blocks(X: DaskArray, name: str = "X") -> list[Block]:
    """Return the chunks of an array; the worker checks each chunk's type."""
    delayed = dask().delayed
    sizes = X.chunks[0]
    stops = np.cumsum(sizes).tolist()
    return [
        Block(
            delayed(check_block, pure=False)(
                part, X.dtype, stop - size, name, dask_key_name=key(f"read-{name}")
            ),
            stop - size,
            stop,
        )
        for part, size, stop in zip(X.to_delayed().ravel(), sizes, stops, strict=True)
    ]


def check_block(rows: LabelMatrix, dtype: np.dtype, start: int, name: str) -> LabelMatrix:
    """Return a block if it is a NumPy or SciPy array of the array's type; sparse ones as CSR."""
    kind = type(rows)
    block = f"The block of {name} from row {start} on"
    if not (isinstance(rows, np.ndarray) or scipy.sparse.issparse(rows)):
        device = getattr(rows, "device", None)
        place = f" on {device}" if device is not None else ""
        raise InvalidInput(
            f"{block} is a {kind.__module__}.{kind.__name__}{place}; blocks are NumPy arrays, for "
            "labels also SciPy CSR arrays. Convert it: X.map_blocks(lambda block: "
            "block.cpu().numpy())."
        )
    if rows.dtype != dtype:
        raise InvalidInput(
            f"{block} is {rows.dtype}, but the array is {dtype}. All blocks need the same type. "
            f"Convert them: {name}.map_blocks(lambda block: block.astype('{dtype}'))."
        )
    return scipy.sparse.csr_array(rows) if scipy.sparse.issparse(rows) else rows


@contextlib.contextmanager
def named_rows(start: int, stop: int) -> Iterator[None]:
    """Add a block's rows to its errors, because a block counts its rows from zero."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"In rows {start} to {stop - 1}, counted from there: {error}") from error


def float_dtype(dtype: np.dtype) -> np.dtype:
    """Return the type for computations with blocks of this type."""
    return as_block(np.zeros((1, 1), dtype=dtype)).dtype


def fetch_rows(X: DaskArray, indices: np.ndarray, client: Client) -> LabelMatrix:
    """Fetch rows (ascending) of a Dask array to this machine."""
    return compute(X if len(indices) == X.shape[0] else X[indices], client=client)
