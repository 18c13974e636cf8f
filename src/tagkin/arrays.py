"""The one door to NumPy and torch: namespace, dtype, blocks under a memory budget.

Everything above works on "arrays": NumPy arrays, memory maps, or torch tensors on
any device. torch is never imported here unless a torch tensor comes in.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

import numpy as np
import scipy.linalg
import scipy.sparse
from array_api_compat import array_namespace, device, is_torch_array
from scipy.special import expit as _expit
from sklearn.utils import check_array
from threadpoolctl import ThreadpoolController

from tagkin._device import (
    device_budget,
    in_tf32,
    is_out_of_memory,
    on_accelerator,
    release_cached,
    round_to_tf32,
    torch_precision,
)
from tagkin.errors import InvalidInput, MissingExtra

__all__ = [
    "Array",
    "any_nonzero",
    "as_block",
    "bincount",
    "block_rows",
    "check_features",
    "check_finite",
    "check_label_matrix",
    "cholesky",
    "eigh",
    "expit",
    "in_tf32",
    "is_out_of_memory",
    "kth_largest",
    "like",
    "matmul",
    "matmul_precision",
    "memory_budget",
    "mirror_lower",
    "namespace",
    "on_accelerator",
    "on_device",
    "one_host_thread",
    "round_to_tf32",
    "row_blocks",
    "run_in_threads",
    "segment_sums",
    "smaller_blocks_when_full",
    "solve_triangular",
    "to_numpy",
    "weighted_rows",
]

P = ParamSpec("P")
T = TypeVar("T")

Array = Any  # a NumPy array or a torch tensor; there is no common base class to name

DEFAULT_BUDGET = 128 * 2**20
PRECISIONS = ("float32", "tf32")
_TILE = 256
_SMALL = 512  # up to this size a processor finds eigenvectors sooner than an accelerator
_budget: contextvars.ContextVar[int | None] = contextvars.ContextVar("budget", default=None)


# --- namespaces, devices, dtypes ---------------------------------------------------------


def namespace(*arrays: Array) -> Any:
    """The array API namespace that all of `arrays` share; mixed kinds are an error."""
    kinds = {"torch" if is_torch_array(a) else "NumPy" for a in arrays}
    if len(kinds) > 1:
        raise InvalidInput(
            "Found NumPy arrays and torch tensors in one call. Convert one side: "
            "torch.from_numpy(array) or tensor.cpu().numpy()."
        )
    devices = {str(device(a)) for a in arrays}
    if len(devices) > 1:
        raise InvalidInput(
            f"Found arrays on different devices: {', '.join(sorted(devices))}. "
            "Move them to one with tensor.to(device)."
        )
    return array_namespace(*arrays)


def to_numpy(array: Array) -> np.ndarray:
    """The values as a NumPy array on the host."""
    if not is_torch_array(array):
        return np.asarray(array)
    array = array.detach().cpu()
    return (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy()


def like(array: Array, reference: Array) -> Array:
    """`array` (dense or sparse) as a dense array of `reference`'s kind, device and dtype."""
    xp = namespace(reference)
    if scipy.sparse.issparse(array):
        array = array.toarray()
    if is_torch_array(reference) and not is_torch_array(array):
        # torch cannot share memory that NumPy marks read-only (memory maps)
        array = np.array(array) if not array.flags.writeable else array
    elif is_torch_array(array) and not is_torch_array(reference):
        array = to_numpy(array)
    return xp.asarray(array, dtype=reference.dtype, device=device(reference))


def on_device(array: np.ndarray, where: Any) -> Any:
    """A NumPy array as a torch tensor on a device."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("A device needs torch: pip install 'tagkin[torch]'.") from error
    try:
        return torch.from_numpy(array).to(where)
    except (AssertionError, RuntimeError, TypeError) as error:
        raise InvalidInput(f"torch cannot use the device {where!r}: {error}") from error


def _is_narrow(array: Array) -> bool:
    """Whether float32 holds every value of the array's dtype (so that blocks use it)."""
    name = str(array.dtype).removeprefix("torch.")
    return name in {"float32", "float16", "bfloat16", "bool", "int8", "uint8", "int16", "uint16"}


def as_block(rows: Array, *, double: bool = False, finite: bool = True, name: str = "X") -> Array:
    """Rows as a float array to compute with, checked to be finite.

    Float32 where that loses nothing (float32 and narrower), else float64; `double`
    forces float64. ``finite=False`` leaves the check to the caller.
    """
    xp = namespace(rows)
    wide = double or not _is_narrow(rows)
    block = xp.astype(rows, xp.float64 if wide else xp.float32, copy=False)
    if finite:
        check_finite(block, name)
    return block


def check_finite(block: Array, name: str = "X", *, rows: Sequence[int] | None = None) -> None:
    """Refuse NaN and infinity; `rows` are the numbers by which an error names the rows."""
    xp = namespace(block)
    if bool(xp.all(xp.isfinite(block))):
        return
    bad = to_numpy(~xp.all(xp.isfinite(block), axis=1)).nonzero()[0]
    row = bad[0] if rows is None else rows[bad[0]]
    others = f" and {len(bad) - 1} more of the {len(block)} rows looked at" if len(bad) > 1 else ""
    raise InvalidInput(
        f"Input {name} contains NaN or infinity in row {row}{others}. Remove those images or "
        "compute their features again."
    )


# --- blocks under a memory budget --------------------------------------------------------


@contextlib.contextmanager
def memory_budget(n_bytes: int) -> Iterator[None]:
    """Limit the size of temporary blocks within a ``with`` statement.

    The answer does not depend on it, up to rounding; only speed and memory do. Without it blocks
    take 128 MiB on the host and an eighth of the free memory, at most 4 GiB, on a device.
    """
    if n_bytes < 1:
        raise InvalidInput(f"A memory budget is a positive number of bytes; found {n_bytes}.")
    token = _budget.set(int(n_bytes))
    try:
        yield
    finally:
        _budget.reset(token)


def _bytes_allowed(where: Array = None) -> int:
    budget = _budget.get()
    if budget is None and where is not None:
        budget = device_budget(where)
    return DEFAULT_BUDGET if budget is None else budget


def block_rows(bytes_per_row: int, where: Array = None) -> int:
    """How many rows of that size fit the memory budget (at least one).

    `where` is an array on whose device the blocks will be; without it they are on the host.
    """
    return max(1, _bytes_allowed(where) // max(1, bytes_per_row))


def row_blocks(n_rows: int, bytes_per_row: int, where: Array = None) -> Iterator[slice]:
    """Consecutive slices over `n_rows` rows, each within the memory budget (see `block_rows`)."""
    step = block_rows(bytes_per_row, where)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def smaller_blocks_when_full(function: Callable[P, T]) -> Callable[P, T]:
    """Begin a function anew with smaller blocks where a device runs out of memory.

    The function must not change what it is given.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        budget = _budget.get()
        while True:
            try:
                with contextlib.nullcontext() if budget is None else memory_budget(budget):
                    return function(*args, **kwargs)
            except RuntimeError as error:
                if not is_out_of_memory(error) or (budget is not None and budget < 2**20):
                    raise
            release_cached()  # outside the handler, which would keep the blocks alive
            budget = (2**30 if budget is None else budget) // 4

    return call


@functools.cache  # looking for the libraries takes milliseconds
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


def one_host_thread(array: Array) -> contextlib.AbstractContextManager[Any]:
    """One thread of BLAS while small matrices on the host serve an array on a device.

    With many, they would wait for each other longer than they work.
    """
    return _blas().limit(limits=1) if on_accelerator(array) else contextlib.nullcontext()


def run_in_threads(
    work: Callable[[slice], None], n_rows: int, bytes_per_row: int, most_rows: int
) -> None:
    """Do `work` for consecutive slices of at most so many rows, on as many threads as BLAS uses.

    Each thread gets its share of the memory budget and one thread of BLAS: the work between
    matrix products, which BLAS does not spread, is spread as well. For NumPy arrays.
    """
    n_threads = max((library.num_threads for library in _blas().lib_controllers), default=1)
    if n_threads == 1 or n_rows < 2 * n_threads:
        for rows in row_blocks(n_rows, max(bytes_per_row, _bytes_allowed() // most_rows)):
            work(rows)
        return
    with memory_budget(max(1, _bytes_allowed() // n_threads)):
        step = min(block_rows(bytes_per_row), most_rows, -(-n_rows // n_threads))
        blocks = [slice(i, min(i + step, n_rows)) for i in range(0, n_rows, step)]
        contexts = [contextvars.copy_context() for _ in blocks]  # the budget goes along
    with _blas().limit(limits=1), ThreadPoolExecutor(n_threads) as pool:
        for _ in pool.map(lambda context, rows: context.run(work, rows), contexts, blocks):
            pass


# --- precision on a device -----------------------------------------------------------------


@contextlib.contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Choose how products of float32 matrices round on a graphics processor.

    "float32" is as on the processor. "tf32" keeps 11 bits of each factor and is up to eight
    times faster. Kernel values are then off by up to 1e-3; places in the space, turned onto those
    of float32, kept a mean cosine of .9998 with 125,000 images and .993 with a million, and those
    near the origin less. Arrays on the host, float64 products and exact neighbours do not
    change. It holds for all of torch within the ``with`` statement.

    Examples
    --------
    >>> import tagkin
    >>> with tagkin.matmul_precision("tf32"):  # doctest: +SKIP
    ...     space.fit(X, Y)
    """
    if precision not in PRECISIONS:
        raise InvalidInput(
            f"precision must be one of {', '.join(PRECISIONS)}; found {precision!r}."
        )
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("matmul_precision is for torch: pip install 'tagkin[torch]'.") from error
    before = torch_precision(torch)
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


# --- validation --------------------------------------------------------------------------


def check_features(X: Array, *, name: str = "X", min_rows: int = 1) -> Array:
    """X as a 2-D array, without copying or reading it (memory maps stay on disk)."""
    if not is_torch_array(X):
        if scipy.sparse.issparse(X):
            raise InvalidInput(
                f"{name} is a sparse matrix; features must be dense. Use {name}.toarray()."
            )
        # finiteness is checked block by block, where the rows are read anyway
        return check_array(
            X,
            dtype="numeric",
            ensure_all_finite=False,
            ensure_min_samples=min_rows,
            input_name=name,
        )
    _check_torch(X, name)
    if X.ndim != 2:
        raise InvalidInput(
            f"Expected 2D tensor for {name} (images × features), got {X.ndim}D. "
            f"Reshape your data with {name}.reshape(1, -1) if it is one image."
        )
    if X.shape[0] < min_rows or X.shape[1] < 1:
        raise InvalidInput(
            f"Found {X.shape[0]} sample(s) and {X.shape[1]} feature(s) (shape={tuple(X.shape)}) in "
            f"{name} while a minimum of {min_rows} and 1 is required."
        )
    return X.detach()


def _check_torch(tensor: Array, name: str) -> None:
    if tensor.is_complex():
        raise InvalidInput(f"Complex data not supported; found {tensor.dtype} in {name}.")
    if str(tensor.layout) != "torch.strided":
        raise InvalidInput(
            f"{name} is a sparse torch tensor. Use {name}.to_dense(), or for labels a SciPy sparse "
            "matrix."
        )


def check_label_matrix(Y: Array, n_rows: int, name: str = "Y") -> Array:
    """Y as a dense 2-D array or a CSR matrix with `n_rows` finite rows; 1-D for one label."""
    if Y is None:
        raise InvalidInput(
            "requires y to be passed, but the target y is None: the space is learned from the "
            "labels Y (images × labels)."
        )
    if is_torch_array(Y):
        _check_torch(Y, name)
        Y = Y.detach()
    elif not scipy.sparse.issparse(Y):
        Y = np.asarray(Y)
    if Y.ndim == 1 and scipy.sparse.issparse(Y):
        Y = Y.toarray()
    if Y.ndim == 1:
        if not bool(((Y == 0) | (Y == 1)).all()):
            raise InvalidInput(
                f"Expected 2D array for {name} (images × labels), got 1D array instead. If it "
                "holds class numbers, make one column a class. If it holds the weights of one "
                f"label, Reshape your data with {name}.reshape(-1, 1)."
            )
        Y = Y.reshape(-1, 1)  # one label, on some images
    if not is_torch_array(Y):
        Y = check_array(
            Y, accept_sparse="csr", dtype="numeric", ensure_min_samples=0, input_name=name
        )
    elif Y.ndim != 2 or Y.shape[1] < 1:
        raise InvalidInput(f"Expected 2D tensor for {name}; found shape {tuple(Y.shape)}.")
    else:
        for rows in row_blocks(Y.shape[0], 8 * Y.shape[1], Y):
            check_finite(Y[rows], name, rows=range(rows.start, rows.stop))
    if Y.shape[0] != n_rows:
        raise InvalidInput(
            f"X and {name} must have one row an image; found inconsistent numbers: {n_rows} rows "
            f"in X and {Y.shape[0]} in {name}."
        )
    return Y


def any_nonzero(Y: Array) -> bool:
    """Whether a dense or sparse matrix has an entry that is not zero; looks no further."""
    if scipy.sparse.issparse(Y):
        return bool(Y.data.any())
    blocks = row_blocks(Y.shape[0], 8 * Y.shape[1], Y)
    return any(bool((Y[rows] != 0).any()) for rows in blocks)


# --- what the array API does not have -----------------------------------------------------


def matmul(A: Array, B: Array, out: Array) -> Array:
    """A B, written into `out`."""
    if is_torch_array(out):
        import torch

        return torch.matmul(A, B, out=out)
    return np.matmul(A, B, out=out)


def bincount(values: Array, n: int) -> Array:
    """How often each of 0 … n−1 occurs among `values`, shape (n,)."""
    if is_torch_array(values):
        import torch

        return torch.bincount(values, minlength=n)
    return np.bincount(values, minlength=n)


def segment_sums(values: Array, bounds: Array) -> Array:
    """Sums of consecutive values (E,) of torch, each from one of the bounds (S+1,) to the next.

    In a fixed order, other than sums by index on a device.
    """
    import torch

    return torch.segment_reduce(values, "sum", offsets=bounds, unsafe=True)


def expit(values: Array) -> Array:
    """The logistic function 1 / (1 + exp(−x))."""
    if is_torch_array(values):
        import torch

        return torch.sigmoid(values)
    return _expit(values)


def weighted_rows(table: Array, indices: Array, weights: Array) -> Array:
    """Σₖ weights[i, k] table[indices[i, k]] (n×D) for a torch table (N×D) of the weights' dtype.

    No array of n × k × D entries is made.
    """
    import torch

    return torch.nn.functional.embedding_bag(indices, table, per_sample_weights=weights, mode="sum")


def kth_largest(rows: Array, k: int) -> Array:
    """The k-th largest entry of each row, shape (n, 1)."""
    if is_torch_array(rows):
        import torch

        return torch.topk(rows, k, dim=1).values[:, -1:]
    place = rows.shape[1] - k
    return np.partition(rows, place, axis=1)[:, place : place + 1]


def cholesky(A: Array) -> Array | None:
    """Lower Cholesky factor of a symmetric matrix, or None where it is not positive definite."""
    if is_torch_array(A):
        import torch

        L, info = torch.linalg.cholesky_ex(A)
        return L if int(info) == 0 else None
    try:
        # the transpose of a symmetric C-ordered matrix is the same in Fortran order: no copy
        return scipy.linalg.cholesky(A.T, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None


def solve_triangular(L: Array, B: Array, *, transposed: bool = False) -> Array:
    """L⁻¹ B, or L⁻ᵀ B, for a lower triangular L."""
    if is_torch_array(L):
        import torch

        if transposed:
            return torch.linalg.solve_triangular(L.T, B, upper=True)
        return torch.linalg.solve_triangular(L, B, upper=False)
    return scipy.linalg.solve_triangular(
        L, B, lower=True, trans=1 if transposed else 0, check_finite=False
    )


def eigh(A: Array) -> tuple[Array, Array]:
    """Eigenvalues (ascending) and eigenvectors of a symmetric matrix."""
    if on_accelerator(A) and A.shape[0] <= _SMALL:
        xp = namespace(A)
        host = scipy.linalg.eigh(to_numpy(A), check_finite=False)
        values, vectors = (xp.asarray(part, device=A.device) for part in host)
        return values, vectors
    if is_torch_array(A):
        return namespace(A).linalg.eigh(A)
    return scipy.linalg.eigh(A, check_finite=False)


def mirror_lower(A: Array) -> Array:
    """Copy the lower triangle of a square matrix onto the upper one, in place."""
    xp = namespace(A)
    # tiles stay in a processor's cache; a device would rather have one piece of work
    tile = max(1, A.shape[0]) if on_accelerator(A) else _TILE
    for start in range(0, A.shape[0], tile):
        stop = start + tile
        A[:start, start:stop] = A[start:stop, :start].T
        corner = xp.tril(A[start:stop, start:stop])
        A[start:stop, start:stop] = corner + xp.tril(corner, k=-1).T
    return A
