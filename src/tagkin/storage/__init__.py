"""A model is a folder: arrays as safetensors, everything else as JSON, and a card to read."""

from typing import TYPE_CHECKING

from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.storage.folders import check_folder as check_folder
    from tagkin.storage.folders import load as load
    from tagkin.storage.folders import save as save

__all__ = ["check_folder", "load", "save"]

# Imported at first use: `import tagkin` loads no NumPy.
__getattr__ = lazy_names(__name__, dict.fromkeys(("check_folder", "load", "save"), "folders"))
