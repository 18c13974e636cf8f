"""Backbones by name or by path."""

from __future__ import annotations

from tagkin.errors import InvalidInput
from tagkin.features.base import Backbone

__all__ = ["BACKBONES", "get_backbone"]

BACKBONES = ("efficientnet-lite0", "efficientnet-lite2", "efficientnet-lite0+lite2")


def get_backbone(name: str = BACKBONES[0]) -> Backbone:
    """A backbone by its name, or by the path of its file.

    Parameters
    ----------
    name : str
        ``efficientnet-lite0`` (the default), ``efficientnet-lite2``, or
        ``efficientnet-lite0+lite2``, the features of both.
    """
    if name == "efficientnet-lite0+lite2":
        from tagkin.features.efficientnet import JoinedEfficientNets

        return JoinedEfficientNets()
    if name in BACKBONES:
        from tagkin.features.efficientnet import EfficientNetLite

        return EfficientNetLite(name)
    raise InvalidInput(f"There is no backbone {name!r}. There is {', '.join(BACKBONES)}.")
