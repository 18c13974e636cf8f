"""The models that ``tagkin models get`` knows by name.

``models.json`` says for each model where its files are, their sizes and SHA-256, and how a
photograph becomes its input. An installed model is a folder with these files: ``visual.onnx``,
optionally ``textual.onnx`` with its tokenizer, and files with weights that these name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_data_dir

from tagkin.errors import InvalidInput, NotFound, StorageError

__all__ = [
    "REGISTRY",
    "ModelEntry",
    "RemoteFile",
    "check_installed",
    "find_entry",
    "installed_models",
    "registered_models",
]

REGISTRY = Path(__file__).with_name("models.json")


@dataclass(frozen=True)
class RemoteFile:
    """A file in a repository."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class ModelEntry:
    """A model in the registry."""

    name: str
    purpose: str
    source: str
    """Repository on the hub, as ``owner/name``."""
    revision: str
    """Full commit hash."""
    licence: str
    licence_url: str
    dimension: int
    """Length of a feature vector."""
    files: Mapping[str, RemoteFile]
    """The files of the model, by their names in the model's folder."""
    settings: Mapping[str, object]
    """The content of the ``.json`` file that an encoder needs, see `tagkin.features.onnx`."""
    terms: str = ""
    """Conditions of a licence that is not open; empty for an open licence."""
    recommended: bool = False

    @property
    def n_bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files.values())

    @property
    def folder(self) -> Path:
        """The folder of the model, which need not exist."""
        return _models_folder() / self.name

    def missing_files(self) -> list[str]:
        """Return the files that are not there, are links, or have another size."""
        return [name for name, file in self.files.items() if not self._has(name, file.bytes)]

    def _has(self, name: str, n_bytes: int) -> bool:
        path = self.folder / name
        return not path.is_symlink() and path.is_file() and path.stat().st_size == n_bytes


def _models_folder() -> Path:
    """Return ``TAGKIN_MODELS`` if it is set, else ``models`` in tagkin's data folder."""
    chosen = os.environ.get("TAGKIN_MODELS")
    try:
        own = Path(user_data_dir("tagkin", appauthor=False)) / "models"
        return Path(chosen or own).expanduser()
    except RuntimeError as error:  # a container may run as anybody
        raise StorageError(
            "This user has no home folder to keep models in. Name a folder with TAGKIN_MODELS."
        ) from error


def registered_models() -> dict[str, ModelEntry]:
    """Return all models of the registry by name, from small to large."""
    models = {}
    for values in json.loads(REGISTRY.read_text(encoding="utf-8"))["models"]:
        files = {name: RemoteFile(**file) for name, file in values.pop("files").items()}
        models[values["name"]] = ModelEntry(**values, files=files)
    return models


def installed_models() -> dict[str, ModelEntry]:
    """Return the models of the registry whose files are all there."""
    entries = registered_models().items()
    return {name: entry for name, entry in entries if not entry.missing_files()}


def find_entry(name: str) -> ModelEntry:
    """Return a model of the registry."""
    known = registered_models()
    if name not in known:
        raise NotFound(f"There is no model {name!r} to get. Known are {', '.join(known)}.")
    return known[name]


def check_installed(name: str) -> None:
    """Reject the name of a model that could be installed and is not."""
    entry = registered_models().get(name)
    if entry is not None and entry.missing_files():
        raise InvalidInput(f"The model {name!r} is not installed: tagkin models get {name}")
