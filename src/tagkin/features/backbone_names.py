"""Backbones by name or by path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tagkin.errors import InvalidInput

if TYPE_CHECKING:
    from tagkin.features.backbone import Backbone

__all__ = ["BACKBONES", "EYES", "get_backbone"]

BACKBONES = ("efficientnet-lite0-whole", "efficientnet-lite0")
EYES = "immich"
"""Name of the network of an Immich server."""


def get_backbone(name: str = BACKBONES[0]) -> Backbone:
    """Return a backbone by its name or the path of its file.

    Parameters
    ----------
    name : str
        - ``efficientnet-lite0-whole`` (the default), or ``efficientnet-lite0``, which sees the
          middle of the photograph in fewer pixels;
        - ``immich``: the network of the machine learning service that ``tagkin connect immich``
          was given with ``--eyes``;
        - the path of an ``.onnx`` file with a ``.json`` file of the same name for its
          preprocessing.
    """
    if name in BACKBONES:
        from tagkin.features.efficientnet import EfficientNetLite0

        return EfficientNetLite0(name)
    if name == EYES:
        from tagkin.features.eyes import ImmichEyes

        return ImmichEyes(name)
    from tagkin.features.onnx import OnnxEncoder

    if name.lower().endswith(".onnx"):
        return OnnxEncoder(name)
    raise InvalidInput(
        f"There is no backbone {name!r}. Choose {', '.join(BACKBONES)}, {EYES} (see tagkin "
        "connect), or the path of an .onnx file."
    )
