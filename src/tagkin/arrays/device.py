"""Memory and precision of an accelerator such as a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from array_api_compat import is_torch_array

from tagkin.errors import InvalidInput, MissingExtra, pip_install

__all__ = [
    "device_budget",
    "in_tf32",
    "is_out_of_memory",
    "matmul_precision",
    "on_accelerator",
    "release_cached",
    "round_to_tf32",
    "torch_precision",
]

PRECISIONS = ("float32", "tf32")
PROCESSORS = {"cpu", "meta"}
_SHARE = 8  # an eighth of the free memory is for temporary blocks
_MOST = 4 * 2**30  # larger blocks are not faster


def on_accelerator(array: Any) -> bool:
    """Whether an array is on a device other than the processor."""
    return is_torch_array(array) and array.device.type not in PROCESSORS


def device_budget(array: Any) -> int | None:
    """Return the bytes for temporary blocks on the array's device, or None if unknown."""
    if not on_accelerator(array) or array.device.type != "cuda":
        return None
    import torch

    free, _ = torch.cuda.mem_get_info(array.device)
    # memory that torch holds for later tensors is free; one call for all numbers is faster
    held = torch.cuda.memory_stats_as_nested_dict(array.device)
    for sign, kind in ((1, "reserved_bytes"), (-1, "allocated_bytes")):
        free += sign * held.get(kind, {}).get("all", {}).get("current", 0)
    return max(2**20, min(_MOST, free // _SHARE))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether this is torch's error of a full device."""
    return type(error).__name__ == "OutOfMemoryError" and isinstance(error, RuntimeError)


def release_cached() -> None:
    """Return memory that torch holds for later to the device."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


# --- precision ---------------------------------------------------------------------------


@contextlib.contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Choose how products of float32 matrices round on a GPU.

    "float32" rounds as on the processor. "tf32" keeps 11 bits of each factor and is up to eight
    times faster. Kernel values are then off by up to 1e-3. The mean cosine between embeddings in
    TF32 and in float32, after a rotation, was .9998 with 125,000 images and .994 with a million; it
    was lower near the origin. Arrays on the host, float64 products and exact neighbours do not
    change. The setting applies to all of torch within the ``with`` statement.

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
        raise MissingExtra(f"matmul_precision is for torch: {pip_install('torch')}") from error
    before = torch_precision(torch)
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def torch_precision(torch: Any) -> str:
    """Return how products of float32 matrices round now; "highest" is float32."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # set through the newer of torch's two interfaces
        return "high" if torch.backends.cuda.matmul.fp32_precision == "tf32" else "highest"


def in_tf32(array: Any) -> bool:
    """Whether products of float32 arrays on the array's device are rounded to TF32 now."""
    if not on_accelerator(array):
        return False
    import torch

    return torch_precision(torch) != "highest"


def round_to_tf32(array: Any) -> None:
    """Round a float32 tensor to TF32, in place.

    Its products in TF32 then have exact factors, so sums and sums of squares agree.
    """
    import torch

    bits = array.view(torch.int32)
    bits += 0x1000
    bits &= ~0x1FFF
