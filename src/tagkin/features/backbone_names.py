"""Backbones by name or by path."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from tagkin.errors import InvalidInput

if TYPE_CHECKING:
    from tagkin.features.backbone import Backbone

__all__ = ["BACKBONES", "get_backbone"]

BACKBONES = (
    "efficientnet-lite0-whole",
    "efficientnet-lite2-whole",
    "efficientnet-lite0+lite2-whole",
    "efficientnet-lite0",
    "efficientnet-lite2",
    "efficientnet-lite0+lite2",
)
_BY_PATH = {"vgg16": "fc7", "vgg16-fc6": "fc6"}


def _get_installed(name: str) -> Backbone | None:
    from tagkin.features.model_registry import check_installed, registered_models

    if (entry := registered_models().get(name)) is None:
        return None
    check_installed(name)
    from tagkin.features.onnx import OnnxEncoder

    return OnnxEncoder(entry.folder / "visual.onnx", entry.settings, name)


def get_backbone(name: str = BACKBONES[0]) -> Backbone:
    """Return a backbone by its name or the path of its file.

    Parameters
    ----------
    name : str
        - ``efficientnet-lite0-whole`` (the default), ``efficientnet-lite2-whole``, or
          ``efficientnet-lite0+lite2-whole``, the features of both. Drop ``-whole`` for the middle
          of the photograph in fewer pixels;
        - the name of a model that ``tagkin models get`` has installed, such as ``siglip2-base``;
        - ``vgg16:PATH`` or ``vgg16-fc6:PATH`` with torchvision's file of weights;
        - the path of an ``.onnx`` file with a ``.json`` file of the same name for its
          preprocessing;
        - several of these names joined by ``+``: the features of all of them.
    """
    parts = _split_joined(name)
    if len(parts) > 1:
        from tagkin.features.joined import JoinedBackbones

        return JoinedBackbones(name, [get_backbone(part) for part in parts])
    if name in BACKBONES:
        from tagkin.features.efficientnet import EfficientNetLite

        return EfficientNetLite(name)
    kind, colon, path = name.partition(":")
    if colon and path and kind in _BY_PATH:
        from tagkin.features.vgg import VGG16

        return VGG16(path, layer=_BY_PATH[kind])
    if name.lower().endswith(".onnx"):
        from tagkin.features.onnx import OnnxEncoder

        return OnnxEncoder(name)
    if (installed := _get_installed(name)) is not None:
        return installed
    raise InvalidInput(
        f"There is no backbone {name!r}. Choose {', '.join(BACKBONES)}, "
        "vgg16:PATH or vgg16-fc6:PATH with torchvision's weights, the path of an .onnx file, or a "
        "model of `tagkin models list`."
    )


def _split_joined(name: str) -> list[str]:
    """Return the names that + joins; lite0+lite2 stands for two names of the same kind."""
    if os.path.isfile(name.partition(":")[2] or name):
        return [name]  # a path may have a +
    parts = re.split(r"\+(?=\S)", name)
    if parts[-1].startswith("lite2") and parts[0] == "efficientnet-lite0":
        return [parts[0] + parts[-1].removeprefix("lite2"), f"efficientnet-{parts[-1]}"]
    return parts
