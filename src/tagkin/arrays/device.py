"""What an accelerator needs and a processor does not: memory of its own, precision.

A GPU is fed by large blocks, and pays for every pass over memory. Arrays on the
host never come here.
"""

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
_SHARE = 8  # of the free memory, one part in so many is for temporary blocks
_MOST = 4 * 2**30  # larger blocks gain nothing


def on_accelerator(array: Any) -> bool:
    """Whether an array lies on a device other than the processor."""
    return is_torch_array(array) and array.device.type not in PROCESSORS


def device_budget(array: Any) -> int | None:
    """Bytes for temporary blocks on the array's device; None where nothing is known of it."""
    if not on_accelerator(array) or array.device.type != "cuda":
        return None
    import torch

    free, _ = torch.cuda.mem_get_info(array.device)
    # what torch holds for later tensors is free to us; asked for all at once, which is faster
    held = torch.cuda.memory_stats_as_nested_dict(array.device)
    for sign, kind in ((1, "reserved_bytes"), (-1, "allocated_bytes")):
        free += sign * held.get(kind, {}).get("all", {}).get("current", 0)
    return max(2**20, min(_MOST, free // _SHARE))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether torch says that a device's memory is full."""
    return type(error).__name__ == "OutOfMemoryError" and isinstance(error, RuntimeError)


def release_cached() -> None:
    """Give memory that torch holds for later back to the device."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


# --- precision ---------------------------------------------------------------------------


@contextlib.contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Choose how products of float32 matrices round on a GPU.

    "float32" is as on the processor. "tf32" keeps 11 bits of each factor and is up to eight
    times faster. Kernel values are then off by up to 1e-3; embeddings, turned onto those of
    float32, kept a mean cosine of .9998 with 125,000 images and .994 with a million, and those
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
        raise MissingExtra(f"matmul_precision is for torch: {pip_install('torch')}") from error
    before = torch_precision(torch)
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def torch_precision(torch: Any) -> str:
    """How products of float32 matrices round now: "highest" is float32."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # it was set in the newer of torch's two ways
        return "high" if torch.backends.cuda.matmul.fp32_precision == "tf32" else "highest"


def in_tf32(array: Any) -> bool:
    """Whether products of float32 arrays on the array's device are rounded to TF32 now."""
    if not on_accelerator(array):
        return False
    import torch

    return torch_precision(torch) != "highest"


def round_to_tf32(array: Any) -> None:
    """Round a float32 tensor, in place, to the nearest numbers that TF32 has.

    Products of it in TF32 then have exact factors: sums and sums of squares agree with each other.
    """
    import torch

    bits = array.view(torch.int32)
    bits += 0x1000
    bits &= ~0x1FFF
