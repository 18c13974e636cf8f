"""A model is a folder: a file of arrays and settings, and a card to read."""

from typing import TYPE_CHECKING

from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.storage.folders import check_folder as check_folder
    from tagkin.storage.folders import load as load
    from tagkin.storage.folders import save as save
    from tagkin.storage.model_file import read_checksum as read_checksum

__all__ = ["check_folder", "load", "read_checksum", "save"]

# Imported at first use: `import tagkin` loads no NumPy.
_HOMES = dict.fromkeys(("check_folder", "load", "save"), "folders")
__getattr__ = lazy_names(__name__, _HOMES | {"read_checksum": "model_file"})
