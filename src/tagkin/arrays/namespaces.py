"""The common type and namespace of NumPy arrays and torch tensors, conversions, and functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, overload

import array_api_compat.numpy as numpy_namespace
import numpy as np
import scipy.sparse
from array_api_compat import array_namespace, device, is_torch_array

from tagkin.errors import InvalidInput, MissingExtra, pip_install

__all__ = [
    "Array",
    "expit",
    "like",
    "logit",
    "namespace",
    "on_accelerator",
    "on_device",
    "to_numpy",
]
PROCESSORS = {"cpu", "meta"}


class Array(Protocol):
    """A NumPy array or a torch tensor, which have no common base class.

    It has the methods of both that tagkin uses. Results are Any, because the stubs of the two
    differ. An argument that may be a sparse matrix, a DataFrame or a list is Any until checked.
    """

    @property
    def shape(self) -> Any: ...  # noqa: D102
    @property
    def ndim(self) -> int: ...  # noqa: D102
    @property
    def dtype(self) -> Any: ...  # noqa: D102
    @property
    def device(self) -> Any: ...  # noqa: D102
    @property
    def T(self) -> Any: ...  # noqa: D102, N802
    @property
    def reshape(self) -> Callable[..., Any]: ...  # noqa: D102
    @property
    def ravel(self) -> Callable[..., Any]: ...  # noqa: D102
    @property
    def any(self) -> Callable[..., Any]: ...  # noqa: D102
    @property
    def clip(self) -> Callable[..., Any]: ...  # noqa: D102
    @property
    def mean(self) -> Callable[..., Any]: ...  # noqa: D102
    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __rtruediv__(self, other: Any, /) -> Any: ...
    def __pow__(self, other: Any, /) -> Any: ...
    def __matmul__(self, other: Any, /) -> Any: ...
    def __and__(self, other: Any, /) -> Any: ...
    def __rand__(self, other: Any, /) -> Any: ...
    def __neg__(self) -> Any: ...
    def __invert__(self) -> Any: ...
    def __eq__(self, other: Any, /) -> Any: ...
    def __lt__(self, other: Any, /) -> Any: ...
    def __le__(self, other: Any, /) -> Any: ...
    def __gt__(self, other: Any, /) -> Any: ...
    def __ge__(self, other: Any, /) -> Any: ...


def namespace(*arrays: Array) -> Any:
    """Return the array API namespace of all `arrays`; mixed kinds are an error."""
    if arrays and all(type(a) is np.ndarray for a in arrays):
        return numpy_namespace  # quickly, because small arrays are often asked for it
    kinds = {"torch" if is_torch_array(a) else "NumPy" for a in arrays}
    if len(kinds) > 1:
        raise InvalidInput(
            "Found NumPy arrays and torch tensors together, perhaps one of them in a fitted model. "
            "Convert one side: torch.from_numpy(array) or tensor.cpu().numpy(). "
            "tagkin.load(folder, device=...) puts a saved model's arrays on a torch device."
        )
    devices = {str(a.device) for a in arrays} if "torch" in kinds else set()
    if len(devices) > 1:
        raise InvalidInput(
            f"Found arrays on different devices: {', '.join(sorted(devices))}. "
            "Move them to one with tensor.to(device)."
        )
    return array_namespace(*arrays)


def to_numpy(array: Any) -> np.ndarray:
    """Return the values as a NumPy array on the host."""
    if not is_torch_array(array):
        return np.asarray(array)
    array = array.detach().cpu()
    return (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy()


def like(array: Any, reference: Array) -> Array:
    """Return `array` (dense or sparse) as a dense array of `reference`'s kind, device and dtype."""
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
    """Return a NumPy array as a torch tensor on a device."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtra(f"A device needs torch: {pip_install('torch')}") from error
    try:
        return torch.from_numpy(array).to(where)
    except (AssertionError, RuntimeError, TypeError) as error:
        raise InvalidInput(f"torch cannot use the device {where!r}: {error}") from error


def on_accelerator(array: Any) -> bool:
    """Whether an array is on a device other than the processor."""
    return is_torch_array(array) and array.device.type not in PROCESSORS


# --- the logistic function: importing `scipy.special` takes as long as a short command may ---


@overload
def expit(values: np.ndarray) -> np.ndarray: ...


@overload
def expit(values: Array) -> Array: ...


def expit(values: Array) -> Array:
    """Return the logistic function 1 / (1 + exp(−x)) of each value."""
    if is_torch_array(values):
        return namespace(values).sigmoid(values)
    out = np.array(values, dtype=np.result_type(values, np.float32))
    np.negative(out, out=out)
    with np.errstate(over="ignore"):  # 1 / (1 + ∞) is 0
        np.exp(out, out=out)
    out += 1
    return np.reciprocal(out, out=out)


def logit(shares: np.ndarray) -> np.ndarray:
    """Return log(p / (1 − p)), the inverse of `expit`."""
    return np.log(shares) - np.log1p(-shares)
