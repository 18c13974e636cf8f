"""Install models that other programs have already put on this machine.

Three layouts are known, and a plain ``.onnx`` file with its ``.json``:

- Immich: ``visual/model.onnx``, ``textual/model.onnx``, ``visual/preprocess_cfg.json`` and
  ``config.json``;
- open_clip: two ``.onnx`` files and ``open_clip_config.json``;
- transformers and sentence-transformers: ``.onnx`` files and ``preprocessor_config.json``.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from tagkin.errors import InvalidInput, StorageError, TagkinError
from tagkin.features.backbone import Preprocessing
from tagkin.features.backbone_names import BACKBONES, get_backbone
from tagkin.features.installed_models import (
    FileRecord,
    InstalledModel,
    check_room,
    make_model_folder,
    model_folder,
    remove_model,
    write_installed_model,
)
from tagkin.features.json_files import MAX_JSON, read_json
from tagkin.features.model_registry import registered_models
from tagkin.features.onnx_files import external_files, location_entries, read_model
from tagkin.features.onnx_sessions import first_line
from tagkin.features.text_encoder import read_text_settings
from tagkin.features.torch_files import sha256_of_file
from tagkin.filesystem import open_private

__all__ = ["ImportPlan", "import_model", "plan_import"]

_VISUAL = ("visual/model.onnx", "visual.onnx", "vision_model.onnx", "image.onnx", "model.onnx")
_TEXTUAL = ("textual/model.onnx", "textual.onnx", "text_model.onnx", "text.onnx")
_INSIDE = ("", "onnx", "0_CLIPModel", "0_CLIPModel/onnx")  # folders of a model
_OUTPUTS = (
    "image_embeds", "image_embedding", "text_embeds", "text_embedding", "embedding",
    "sentence_embedding", "pooler_output",
)  # fmt: skip
_MAX_TOKENIZER = 64 << 20  # bytes of its JSON; tokenizers of many languages have 35 MB
_RESAMPLING = {1: "lanczos", 2: "bilinear", 3: "bicubic"}  # numbers of Pillow


@dataclass(frozen=True)
class ImportPlan:
    """A model to install: its files by the names that they get, and the rest of ``model.json``."""

    name: str
    files: Mapping[str, Path | bytes]
    values: Mapping[str, Any]


def plan_import(source: Path, name: str | None = None) -> ImportPlan:
    """Plan the installation of a folder or an ``.onnx`` file; write nothing."""
    source = source.expanduser().absolute()
    is_file = source.suffix.lower() == ".onnx"
    own = source.stem if is_file else source.name
    name = name or re.sub(r"[^a-z0-9._-]+", "-", own.lower()).strip("._-")
    if model_folder(name).exists():
        raise StorageError(f"There is a model {name!r} already. Choose another name with --name.")
    if name in BACKBONES or name in registered_models() or name.endswith((".onnx", "-gem")):
        raise InvalidInput(f"{name!r} means another backbone. Choose another name with --name.")
    visual = source if is_file else _find(source, _VISUAL)
    if visual is None or not visual.is_file():
        raise InvalidInput(
            f"{source} has no image half: none of {', '.join(_VISUAL)}, also not in onnx/."
        )
    graph = _Graph(visual)
    files: dict[str, Path | bytes] = {"visual.onnx": visual, **graph.external_files()}
    planned = _plan_file(source) if is_file else _plan_folder(source, graph)
    values, textual, tokenizer = planned
    values = {"source": str(source), "licence": "not known", **values}
    if textual is not None and tokenizer is not None:
        half = _Graph(textual)
        weights = half.external_files()
        if set(weights) & set(files):  # the halves came from two folders, and are put into one
            weights = {f"textual-{file}": path for file, path in weights.items()}
            files["textual.onnx"] = half.with_prefix("textual-")
        files = {"textual.onnx": textual, "tokenizer.json": tokenizer, **files, **weights}
        text = {"tokenizer": "tokenizer.json", "output": half.output()["output"]}
        values["text"] = text | values["text"]
    for file in files.values():
        if isinstance(file, Path):
            _check_file(file, source.parent if is_file else source)
    return ImportPlan(name, files, values)


def _check_file(file: Path, folder: Path) -> None:
    """Reject a file that is not regular, or a link to a file outside of the model's folder.

    In the cache of Hugging Face, files are links into the folder of the same repository.
    """
    if not file.is_file():
        raise InvalidInput(f"{file} is missing or not a regular file.")
    repositories = [part for part in folder.parents if part.name.startswith("models--")]
    real = file.resolve()
    if not any(part.resolve() in real.parents for part in (folder, *repositories)):
        raise InvalidInput(
            f"{file} is outside of {folder}, at {real}. Copy the file itself into the folder, "
            "and import it again."
        )


_Plan: TypeAlias = tuple[dict[str, Any], Path | None, Path | None]  # values, text half, tokenizer


def _plan_file(source: Path) -> _Plan:
    """Plan by the ``.json`` file of an ``.onnx`` file."""
    beside = source.with_suffix(".json")
    given = _read(beside)
    values = {key: given.pop(key, None) for key in ("output", "pool")}
    text = read_text_settings(beside, given.pop("text")) if "text" in given else None
    try:
        values["preprocessing"] = asdict(Preprocessing(**given))
    except (InvalidInput, TypeError) as error:
        raise InvalidInput(f"{beside}: {error}") from error
    if text is None:
        return values, None, None
    values |= {key: getattr(text, key) for key in ("scale", "bias")}
    kept = ("length", "pad", "lower_case", "output")
    values["text"] = {key: v for key, v in asdict(text).items() if key in kept and v is not None}
    return values, Path(text.model), Path(text.tokenizer)


def _plan_folder(source: Path, graph: _Graph) -> _Plan:
    """Plan by the JSON files of the program that wrote a folder."""
    values = graph.output() | {"preprocessing": _preprocessing(source, graph)}
    tokenizer = _find(source, ("textual/tokenizer.json", "tokenizer.json"))
    values["text"] = _tokens(source, tokenizer) if tokenizer else None
    known = {entry.immich: entry for entry in registered_models().values() if entry.immich}
    if (entry := known.get(source.name)) is not None:  # the same weights
        values |= {key: entry.settings.get(key) for key in ("scale", "bias")}
        values["licence"] = entry.licence
    textual = _find(source, _TEXTUAL)
    if textual is None:
        values["text"] = None
    return values, textual, tokenizer


def import_model(plan: ImportPlan) -> InstalledModel:
    """Copy the files of a plan, and open the model once; if that fails, nothing is left."""
    folder = make_model_folder(plan.name)
    try:
        paths = [path for path in plan.files.values() if isinstance(path, Path)]
        check_room(folder, sum(path.stat().st_size for path in paths))
        files = {name: asdict(_copy(path, folder / name)) for name, path in plan.files.items()}
        model = write_installed_model(plan.name, {**plan.values, "files": files})
        get_backbone(plan.name)
        return model
    except OSError as error:
        remove_model(plan.name)
        if isinstance(error, TagkinError):
            raise
        raise StorageError(
            f"{plan.name} could not be copied to {folder}: {error.strerror or error}. Nothing was "
            "installed."
        ) from error
    except BaseException:
        remove_model(plan.name)
        raise


def _copy(source: Path | bytes, target: Path) -> FileRecord:
    with open(target, "xb", opener=open_private) as copy:
        if isinstance(source, bytes):
            copy.write(source)
        else:
            with open(source, "rb") as original:
                shutil.copyfileobj(original, copy)
    return FileRecord(target.stat().st_size, sha256_of_file(target))


# --- graphs ------------------------------------------------------------------------------


class _Graph:
    """The inputs, outputs and external files of an ``.onnx`` file, without its weights."""

    def __init__(self, path: Path):
        self.path = path
        self._model = read_model(path)
        graph = self._model.graph
        constants = {tensor.name for tensor in graph.initializer}
        self.inputs = [node for node in graph.input if node.name not in constants]
        self.outputs = list(graph.output)
        if not self.inputs or not self.outputs:
            raise InvalidInput(f"{path} has no inputs or no outputs.")

    def external_files(self) -> dict[str, Path]:
        """Return the files with weights by name; they lie in the folder of the graph."""
        return external_files(self.path, self._model)

    def with_prefix(self, prefix: str) -> bytes:
        """Return the graph with a prefix before the names of its external files."""
        for entry in location_entries(self._model):
            entry.value = f"{prefix}{entry.value}"
        return self._model.SerializeToString()

    def output(self) -> dict[str, str | None]:
        """Choose the output with one embedding per input, and how it is pooled."""
        names = [node.name for node in self.outputs]
        if len(names) == 1 and len(_shape(self.outputs[0])) != 3:
            return {"output": names[0], "pool": None}
        for name in _OUTPUTS:
            if name in names:
                return {"output": name, "pool": None}
        if "last_hidden_state" in names or len(names) == 1:
            tokens = "last_hidden_state" if "last_hidden_state" in names else names[0]
            return {"output": tokens, "pool": "first"}
        raise InvalidInput(
            f"{self.path} has the outputs {', '.join(names)}; none of them is known. Import the "
            ".onnx file itself, with a .json file of the same name that names the output."
        )


def _shape(node: Any) -> list[int]:
    """Return the lengths of an input or output; 0 for a free length."""
    return [length.dim_value for length in node.type.tensor_type.shape.dim]


# --- settings ----------------------------------------------------------------------------


def _find(source: Path, names: tuple[str, ...]) -> Path | None:
    paths = (source / inside / name for name in names for inside in _INSIDE)
    return next((path for path in paths if path.is_file()), None)


def _read(path: Path | None, max_bytes: int = MAX_JSON) -> dict[str, Any]:
    """Return the object in a JSON file; empty if there is no such file."""
    if path is None:
        return {}
    try:
        values = read_json(path, max_bytes)
    except (OSError, InvalidInput) as error:
        raise InvalidInput(f"{path} cannot be read as JSON: {first_line(error)}") from error
    if not isinstance(values, dict):
        raise InvalidInput(f"{path} contains {type(values).__name__}; expected an object.")
    return values


def _preprocessing(source: Path, graph: _Graph) -> dict[str, Any]:
    """Return the preprocessing, from the JSON file of whichever program wrote the folder."""
    own = _read(_find(source, ("visual/preprocess_cfg.json",)))
    opened = _read(_find(source, ("open_clip_config.json",)))
    own = own or opened.get("preprocess_cfg", {})
    other = _read(_find(source, ("preprocessor_config.json",)))
    shape = _shape(graph.inputs[0])
    last = len(shape) == 4 and shape[3] == 3 and shape[1] != 3
    try:
        if own:
            config = opened.get("model_cfg", {}).get("vision_cfg", {})
            size = own.get("size", config.get("image_size"))
            size = size[0] if isinstance(size, list) else size
            squash = own.get("resize_mode", "shortest") == "squash"
            resample = own.get("interpolation", "bicubic")
            values = {"size": size, "mean": own["mean"], "std": own["std"]}
            values |= {"resize": "warp" if squash else "crop", "resample": resample}
        else:
            size = other["size"] if isinstance(other["size"], dict) else {"height": other["size"]}
            crop = other.get("crop_size", size)
            crop = crop if isinstance(crop, dict) else {"height": crop}
            short = size.get("shortest_edge")
            plain = other.get("do_normalize") is False
            values = {"mean": [0.0] * 3 if plain else other["image_mean"]}
            values |= {"std": [1.0] * 3 if plain else other["image_std"]}
            values |= {"resample": _RESAMPLING[other.get("resample", 3)]}
            values |= {"size": crop.get("height", short), "resize": "crop" if short else "warp"}
            values |= {"short_side": short} if short else {}
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise InvalidInput(
            f"{source} does not say how to prepare photographs for {graph.path.name} ({error!r}): "
            "expected visual/preprocess_cfg.json, open_clip_config.json or "
            "preprocessor_config.json."
        ) from error
    return values | ({"layout": "NHWC"} if last else {})


def _tokens(source: Path, tokenizer: Path) -> dict[str, Any]:
    """Return to which length, with which token and in which case texts are made."""
    config = _read(_find(source, ("config.json",)))
    opened = _read(_find(source, ("open_clip_config.json",)))
    beside = _read(_find(source, ("textual/tokenizer_config.json", "tokenizer_config.json")))
    content = _read(tokenizer, _MAX_TOKENIZER)
    try:
        text = config.get("text_cfg") or config.get("text_config")
        text = text or opened.get("model_cfg", {}).get("text_cfg") or {}
        pad = beside.get("pad_token", "")
        pad = pad.get("content") if isinstance(pad, dict) else pad
        tokens = {token["content"]: token["id"] for token in content.get("added_tokens", [])}
        clean = (text.get("tokenizer_kwargs") or {}).get("clean")
        length = text.get("context_length") or text.get("max_position_embeddings") or 77
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"{source} does not say how to prepare texts ({error!r}): expected text_cfg or "
            "text_config in its JSON files, and added_tokens in tokenizer.json."
        ) from error
    lower = clean in ("canonicalize", "lower")
    return {"length": length, "pad": tokens.get(pad) or 0, "lower_case": lower}
