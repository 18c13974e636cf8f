"""A model is a folder: arrays as safetensors, everything else as JSON, and a card to read."""

from typing import TYPE_CHECKING

from tagkin.lazy_names import lazy_names
from tagkin.storage.document import read_summary

if TYPE_CHECKING:
    from tagkin.storage.folders import check_folder as check_folder
    from tagkin.storage.folders import load as load
    from tagkin.storage.folders import save as save

__all__ = ["check_folder", "load", "read_summary", "save"]

# Imported at first use, because reading a model's summary does not build the model.
__getattr__ = lazy_names(__name__, dict.fromkeys(("check_folder", "load", "save"), "folders"))
