"""VGG16's fully connected layers, the features of the paper, from torchvision's weights.

No package has these weights; pass the path of the file. (Simonyan and Zisserman, "Very
deep convolutional networks for large-scale image recognition", 2015.)
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tagkin.errors import InvalidInput, StorageError
from tagkin.features._graphs import Graph
from tagkin.features.backbone import Backbone, Preprocessing, check_batch, fingerprint_of
from tagkin.features.onnx_sessions import Network
from tagkin.features.torch_files import read_tensors, sha256_of_file

__all__ = ["VGG16", "build_model"]

_SIZE = 224
_CONVOLUTIONS = ((0, 2), (5, 7), (10, 12, 14), (17, 19, 21), (24, 26, 28))
_LINEAR = {"fc6": "classifier.0", "fc7": "classifier.3"}


class VGG16(Backbone):
    """A fully connected layer of VGG16 after ReLU; photographs are warped to 224 × 224.

    Parameters
    ----------
    path : path
        torchvision's ``vgg16-397923af.pth``, or other weights of the same network.
    layer : {"fc7", "fc6"}
    """

    preprocessing = Preprocessing(
        _SIZE, "warp", mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)
    )
    batch_size = 8  # a batch reads the large fully connected layers once

    def __init__(self, path: str | os.PathLike[str], layer: str = "fc7"):
        if layer not in _LINEAR:
            raise InvalidInput(f"layer must be one of {', '.join(_LINEAR)}; found {layer!r}.")
        path = Path(path).expanduser()
        self.name = f"vgg16{'-fc6' if layer == 'fc6' else ''}:{path}"
        _check_hash(path)
        try:
            model = build_model(read_tensors(path), layer)
        except _NotVGG16 as error:
            raise InvalidInput(
                f"{path} does not contain the weights of VGG16: {error}. Expected torchvision's "
                "vgg16-397923af.pth."
            ) from error
        self.fingerprint = fingerprint_of(model, self.preprocessing)
        self._network = Network(model, self.name)
        del model
        self.dimension = self(np.zeros((1, _SIZE, _SIZE, 3), dtype=np.uint8)).shape[1]

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        """Return features (n, 4096) of prepared photographs (n, 224, 224, 3)."""
        check_batch(batch, self, (_SIZE, _SIZE))
        return self._network("features", {"pixels": batch})


class _NotVGG16(Exception):
    """How the weights differ from VGG16's."""


def build_model(tensors: Mapping[str, np.ndarray], layer: str = "fc7") -> bytes:
    """Build VGG16 up to a fully connected layer, as an ONNX model of uint8 pixels.

    The `tensors` have torchvision's names.
    """
    graph = Graph(VGG16.preprocessing)
    x, width = graph.pixels(), 3
    for stage in _CONVOLUTIONS:
        for number in stage:
            weight, bias = _weights(tensors, f"features.{number}", (None, width, 3, 3))
            convolve = graph.first_convolution if number == 0 else graph.convolution
            x, width = graph.relu(convolve(x, (weight, bias), border=(1, 1))), len(weight)
        x = graph.max_pool(x)
    x, width = graph.flatten(x), width * (_SIZE // 2 ** len(_CONVOLUTIONS)) ** 2
    for name, prefix in _LINEAR.items():
        weight, bias = _weights(tensors, prefix, (None, width))
        output = "features" if name == layer else ""
        x, width = graph.relu(graph.linear(x, weight, bias), name=output), len(bias)
        if output:
            break
    return graph.model(["features"])


def _weights(
    tensors: Mapping[str, np.ndarray], prefix: str, shape: tuple[int | None, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return weight and bias of a layer; check the shape except for the number of outputs."""
    if f"{prefix}.weight" not in tensors or f"{prefix}.bias" not in tensors:
        raise _NotVGG16(f"there is no {prefix}.weight with a bias")
    weight, bias = tensors[f"{prefix}.weight"], tensors[f"{prefix}.bias"]
    if weight.shape[1:] != shape[1:] or bias.shape != weight.shape[:1]:
        raise _NotVGG16(f"{prefix} has weights of shape {weight.shape} and bias {bias.shape}")
    return weight, bias


def _check_hash(path: Path) -> None:
    """Check the file's hash, whose beginning is in torch's file names."""
    named = re.search(r"-([0-9a-f]{8,})\.pth$", path.name)
    digest = sha256_of_file(path) if named else ""
    if named and not digest.startswith(named[1]):
        raise StorageError(
            f"{path} is damaged: its SHA-256 begins with {digest[:8]}, not with {named[1]} as "
            "its name says. Download it again."
        )
