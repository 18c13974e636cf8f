"""A text encoder that was trained together with an image encoder, as CLIP's and SigLIP's were.

The ``.json`` file beside the image encoder says where it is, under the key ``text``::

    "text": {"model": "text.onnx", "tokenizer": "tokenizer.json", "prompt": "a photo of a {}.",
             "scale": 100.0}

- ``model``, ``tokenizer``: files, relative to the folder of the ``.json`` file; needed.
- ``prompt``: the sentence that a name is put into; ``neutral``: a sentence without a name.
- ``scale``, ``bias``: what cosines are multiplied with and what is added, as learned in training;
  SigLIP has a bias, CLIP has none.
- ``length``, ``pad``: how many tokens every text is padded to (by default as many as the longest
  has), and with which; longer ones are cut.
- ``output``: its name in the model; needed where it has several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from tagkin.errors import InvalidInput, MissingExtra, StorageError, pip_install
from tagkin.features.onnx_sessions import open_session

__all__ = ["TextEncoder", "TextSettings", "read_text_settings"]

_AT_ONCE = 64  # texts
_LONGEST = 77  # tokens that CLIP takes


@dataclass(frozen=True)
class TextSettings:
    """What the ``.json`` file says of the text encoder."""

    model: str
    tokenizer: str
    prompt: str = "a photo of a {}."
    neutral: str = "a photo."
    scale: float = 100.0
    bias: float | None = None
    length: int | None = None
    pad: int = 0
    output: str | None = None


def read_text_settings(path: Path, values: Any) -> TextSettings:
    """The settings under ``text`` in the file at `path`, each of the kind that it should be."""
    known = {field.name: field for field in fields(TextSettings)}
    if not isinstance(values, Mapping):
        raise InvalidInput(f"{path}: text is an object with model and tokenizer; found {values!r}.")
    unknown = [key for key in values if key not in known]
    if unknown:
        raise InvalidInput(
            f"{path}: unknown {', '.join(unknown)} in text; known are {', '.join(known)}."
        )
    missing = [key for key in ("model", "tokenizer") if key not in values]
    if missing:
        raise InvalidInput(f"{path}: text needs {' and '.join(missing)}, the path of a file.")
    for key in ("model", "tokenizer", "prompt", "neutral"):
        if not isinstance(values.get(key, ""), str):
            raise InvalidInput(f"{path}: {key} in text is a text; found {values[key]!r}.")
    for key, kind in (("scale", (int, float)), ("bias", (int, float)), ("length", int)):
        value = values.get(key, 1)
        if isinstance(value, bool) or not isinstance(value, (kind, type(None))):
            raise InvalidInput(f"{path}: {key} in text is a number; found {value!r}.")
    if values.get("prompt", "{}").count("{}") != 1:
        raise InvalidInput(
            f"{path}: prompt in text has {{}} once, for the name; found {values['prompt']!r}."
        )
    settings = TextSettings(**values)
    beside = {name: str(path.parent / getattr(settings, name)) for name in ("model", "tokenizer")}
    return TextSettings(**{**values, **beside})


class TextEncoder:
    """Embeddings of names, in the space of the features of an image encoder.

    Parameters
    ----------
    settings : TextSettings
    """

    def __init__(self, settings: TextSettings):
        self.settings = settings
        self._tokenizer = _open_tokenizer(settings.tokenizer)
        try:
            self._session = open_session(settings.model)
        except Exception as error:  # onnxruntime has no common error of its own
            raise InvalidInput(
                f"{settings.model} cannot be opened: {_first_line(error)}"
            ) from error
        self._inputs = [one.name for one in self._session.get_inputs()]
        self._output = self._chosen_output()
        if not self._inputs or len(self._inputs) > 2:
            raise InvalidInput(
                f"{settings.model} takes {', '.join(self._inputs) or 'nothing'}; expected tokens, "
                "and perhaps an attention mask."
            )

    @property
    def scale(self) -> float:
        """What cosines are multiplied with."""
        return self.settings.scale

    @property
    def bias(self) -> float | None:
        """What is added to scaled cosines to have log-odds, where it was trained so."""
        return self.settings.bias

    def __call__(self, names: Sequence[str]) -> np.ndarray:
        """Embeddings (n, d), float32, of sentences with the names; "" is a sentence without."""
        settings = self.settings
        texts = [settings.prompt.replace("{}", n) if n else settings.neutral for n in names]
        parts = [self._run(texts[i : i + _AT_ONCE]) for i in range(0, len(texts), _AT_ONCE)]
        return np.concatenate(parts) if parts else np.empty((0, 0), dtype=np.float32)

    def _chosen_output(self) -> str:
        names = [one.name for one in self._session.get_outputs()]
        wanted: str = self.settings.output or (names[0] if len(names) == 1 else "")
        if wanted not in names:
            raise InvalidInput(
                f"{self.settings.model} has the outputs {', '.join(names)}. Set output, in text, "
                "to the one that is the embedding of a text."
            )
        return wanted

    def _run(self, texts: list[str]) -> np.ndarray:
        tokens = [one.ids for one in self._tokenizer.encode_batch(texts)]
        width = self.settings.length or min(_LONGEST, max(map(len, tokens)))
        ids = np.full((len(texts), width), self.settings.pad, dtype=np.int64)
        mask = np.zeros_like(ids)
        for i, row in enumerate(tokens):
            # what is too long keeps its last token, which says that the text ends
            kept = row if len(row) <= width else [*row[: width - 1], row[-1]]
            ids[i, : len(kept)], mask[i, : len(kept)] = kept, 1
        given = {name: mask if "mask" in name.lower() else ids for name in self._inputs}
        try:
            found = self._session.run([self._output], given)[0]
        except Exception as error:
            raise InvalidInput(
                f"{self.settings.model} cannot be run: {_first_line(error)}"
            ) from error
        if found.ndim != 2 or len(found) != len(texts):
            raise InvalidInput(
                f"{self.settings.model}: the output {self._output!r} has shape {found.shape} for "
                f"{len(texts)} texts; expected one embedding each. Set output, in text."
            )
        return found.astype(np.float32)


def _open_tokenizer(path: str) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtra(
            f"To read {path}, tokenizers is needed: {pip_install('text')}"
        ) from error
    if not Path(path).is_file():
        raise StorageError(f"{path} is missing: the tokenizer of the text encoder.")
    try:
        tokenizer = Tokenizer.from_file(path)
    except Exception as error:  # it has no error of its own
        raise InvalidInput(f"{path} is not a tokenizer: {_first_line(error)}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
