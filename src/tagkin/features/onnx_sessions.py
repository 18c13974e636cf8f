"""Run networks with onnxruntime, on a chosen device and without its telemetry.

onnxruntime writes a device ID and events to the user's cache folder and sends them to its
vendor. Only an environment variable that is set before the first import prevents that, so all
modules import onnxruntime through this module. ``ORT_DISABLE_TELEMETRY=0`` leaves the choice to
onnxruntime.

``TAGKIN_DEVICE`` names the device. Features of different devices agree up to rounding: a few 1e-4
of their length, and about 1e-2 with coreml, which computes in half precision.
"""

from __future__ import annotations

import os
import threading
from contextlib import nullcontext
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from tagkin.errors import InvalidInput

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, NodeArg

__all__ = [
    "DEVICES",
    "DEVICE_VARIABLE",
    "Network",
    "batch_on_device",
    "choose_node",
    "first_line",
    "import_onnxruntime",
    "open_session",
    "usable_devices",
]

DEVICE_VARIABLE = "TAGKIN_DEVICE"
# The provider of each device, with options to try in turn. Without use_tf32=0, cuda would keep
# 11 bits only; ACCURACY keeps OpenVINO's GPUs from half precision.
_PROVIDERS: dict[str, tuple[str, tuple[dict[str, str], ...]]] = {
    "cpu": ("CPUExecutionProvider", ({},)),
    "cuda": ("CUDAExecutionProvider", ({"use_tf32": "0"},)),
    "coreml": ("CoreMLExecutionProvider", ({},)),
    "openvino": (
        "OpenVINOExecutionProvider",
        ({"device_type": "GPU", "precision": "ACCURACY"}, {"precision": "ACCURACY"}),
    ),
    "directml": ("DmlExecutionProvider", ({},)),
}
DEVICES = ("auto", *_PROVIDERS)
# Devices that need a special build of onnxruntime, so the user wants them. coreml is not listed,
# because every build for macOS has it, and it rounds more.
_AUTO = ("cuda", "directml", "openvino")
_AT_ONCE = 32  # photographs per call on an accelerator; fewer if its memory runs out
_EMBEDDINGS = ("image_embeds", "text_embeds", "pooler_output")  # names in exported joint encoders


def import_onnxruntime() -> ModuleType:
    """Return the module onnxruntime, without its telemetry unless the user enables it."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    return onnxruntime


# --- devices -----------------------------------------------------------------------------


def usable_devices() -> list[str]:
    """Return the devices that the installed onnxruntime was built for."""
    providers = import_onnxruntime().get_available_providers()
    return [device for device, (provider, _) in _PROVIDERS.items() if provider in providers]


def batch_on_device(on_cpu: int) -> int:
    """Return the number of photographs per call, given that on the CPU."""
    return on_cpu if _devices_to_try() == ["cpu"] else max(_AT_ONCE, on_cpu)


def _devices_to_try() -> list[str]:
    """Return the chosen device, or the devices that ``auto`` tries in turn."""
    device, usable = os.environ.get(DEVICE_VARIABLE) or "auto", usable_devices()
    if device == "auto":
        return [*(name for name in _AUTO if name in usable), "cpu"]
    if device not in DEVICES:
        raise InvalidInput(f"The device must be one of {', '.join(DEVICES)}; found {device!r}.")
    if device not in usable:
        raise InvalidInput(
            f"The installed onnxruntime has no {device}, only {', '.join(usable)}. Install "
            "onnxruntime-gpu (cuda), onnxruntime-openvino or onnxruntime-directml in its place, or "
            "choose another device."
        )
    return [device]


def open_session(model: bytes | str) -> InferenceSession:
    """Open a session for a model or its path, on the chosen device.

    On the CPU each call uses one thread, the caller's, because photographs are spread over
    threads, not layers. That keeps all cores busy whether decoding or the network takes longer, and
    features do not depend on the number of cores.
    """
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # fatal errors only; other errors are raised
    devices = _devices_to_try()
    options.enable_mem_pattern = devices == ["cpu"]  # directml cannot have it
    if devices != ["cpu"]:
        onnxruntime.set_default_logger_severity(4)  # of devices that are tried and not there
    name = model if isinstance(model, str) else "The network"
    reason = "onnxruntime found no such device, or no drivers for it"
    for device in devices:
        provider, choices = _PROVIDERS[device]
        for choice in choices:
            wanted = [(provider, choice), *([] if device == "cpu" else ["CPUExecutionProvider"])]
            try:
                session = onnxruntime.InferenceSession(model, options, providers=wanted)
            except Exception as error:  # onnxruntime's errors have no common base class
                reason = first_line(error)
                continue
            if provider in session.get_providers():
                return session
    where = "" if devices[-1] == "cpu" else f" on {devices[-1]}"
    raise InvalidInput(f"{name} cannot be opened{where}: {reason}")


# --- networks ----------------------------------------------------------------------------


class Network:
    """A network in ONNX format, run in batches that its graph and the device's memory allow.

    Parameters
    ----------
    model : bytes or str
        The model or its path.
    name : str
        Its name in errors.
    batch : int, optional
        Largest number of rows per call. A graph with a fixed batch has its own.
    """

    def __init__(self, model: bytes | str, name: str, batch: int | None = None):
        self.name = name
        self._session = open_session(model)
        self.inputs, self.outputs = self._session.get_inputs(), self._session.get_outputs()
        shape = self.inputs[0].shape if self.inputs else []
        fixed = shape[0] if shape else None
        self.fixed_batch = fixed if isinstance(fixed, int) and fixed > 0 else None
        self._batch = batch
        on_cpu = self._session.get_providers()[0] == _PROVIDERS["cpu"][0]
        # accelerators take one call at a time, and not all of them several threads
        self._turn = nullcontext() if on_cpu else threading.Lock()

    def __call__(self, output: str, inputs: dict[str, np.ndarray]) -> np.ndarray:
        """Return an output for inputs of n rows each."""
        n = len(next(iter(inputs.values())))
        parts: list[np.ndarray] = []
        start = 0
        while start < n or not parts:
            step = self.fixed_batch or self._batch or max(n, 1)
            rows = {
                name: _pad(x[start : start + step], self.fixed_batch) for name, x in inputs.items()
            }
            try:
                with self._turn:
                    part = np.asarray(self._session.run([output], rows)[0])
            except Exception as error:
                if step > 1 and not self.fixed_batch and _is_lack_of_memory(error):
                    self._batch = step // 2
                    continue
                raise InvalidInput(f"{self.name} cannot be run: {first_line(error)}") from error
            parts.append(part[: n - start] if self.fixed_batch else part)
            start += step
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _pad(rows: np.ndarray, n: int | None) -> np.ndarray:
    """Return n rows, with zeros after the given rows; None means no padding."""
    if n is None or len(rows) == n:
        return rows
    return np.concatenate([rows, np.zeros((n - len(rows), *rows.shape[1:]), dtype=rows.dtype)])


def _is_lack_of_memory(error: Exception) -> bool:
    text = str(error).lower()
    return "allocate memory" in text or "out of memory" in text or "bad_alloc" in text


def choose_node(model: str, kind: str, nodes: list[NodeArg], name: str | None) -> NodeArg:
    """Return the named input or output of a network, or its only one; `kind` is which.

    Without a name, the embedding of an exported joint encoder is preferred to its other outputs.
    """
    names = [node.name for node in nodes]
    if name is None and len(names) == 1:
        return nodes[0]
    if name is None:
        name = next((usual for usual in _EMBEDDINGS if usual in names), None)
    if name not in names:
        choice = "names none" if name is None else f"names {name!r}"
        raise InvalidInput(
            f'{model} has the {kind}s {", ".join(names)}; its .json {choice}. Set "{kind}" to one '
            "of them."
        )
    return nodes[names.index(name)]


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its type."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
