"""The one door to onnxruntime, which reports on its use unless it is told not to.

onnxruntime writes a device id and events to the user's cache folder and sends them to its
vendor. Only a variable of the environment that is set before its first import prevents that, so
everything that needs onnxruntime asks for it here. ``ORT_DISABLE_TELEMETRY=0`` leaves the choice to
onnxruntime.
"""

from __future__ import annotations

import os
from typing import Any

__all__ = ["import_onnxruntime", "open_session"]


def import_onnxruntime() -> Any:
    """The module onnxruntime, without its telemetry unless the user wants it."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    return onnxruntime


def open_session(model: bytes | str) -> Any:
    """A session for a model or the path of one, which runs in the thread that calls it.

    One thread per call: photographs are spread over threads, not layers. That keeps all cores
    busy whether decoding or the network takes longer, and features do not depend on how many
    cores there are.
    """
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
