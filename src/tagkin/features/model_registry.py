"""The models that ``tagkin models get`` knows by name.

``models.json`` says for each model where its files are, and their sizes and SHA-256. ``null`` means
not known: the first download shows the number and keeps it in the model's folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tagkin.errors import InvalidInput, NotFound
from tagkin.features.installed_models import installed_models

__all__ = [
    "REGISTRY",
    "ModelEntry",
    "RemoteFile",
    "check_installed",
    "find_entry",
    "registered_models",
]

REGISTRY = Path(__file__).with_name("models.json")


@dataclass(frozen=True)
class RemoteFile:
    """A file in a repository."""

    path: str
    bytes: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class ModelEntry:
    """A model in the registry."""

    name: str
    purpose: str
    source: str
    """Repository on the hub, as ``owner/name``."""
    licence: str
    licence_url: str
    dimension: int
    """Length of a feature vector."""
    files: Mapping[str, RemoteFile]
    """The files of the model, by their names in the model's folder."""
    settings: Mapping[str, Any]
    """Preprocessing, outputs and text half, as in ``model.json``."""
    revision: str | None = None
    """Full commit hash. None means the newest commit; the first download keeps its hash."""
    terms: str = ""
    """Conditions of a licence that is not open; empty for an open licence."""
    recommended: bool = False
    cost: str = "not measured"
    """Seconds per photograph."""
    immich: str = field(default="", repr=False)
    """Immich's name of a model with the same weights."""

    @property
    def n_bytes(self) -> int:
        """Size of all files whose size is known."""
        return sum(file.bytes or 0 for file in self.files.values())

    @property
    def unknown_digests(self) -> list[str]:
        """Files that the first download pins."""
        return [name for name, file in self.files.items() if file.sha256 is None]


def registered_models() -> dict[str, ModelEntry]:
    """Return all models of the registry by name, from small to large."""
    entries = json.loads(REGISTRY.read_text(encoding="utf-8"))["models"]
    return {entry["name"]: _entry(entry) for entry in entries}


def find_entry(name: str) -> ModelEntry:
    """Return a model of the registry."""
    known = registered_models()
    if name not in known:
        raise NotFound(f"There is no model {name!r} to get. Known are {', '.join(known)}.")
    return known[name]


def check_installed(name: str) -> None:
    """Reject the name of a model that could be installed and is not."""
    if name in registered_models() and name not in installed_models():
        raise InvalidInput(f"The model {name!r} is not installed: tagkin models get {name}")


def _entry(values: dict[str, Any]) -> ModelEntry:
    files = {name: RemoteFile(**file) for name, file in values["files"].items()}
    return ModelEntry(**{**values, "files": files})
