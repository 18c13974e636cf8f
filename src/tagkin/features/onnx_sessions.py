"""Import onnxruntime without its telemetry.

onnxruntime writes a device ID and events to the user's cache folder and sends them to its
vendor. Only an environment variable that is set before the first import prevents that, so all
modules import onnxruntime through this module. ``ORT_DISABLE_TELEMETRY=0`` leaves the choice to
onnxruntime.
"""

from __future__ import annotations

import os
from typing import Any

__all__ = ["import_onnxruntime", "open_session"]


def import_onnxruntime() -> Any:
    """Return the module onnxruntime, without its telemetry unless the user enables it."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    return onnxruntime


def open_session(model: bytes | str) -> Any:
    """Open a session for a model or its path; it runs in the calling thread.

    Each call uses one thread, because photographs are spread over threads, not layers. That
    keeps all cores busy whether decoding or the network takes longer, and features do not depend
    on the number of cores.
    """
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
