"""A model is a folder: arrays as safetensors, everything else as JSON, and a card to read."""

from tagkin.storage.folders import check_folder, load, save

__all__ = ["check_folder", "load", "save"]
