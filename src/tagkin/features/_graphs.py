"""Build networks as ONNX graphs, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tagkin.features.backbone import Preprocessing

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

__all__ = ["Graph"]

# Fixed, so a network has the same fingerprint with every version of onnx.
_OPSET, _IR_VERSION = 17, 8


class Graph:
    """A network under construction; every method adds a layer and returns its name."""

    def __init__(self, preprocessing: Preprocessing):
        self._preprocessing = preprocessing
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []

    def _add(
        self, kind: str, inputs: Sequence[str], name: str = "", **attributes: int | list[int]
    ) -> str:
        from onnx import helper

        name = name or f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def _constant(self, values: np.ndarray) -> str:
        from onnx import numpy_helper

        name = f"constant_{len(self._constants)}"
        values = np.ascontiguousarray(values, dtype=np.float32)
        self._constants.append(numpy_helper.from_array(values, name))
        return name

    def pixels(self) -> str:
        """Convert uint8 pixels (n, h, w, 3) to centred float32 channels (n, 3, h, w).

        `first_convolution` applies the scale. It cannot subtract the mean, because the border
        that a convolution adds is zero after subtraction.
        """
        from onnx import TensorProto

        planes = self._add("Transpose", ["pixels"], perm=[0, 3, 1, 2])
        numbers = self._add("Cast", [planes], to=TensorProto.FLOAT)
        mean = np.array(self._preprocessing.mean) / self._preprocessing.scale
        return self._add("Sub", [numbers, self._constant(mean.reshape(1, 3, 1, 1))])

    def first_convolution(
        self,
        x: str,
        layer: tuple[np.ndarray, np.ndarray],
        *,
        stride: int = 1,
        border: tuple[int, int] = (0, 0),
    ) -> str:
        """Convolve the pixels, with their scale in the weights."""
        scale = self._preprocessing.scale / np.array(self._preprocessing.std)
        weight, bias = layer
        scaled = weight * scale.reshape(1, 3, 1, 1), bias
        return self.convolution(x, scaled, stride=stride, border=border)

    def convolution(
        self,
        x: str,
        layer: tuple[np.ndarray, np.ndarray],
        *,
        stride: int = 1,
        border: tuple[int, int] = (0, 0),
        groups: int = 1,
        name: str = "",
    ) -> str:
        """Add a square convolution of a layer's weight and bias.

        `border` is the width added before and after.
        """
        weight, bias = layer
        inputs = [x, self._constant(weight), self._constant(bias)]
        return self._add(
            "Conv",
            inputs,
            name,
            kernel_shape=list(weight.shape[2:]),
            strides=[stride, stride],
            pads=[border[0]] * 2 + [border[1]] * 2,
            group=groups,
        )

    def relu(self, x: str, *, ceiling: float | None = None, name: str = "") -> str:
        """Clip negative values to zero, and large values to the ceiling."""
        if ceiling is None:
            return self._add("Relu", [x], name)
        limits = [self._constant(np.array(limit)) for limit in (0, ceiling)]
        return self._add("Clip", [x, *limits], name)

    def add(self, x: str, y: str, *, name: str = "") -> str:
        """Add two layers."""
        return self._add("Add", [x, y], name)

    def max_pool(self, x: str) -> str:
        """Take the maximum of every 2 × 2 square."""
        return self._add("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])

    def mean_pool(self, x: str, *, name: str) -> str:
        """Take the mean of every channel, shape (n, channels)."""
        return self.flatten(self._add("GlobalAveragePool", [x]), name=name)

    def flatten(self, x: str, *, name: str = "") -> str:
        """Flatten the values of each image into one row."""
        return self._add("Flatten", [x], name, axis=1)

    def linear(self, x: str, weight: np.ndarray, bias: np.ndarray, *, name: str = "") -> str:
        """Add a linear layer with a weight (outputs × inputs) and a bias."""
        inputs = [x, self._constant(weight), self._constant(bias)]
        return self._add("Gemm", inputs, name, transB=1)

    def model(self, outputs: Sequence[str]) -> bytes:
        """Return the network with these layers as outputs, in ONNX format."""
        from onnx import TensorProto, helper

        size = self._preprocessing.size
        pixels = helper.make_tensor_value_info("pixels", TensorProto.UINT8, ["n", size, size, 3])
        graph = helper.make_graph(
            self._nodes,
            "tagkin",
            [pixels],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            self._constants,
        )
        opset = helper.make_opsetid("", _OPSET)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION)
        return model.SerializeToString(deterministic=True)
