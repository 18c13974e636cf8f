"""Models whose files somebody changed, with all checksums redone."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors.numpy

Document = dict[str, Any]


def content_sha256(document: Document) -> str:
    """The checksum of a model's document, by what the format says."""
    signed = document.get("content")
    if document["format_version"] != 1:
        signed = {name: document.get(name) for name in ("content", "files")}
    text = json.dumps(signed, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class Crafted:
    """The files of a saved model, to be changed and written again.

    Parameters
    ----------
    folder : Path
        Of a model of this version.
    """

    def __init__(self, folder: Path):
        self.document: Document = json.loads((folder / "model.json").read_text())
        self.files: dict[str, bytes] = {
            kind: (folder / file["name"]).read_bytes()
            for kind, file in self.document["files"].items()
        }

    def arrays(self, kind: str = "arrays") -> dict[str, Any]:
        """The arrays of one file, by name."""
        return safetensors.numpy.load(self.files[kind])

    def with_arrays(self, kind: str, arrays: dict[str, Any]) -> None:
        """Put other arrays into one file."""
        self.files[kind] = safetensors.numpy.save(arrays)

    def write(self, folder: Path) -> Path:
        """The model, in a folder of its own or in place of the one that is there."""
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for kind, data in self.files.items():
            digest = hashlib.sha256(data).hexdigest()
            name = f"{kind}-{digest[:16]}.safetensors"
            (folder / name).write_bytes(data)
            if isinstance(self.document.get("files"), dict) and kind in self.document["files"]:
                self.document["files"][kind] = {"name": name, "size": len(data), "sha256": digest}
        return self.write_document(folder)

    def write_document(self, folder: Path) -> Path:
        """The document alone, with its checksum."""
        if isinstance(self.document, dict) and "format_version" in self.document:
            self.document["content_sha256"] = content_sha256(self.document)
        (folder / "model.json").write_text(json.dumps(self.document))
        return folder


def rewrite(folder: Path, change: Callable[[Document], Any]) -> None:
    """Edit a model's document and mend its checksum, as someone with bad intent would."""
    crafted = Crafted(folder)
    change(crafted.document)
    crafted.write_document(folder)
