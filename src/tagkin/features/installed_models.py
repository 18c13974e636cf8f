"""Models that ``tagkin models`` has installed, each in its own folder.

A folder has ``visual.onnx``, optionally ``textual.onnx`` with its tokenizer, files with weights
that these name, and ``model.json``, which is written last: a folder without it is not a model. It
says where the model comes from, how a photograph becomes its input, and the size and the SHA-256
of every file.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platformdirs import user_data_dir

from tagkin.errors import InvalidInput, NotFound, StorageError
from tagkin.features.json_files import read_json
from tagkin.filesystem import make_private_folder, write_whole

if TYPE_CHECKING:
    from tagkin.features.backbone import Preprocessing

__all__ = [
    "FileRecord",
    "InstalledModel",
    "InstalledText",
    "check_room",
    "damaged_files",
    "installed_models",
    "make_model_folder",
    "model_folder",
    "models_folder",
    "read_installed_model",
    "remove_model",
    "write_installed_model",
]

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_FILE = re.compile(r"(?!\.)[^/\\:\0]{1,255}")  # in the folder itself, on every system
_POOLS = (None, "mean", "max", "first")


@dataclass(frozen=True)
class FileRecord:
    """The size and the SHA-256 of an installed file."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class InstalledText:
    """How a text becomes the input of ``textual.onnx``."""

    tokenizer: str = "tokenizer.json"
    length: int | None = None
    """Number of tokens that every text is padded or cut to; None: as long as the longest."""
    pad: int = 0
    lower_case: bool = False
    """Whether the text half was trained on lower-case text, which its tokenizer does not make."""
    output: str | None = None


@dataclass(frozen=True)
class InstalledModel:
    """A model in its folder."""

    name: str
    folder: Path
    source: str
    """Repository, or the folder that was imported."""
    revision: str | None
    licence: str
    preprocessing: Preprocessing
    output: str | None
    pool: str | None
    text: InstalledText | None
    scale: float | None
    """Factor of cosines between photographs and texts; None if not known."""
    bias: float | None
    files: Mapping[str, FileRecord]

    @property
    def visual(self) -> Path:
        """The image half."""
        return self.folder / "visual.onnx"

    @property
    def textual(self) -> Path | None:
        """The text half, if there is one."""
        return self.folder / "textual.onnx" if self.text else None

    def encoder_settings(self) -> dict[str, Any]:
        """Return the settings for `OnnxEncoder`, as a ``.json`` file beside the image half has."""
        values = asdict(self.preprocessing) | {"output": self.output, "pool": self.pool}
        if self.text is not None:
            text = {"scale": self.scale, "bias": self.bias, **asdict(self.text)}
            known = {key: value for key, value in text.items() if value is not None}
            values["text"] = known | {"model": "textual.onnx"}
        return values


def models_folder() -> Path:
    """Return ``TAGKIN_MODELS`` if it is set, else ``models`` in tagkin's data folder."""
    chosen = os.environ.get("TAGKIN_MODELS")
    try:
        own = Path(user_data_dir("tagkin", appauthor=False)) / "models"
        return Path(chosen or own).expanduser()
    except RuntimeError as error:  # a container may run as anybody
        raise StorageError(
            "This user has no home folder to keep models in. Name a folder with TAGKIN_MODELS."
        ) from error


def model_folder(name: str) -> Path:
    """Return the folder of a model, which need not exist."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{name!r} cannot be the name of a model: it has up to 64 lower-case letters, digits, "
            "dots, hyphens and underscores, and begins with a letter or a digit."
        )
    return models_folder() / name


def installed_models() -> list[str]:
    """Return the names of all installed models."""
    try:
        found = models_folder().glob("*/model.json")
        return sorted(path.parent.name for path in found if _NAME.fullmatch(path.parent.name))
    except OSError:
        return []


def read_installed_model(name: str) -> InstalledModel:
    """Return an installed model, after a check of everything but the content of its files."""
    path = model_folder(name) / "model.json"
    try:
        values = read_json(path)
    except FileNotFoundError:
        raise NotFound(f"The model {name!r} is not installed: tagkin models list") from None
    except InvalidInput as error:
        raise StorageError(f"{error} {_AGAIN}") from error
    model = _parse(name, path, values)
    for file, record in model.files.items():
        place = model.folder / file
        if place.is_symlink() or not place.is_file() or place.stat().st_size != record.bytes:
            raise StorageError(f"{place} is missing or has another size. {_AGAIN}")
    return model


_AGAIN = "Remove the model with `tagkin models remove`, and install it again."


def write_installed_model(name: str, values: Mapping[str, Any]) -> InstalledModel:
    """Write ``model.json`` with these values, which makes a folder an installed model."""
    path = model_folder(name) / "model.json"
    model = _parse(name, path, {"format": 1, "name": name, **values})
    text = json.dumps({"format": 1, "name": name, **values}, indent=1, ensure_ascii=False)
    write_whole(path, text.encode(), private=True)
    return model


def damaged_files(model: InstalledModel) -> list[str]:
    """Return the files whose content has changed since the installation."""
    from tagkin.features.torch_files import sha256_of_file

    return [
        name
        for name, record in model.files.items()
        if sha256_of_file(model.folder / name) != record.sha256
    ]


def remove_model(name: str) -> None:
    """Remove a model, or the files of an interrupted download."""
    folder = model_folder(name)
    if folder.is_symlink() or not folder.is_dir():
        raise NotFound(f"The model {name!r} is not installed: tagkin models list")
    (folder / "model.json").unlink(missing_ok=True)  # first, so half of a model is not a model
    shutil.rmtree(folder)


def make_model_folder(name: str) -> Path:
    """Create the private folder of a model, and return it."""
    folder = model_folder(name)
    try:
        make_private_folder(folder)
    except OSError as error:
        raise StorageError(f"{folder} cannot be made: {error.strerror or error}.") from error
    return folder


def check_room(folder: Path, n_bytes: int) -> None:
    """Raise `StorageError` if the disk has less than `n_bytes` free."""
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise StorageError(
            f"{n_bytes // 10**6:,} MB are needed in {folder}, and {free // 10**6:,} MB are free. "
            "Free some space, or name another folder with TAGKIN_MODELS."
        )


# --- checks ------------------------------------------------------------------------------


def _parse(name: str, path: Path, values: Any) -> InstalledModel:
    """Check the content of ``model.json``."""
    from tagkin.features.backbone import Preprocessing

    def field(key: str, kinds: Any, default: Any = ..., of: Any = values) -> Any:
        value = of.get(key, default) if isinstance(of, Mapping) else ...
        if not isinstance(value, kinds) or isinstance(value, bool) != (kinds is bool):
            raise StorageError(f"{path}: {key!r} is missing or not of its type. {_AGAIN}")
        return value

    if field("format", int) != 1 or field("name", str) != name:
        raise StorageError(f"{path} describes another model or format. {_AGAIN}")
    text = None
    if (given := field("text", dict | None, None)) is not None:
        text = InstalledText(
            tokenizer=field("tokenizer", str, of=given),
            length=field("length", int | None, None, of=given),
            pad=field("pad", int, 0, of=given),
            lower_case=field("lower_case", bool, False, of=given),
            output=field("output", str | None, None, of=given),
        )
    files = {
        file: FileRecord(field("bytes", int, of=record), field("sha256", str, of=record))
        for file, record in field("files", dict).items()
    }
    needed = {"visual.onnx"} | ({"textual.onnx", text.tokenizer} if text else set())
    wrong = [file for file in files if not _FILE.fullmatch(file)]
    pool = field("pool", str | None, None)
    if wrong or needed - set(files) or pool not in _POOLS:
        raise StorageError(f"{path}: its files or its pool are not valid. {_AGAIN}")
    try:
        preprocessing = Preprocessing(**field("preprocessing", dict))
    except (InvalidInput, TypeError) as error:
        raise StorageError(f"{path}: {error} {_AGAIN}") from error
    number = float | int | None
    return InstalledModel(
        name=name,
        folder=path.parent,
        source=field("source", str),
        revision=field("revision", str | None, None),
        licence=field("licence", str),
        preprocessing=preprocessing,
        output=field("output", str | None, None),
        pool=pool,
        text=text,
        scale=field("scale", number, None),
        bias=field("bias", number, None),
        files=files,
    )
