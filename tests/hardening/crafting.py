"""Models whose files somebody changed, with all checksums redone."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

Settings = dict[str, Any]


def header_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a safetensors file, and the rest."""
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def sha256_of(arrays: dict[str, np.ndarray]) -> str:
    """The checksum of a model's arrays, by what the format says."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


class Crafted:
    """The file of a saved model, to be changed and written again.

    Parameters
    ----------
    folder : Path
        Of a model of this version.
    """

    def __init__(self, folder: Path):
        data = (folder / "model.safetensors").read_bytes()
        self.about: dict[str, str] = header_of(data)[0]["__metadata__"]
        self.arrays: dict[str, Any] = safetensors.numpy.load(data)
        self.settings: Settings = json.loads(self.arrays.pop("settings").tobytes())
        self.change: Callable[[bytes], bytes] | None = None
        """What happens to the bytes of the whole file."""

    def data(self) -> bytes:
        """The file, with its checksum."""
        text = json.dumps(self.settings).encode()
        arrays = {**self.arrays, "settings": np.frombuffer(text, np.uint8)}
        about = {**self.about, "sha256": sha256_of(arrays)}
        data = safetensors.numpy.save(arrays, about)
        return data if self.change is None else self.change(data)

    def write(self, folder: Path) -> Path:
        """The model, in a folder of its own or in place of the one that is there."""
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        (folder / "model.safetensors").write_bytes(self.data())
        return folder


def settings_of(folder: Path) -> Settings:
    """The settings of a saved model, as JSON."""
    return Crafted(folder).settings


def rewrite(folder: Path, change: Callable[[Settings], Any]) -> None:
    """Edit a model's settings and mend its checksum, as someone with bad intent would."""
    crafted = Crafted(folder)
    change(crafted.settings)
    crafted.write(folder)
