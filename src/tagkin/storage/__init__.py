"""A model is a folder: arrays as safetensors, everything else as JSON, and a card to read."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tagkin.storage.document import read_summary

if TYPE_CHECKING:
    from tagkin.storage.folders import check_folder as check_folder
    from tagkin.storage.folders import load as load
    from tagkin.storage.folders import save as save

__all__ = ["check_folder", "load", "read_summary", "save"]


def __getattr__(name: str) -> Any:
    # at first use: a model can be asked what it is without what it takes to build one
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("tagkin.storage.folders"), name)
