"""Run networks with onnxruntime, without its telemetry.

onnxruntime writes a device ID and events to the user's cache folder and sends them to its
vendor. Only an environment variable that is set before the first import prevents that, so all
modules import onnxruntime through this module. ``ORT_DISABLE_TELEMETRY=0`` leaves the choice to
onnxruntime.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tagkin.errors import InvalidInput

__all__ = ["choose_node", "first_line", "import_onnxruntime", "open_session", "run_session"]


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
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no common error of its own
        name = model if isinstance(model, str) else "The network"
        raise InvalidInput(f"{name} cannot be opened: {first_line(error)}") from error


def choose_node(model: str, kind: str, nodes: list[Any], name: str | None) -> Any:
    """Return the named input or output of a network, or its only one; `kind` is which."""
    names = [node.name for node in nodes]
    if name is None and len(names) == 1:
        return nodes[0]
    if name not in names:
        choice = "names none" if name is None else f"names {name!r}"
        raise InvalidInput(
            f'{model} has the {kind}s {", ".join(names)}; its .json {choice}. Set "{kind}" to one '
            "of them."
        )
    return nodes[names.index(name)]


def run_session(session: Any, name: str, output: str, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """Return an output of a network; `name` is the network's in an error."""
    try:
        return np.asarray(session.run([output], inputs)[0])
    except Exception as error:
        raise InvalidInput(f"{name} cannot be run: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its type."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
