"""The document of a model: a JSON file that describes it and names its files of arrays.

Files of arrays are named by their content, so replacing the document replaces the whole model in
one step.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, TypedDict

from tagkin.errors import DamagedModel, StorageError
from tagkin.version import __version__

__all__ = [
    "APART",
    "ARRAYS",
    "CARD",
    "FORMAT",
    "FORMAT_VERSION",
    "MODEL",
    "NamedFile",
    "document_text",
    "is_array_file",
    "named_file",
    "open_model_file",
    "read_document",
]

FORMAT = "tagkin-model"
FORMAT_VERSION = 5

MODEL, CARD = "model.json", "README.md"
ARRAYS, APART = "arrays", "apart"
"""Kinds of array files: read whenever the model is used, and read by some uses only."""

_LARGEST = 2**28  # bytes of JSON
_LONGEST_NUMBER = 400  # digits


class NamedFile(TypedDict):
    """The entry of a file of arrays in the document."""

    name: str
    size: int
    sha256: str


def is_array_file(name: str) -> bool:
    """Whether this is the name of a model's file of arrays."""
    return re.fullmatch(rf"({ARRAYS}|{APART})-[0-9a-f]{{16}}\.safetensors", name) is not None


def document_text(content: object, files: Mapping[str, NamedFile]) -> bytes:
    """Return the bytes of a model's document."""
    signed = {"content": content, "files": files}
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "tagkin_version": __version__,
        "content_sha256": _checksum(signed),
        **signed,
    }
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    # file names that are not UTF-8 contain surrogates, which JSON can escape
    return text.encode("utf-8", "backslashreplace")


def read_document(folder: Path) -> dict[str, object]:
    """Read the document of a model, and check that it is unchanged since it was saved."""
    path = folder / MODEL
    if not folder.exists():
        raise StorageError(f"{folder} is not a tagkin model: it does not exist.")
    if not path.is_file():
        raise StorageError(f"{folder} is not a tagkin model: it holds no {MODEL}.")
    with open_model_file(path) as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise DamagedModel(f"{path} is larger than any model of tagkin: over {_LARGEST:,} bytes.")
    try:
        document = json.loads(data.decode("utf-8"), parse_int=_read_whole)
    except (ValueError, RecursionError) as error:
        raise DamagedModel(f"{path} cannot be read ({error}). Save the model again.") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DamagedModel(f"{path} was not written by tagkin.")
    version = document.get("format_version")
    if version != FORMAT_VERSION:
        raise DamagedModel(
            f"{folder} has model format {version!r:.80}, written by tagkin "
            f"{document.get('tagkin_version')!r:.80}; this is tagkin {__version__}, which "
            f"reads format {FORMAT_VERSION}. Fit and save the model again."
        )
    signed = {name: document.get(name) for name in ("content", "files")}
    if _checksum(signed) != document.get("content_sha256"):
        raise DamagedModel(
            f"{path} is not as it was saved (its checksum differs). Restore it from a copy, or "
            "save the model again."
        )
    return document


def open_model_file(path: Path) -> BinaryIO:
    """Open a file of a model for reading, if it is a regular file in the model's folder.

    A link may lead anywhere, a pipe may never end, and opening a device may do something.

    Raises
    ------
    DamagedModel
        If it is a link, a pipe or a device.
    """
    refusal = DamagedModel(f"{path} is not a regular file.")
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise refusal
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    file = open(path, "rb", opener=lambda name, also: os.open(name, also | flags))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise refusal
    return file


def named_file(folder: Path, document: Mapping[str, object], kind: str) -> NamedFile | None:
    """Return the file of a kind that a document names; a model may have no file `APART`."""
    files = document.get("files")
    entry = files.get(kind) if isinstance(files, dict) else None
    if entry is None and kind == APART:
        return None
    entry = entry if isinstance(entry, dict) else {}
    name, size = entry.get("name"), entry.get("size")
    if not isinstance(name, str) or not is_array_file(name) or type(size) is not int:
        raise DamagedModel(f"{folder / MODEL} names no valid file of {kind}.")
    return {"name": name, "size": size, "sha256": str(entry.get("sha256"))}


def _checksum(content: object) -> str:
    try:
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    except RecursionError as error:
        raise DamagedModel("The model holds values that are nested too deeply.") from error
    return hashlib.sha256(canonical.encode()).hexdigest()


def _read_whole(digits: str) -> int | float:
    """Read a whole number; too many digits give infinity, which every rule rejects."""
    return int(digits) if len(digits) < _LONGEST_NUMBER else math.inf
