"""The common type and namespace of NumPy arrays and torch tensors, conversions, and functions."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias, TypeGuard, overload

import array_api_compat.numpy as numpy_namespace
import numpy as np
import scipy.sparse
from array_api_compat import array_namespace, device, is_torch_array
from numpy.typing import ArrayLike

from tagkin.errors import InvalidInput, MissingExtra
from tagkin.installing import install_command

__all__ = [
    "Array",
    "DType",
    "LabelMatrix",
    "Seed",
    "expit",
    "is_sparse",
    "is_tensor",
    "like",
    "logit",
    "namespace",
    "on_accelerator",
    "on_device",
    "to_numpy",
]
PROCESSORS = {"cpu", "meta"}


if TYPE_CHECKING:
    import torch

    Array: TypeAlias = np.ndarray | torch.Tensor
    """A NumPy array or a torch tensor."""
    LabelMatrix: TypeAlias = Array | scipy.sparse.csr_array
    """Labels or text features: an array, or a sparse matrix."""
    DType: TypeAlias = np.dtype | torch.dtype
else:  # annotations are read at runtime, where torch may be missing
    Array = LabelMatrix = np.ndarray
    DType = np.dtype

Seed: TypeAlias = int | np.random.RandomState | None
"""What scikit-learn calls a random state."""


def is_tensor(value: object) -> TypeGuard[torch.Tensor]:
    """Whether a value is a torch tensor."""
    return bool(is_torch_array(value))


def is_sparse(value: object) -> TypeGuard[scipy.sparse.csr_array]:
    """Whether a value is a sparse matrix of SciPy."""
    return bool(scipy.sparse.issparse(value))


def namespace(*arrays: Array) -> ModuleType:
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


def to_numpy(array: ArrayLike | Array) -> np.ndarray:
    """Return the values as a NumPy array on the host."""
    if not is_tensor(array):
        return np.asarray(array)
    tensor = array.detach().cpu()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()


def like(array: LabelMatrix, reference: Array) -> Array:
    """Return `array` (dense or sparse) as a dense array of `reference`'s kind, device and dtype."""
    xp = namespace(reference)
    if is_sparse(array):
        array = array.toarray()
    if is_torch_array(reference) and not is_torch_array(array):
        # torch cannot share memory that NumPy marks read-only (memory maps)
        array = np.array(array) if not array.flags.writeable else array
    elif is_torch_array(array) and not is_torch_array(reference):
        array = to_numpy(array)
    return xp.asarray(array, dtype=reference.dtype, device=device(reference))


def on_device(array: np.ndarray, where: str | torch.device) -> torch.Tensor:
    """Return a NumPy array as a torch tensor on a device."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtra(f"A device needs torch: {install_command('torch')}") from error
    try:
        return torch.from_numpy(array).to(where)
    except (AssertionError, RuntimeError, TypeError) as error:
        raise InvalidInput(f"torch cannot use the device {where!r}: {error}") from error


def on_accelerator(array: object) -> bool:
    """Whether an array is on a device other than the processor."""
    return is_tensor(array) and array.device.type not in PROCESSORS


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
