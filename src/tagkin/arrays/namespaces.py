"""NumPy arrays and torch tensors alike: their namespace, and how one becomes the other."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from array_api_compat import array_namespace, device, is_torch_array

from tagkin.errors import InvalidInput, MissingExtra, pip_install

__all__ = ["Array", "like", "namespace", "on_device", "to_numpy"]

Array: TypeAlias = "np.ndarray | Any"
"""A NumPy array or a torch tensor: two classes without a common base, of which torch is optional.

To a type checker it is a NumPy array or anything else, so that the attributes of arrays are known
and tensors pass. What may also be a sparse matrix or a list is Any until it was checked.
"""


def namespace(*arrays: Array) -> Any:
    """The array API namespace that all of `arrays` share; mixed kinds are an error."""
    kinds = {"torch" if is_torch_array(a) else "NumPy" for a in arrays}
    if len(kinds) > 1:
        raise InvalidInput(
            "Found NumPy arrays and torch tensors together, perhaps one of them in a fitted model. "
            "Convert one side: torch.from_numpy(array) or tensor.cpu().numpy(). "
            "tagkin.load(folder, device=...) puts a saved model's arrays on a torch device."
        )
    devices = {str(device(a)) for a in arrays}
    if len(devices) > 1:
        raise InvalidInput(
            f"Found arrays on different devices: {', '.join(sorted(devices))}. "
            "Move them to one with tensor.to(device)."
        )
    return array_namespace(*arrays)


def to_numpy(array: Any) -> np.ndarray:
    """The values as a NumPy array on the host."""
    if not is_torch_array(array):
        return np.asarray(array)
    array = array.detach().cpu()
    return (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy()


def like(array: Any, reference: Array) -> Array:
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
        raise MissingExtra(f"A device needs torch: {pip_install('torch')}") from error
    try:
        return torch.from_numpy(array).to(where)
    except (AssertionError, RuntimeError, TypeError) as error:
        raise InvalidInput(f"torch cannot use the device {where!r}: {error}") from error
