"""Routines of BLAS and LAPACK that leave other threads running, for NumPy arrays.

The functions of `scipy.linalg` keep Python's lock while a routine runs, so that other threads
wait. These call the same routines, through the pointers that SciPy offers to Cython, and `ctypes`
lets the lock go. All matrices are in C's order; a routine, which is Fortran's, sees each of them
transposed: its upper triangle is the lower one here.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

import numpy as np
import scipy

from tagkin.arrays.threads import find_libraries_again

__all__ = [
    "add_lower_gram",
    "factor_lower",
    "lower_gram_of_rows",
    "lower_times",
    "solve_lower",
    "solve_rows",
    "subtract_lower_gram_of_rows",
    "subtract_products",
]


def add_lower_gram(total: np.ndarray, K: np.ndarray) -> None:
    """Add KᵀK of K (n×r) to the lower triangle of the total (r×r), in place.

    The entries of a row of K may lie side by side, or those of a column.
    """
    n, r = K.shape
    by_columns = _are_together(K.T)
    trans, K = (b"T", K.T) if by_columns else (b"N", _rows_together(K))
    there = total, _apart(total)
    _call("blas", "syrk", total.dtype, b"U", trans, r, n, 1.0, K, _apart(K), 1.0, *there)


def lower_gram_of_rows(A: np.ndarray) -> np.ndarray:
    """The lower triangle of A Aᵀ (n×n) of A (n×d), and zeros above it."""
    A = _rows_together(A)
    n, d = A.shape
    products = np.zeros((n, n), dtype=A.dtype)
    _call("blas", "syrk", A.dtype, b"U", b"T", n, d, 1.0, A, _apart(A), 0.0, products, n)
    return products


def subtract_lower_gram_of_rows(total: np.ndarray, A: np.ndarray) -> None:
    """Take A Aᵀ of A (n×d) from the lower triangle of the total (n×n), in place."""
    A = _rows_together(A)
    n, d = A.shape
    there = total, _apart(total)
    _call("blas", "syrk", total.dtype, b"U", b"T", n, d, -1.0, A, _apart(A), 1.0, *there)


def subtract_products(total: np.ndarray, A: np.ndarray, B: np.ndarray) -> None:
    """Take A Bᵀ of A (n×d) and B (m×d) from the total (n×m), in place."""
    A, B = _rows_together(A), _rows_together(B)
    (n, d), m = A.shape, len(B)
    factors, there = (B, _apart(B), A, _apart(A)), (total, _apart(total))
    _call("blas", "gemm", total.dtype, b"T", b"N", m, n, d, -1.0, *factors, 1.0, *there)


def factor_lower(A: np.ndarray) -> bool:
    """Replace the lower triangle of A (n×n) by its Cholesky factor; False where it has none."""
    failed = np.zeros(1, dtype=np.int64)  # 64 bits: a routine writes all of them, or half
    _call("lapack", "potrf", A.dtype, b"U", len(A), A, _apart(A), failed)
    return not failed.any()


def solve_lower(L: np.ndarray, B: np.ndarray, transposed: bool) -> None:
    """Replace B (n×q) by L⁻¹ B, or L⁻ᵀ B, for a lower triangular L (n×n)."""
    n, q = B.shape
    trans = b"T" if transposed else b"N"
    L = _rows_together(L)
    _call("blas", "trsm", B.dtype, b"R", b"U", trans, b"N", q, n, 1.0, L, _apart(L), B, q)


def solve_rows(L: np.ndarray, B: np.ndarray) -> None:
    """Replace B (m×n) by B L⁻ᵀ, for a lower triangular L (n×n)."""
    m, n = B.shape
    L = _rows_together(L)
    triangle, there = (L, _apart(L)), (B, _apart(B))
    _call("blas", "trsm", B.dtype, b"L", b"U", b"T", b"N", n, m, 1.0, *triangle, *there)


def lower_times(A: np.ndarray, X: np.ndarray) -> np.ndarray:
    """A X (n×q) of a symmetric A (n×n), of which the lower triangle is read."""
    X = np.ascontiguousarray(X)
    n, q = X.shape
    product = np.empty_like(X)
    _call("blas", "symm", A.dtype, b"R", b"U", q, n, 1.0, A, n, X, q, 0.0, product, q)
    return product


def _rows_together(A: np.ndarray) -> np.ndarray:
    """A, or a copy of it in which the entries of a row lie side by side."""
    return A if _are_together(A) else np.ascontiguousarray(A)


def _are_together(A: np.ndarray) -> bool:
    """Whether the entries of a row lie side by side, and rows do not overlap."""
    side_by_side = A.strides[1] == A.itemsize and A.strides[0] >= A.shape[1] * A.itemsize
    return side_by_side and A.strides[0] % A.itemsize == 0


def _apart(A: np.ndarray) -> int:
    """Entries from the beginning of a row to that of the next."""
    return max(1, A.shape[1], A.strides[0] // A.itemsize)


def _call(library: str, name: str, dtype: np.dtype, *arguments: Any) -> None:
    """Call a routine for numbers of this type. It takes everything by reference."""
    single = dtype == np.float32
    routine, integer = _routine(library, ("s" if single else "d") + name)
    real = ctypes.c_float if single else ctypes.c_double
    references: list[Any] = []
    for one in arguments:
        if isinstance(one, np.ndarray):
            if one.size == 0:
                return
            references.append(one.ctypes.data)
        elif isinstance(one, bytes):
            references.append(one)
        else:
            references.append(ctypes.byref(integer(one) if isinstance(one, int) else real(one)))
    routine(*references)


@functools.cache
def _pointers(module: str) -> dict[str, Any]:
    """What a module of `scipy.linalg` offers to Cython, by name.

    It is imported by itself: all of `scipy.linalg` takes longer to import than a few hundred images
    to learn from.
    """
    spec = PathFinder.find_spec(module, [f"{folder}/linalg" for folder in scipy.__path__])
    if "linalg" in vars(scipy) or spec is None or spec.loader is None:
        found = importlib.import_module(module)
    else:
        found = module_from_spec(spec)
        spec.loader.exec_module(found)
    find_libraries_again()  # SciPy brings a BLAS of its own
    pointers: dict[str, Any] = found.__pyx_capi__
    return pointers


@functools.cache
def _routine(library: str, name: str) -> tuple[Callable[..., None], Any]:
    """A routine of `scipy.linalg.cython_blas` or `cython_lapack`, and its whole numbers."""
    capsule = _pointers(f"scipy.linalg.cython_{library}")[name]
    of_python = ctypes.PYFUNCTYPE
    name_of = of_python(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
    pointer_in = of_python(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    signature = name_of(capsule)  # in C
    parameters = [ctypes.c_void_p] * signature.count(b"*")
    routine = ctypes.CFUNCTYPE(None, *parameters)(pointer_in(capsule, signature))
    return routine, ctypes.c_int if b" int *" in signature else ctypes.c_int64
