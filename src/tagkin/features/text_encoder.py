"""Text encoders that were trained with an image encoder, such as CLIP's and SigLIP's.

The ``.json`` file of the image encoder describes it under the key ``text``::

    "text": {"model": "text.onnx", "tokenizer": "tokenizer.json", "prompt": "a photo of a {}.",
             "scale": 100.0}

- ``model``, ``tokenizer``: files, relative to the folder of the ``.json`` file; required.
- ``prompt``: the sentence around a name; ``neutral``: a sentence without a name.
- ``scale``, ``bias``: factor and offset of cosines, as learned in training. CLIP does not have a
  bias.
- ``length``, ``pad``: number of tokens that every text is padded or cut to (by default the length
  of the longest text), and the token to pad with.
- ``output``: its name in the model; required if it has several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from tagkin.errors import InvalidInput, MissingExtra, StorageError, pip_install
from tagkin.features.onnx_sessions import choose_node, first_line, open_session, run_session

__all__ = ["TextEncoder", "TextSettings", "read_text_settings"]

_AT_ONCE = 64  # texts
_LONGEST = 77  # tokens that CLIP takes
_KINDS: dict[str, Any] = {  # of settings that are not texts
    "scale": (int | float, "a number"),
    "bias": (int | float | None, "a number or null"),
    "length": (int | None, "a number or null"),
    "pad": (int, "a number"),
    "output": (str | None, "a text or null"),
}


@dataclass(frozen=True)
class TextSettings:
    """Settings of the text encoder in the ``.json`` file."""

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
    """Check and return the settings under ``text`` in the file at `path`."""
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
    for key, value in values.items():
        kinds, name = _KINDS.get(key, (str, "a text"))
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise InvalidInput(f"{path}: {key} in text is {name}; found {value!r}.")
    if values.get("prompt", "{}").count("{}") != 1:
        raise InvalidInput(
            f"{path}: prompt in text has {{}} once, for the name; found {values['prompt']!r}."
        )
    paths = {name: str(path.parent / values[name]) for name in ("model", "tokenizer")}
    return TextSettings(**{**values, **paths})


class TextEncoder:
    """Embeddings of names, in the space of the features of an image encoder."""

    def __init__(self, settings: TextSettings):
        self.settings = settings
        self._tokenizer = _open_tokenizer(settings.tokenizer)
        self._session = open_session(settings.model)
        self._inputs = [node.name for node in self._session.get_inputs()]
        outputs = self._session.get_outputs()
        self._output = choose_node(settings.model, "output", outputs, settings.output).name
        if not self._inputs or len(self._inputs) > 2:
            raise InvalidInput(
                f"{settings.model} takes {', '.join(self._inputs) or 'nothing'}; expected tokens, "
                "and optionally an attention mask."
            )

    @property
    def scale(self) -> float:
        """The factor of cosines."""
        return self.settings.scale

    @property
    def bias(self) -> float | None:
        """The offset that turns scaled cosines into log-odds, or None."""
        return self.settings.bias

    def __call__(self, names: Sequence[str]) -> np.ndarray:
        """Return float32 embeddings (n, d) of sentences with the names; "" is neutral."""
        settings = self.settings
        texts = [settings.prompt.replace("{}", n) if n else settings.neutral for n in names]
        parts = [self._run(texts[i : i + _AT_ONCE]) for i in range(0, len(texts), _AT_ONCE)]
        return np.concatenate(parts) if parts else np.empty((0, 0), dtype=np.float32)

    def _run(self, texts: list[str]) -> np.ndarray:
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]
        width = self.settings.length or min(_LONGEST, max(map(len, tokens)))
        ids = np.full((len(texts), width), self.settings.pad, dtype=np.int64)
        mask = np.zeros_like(ids)
        for i, row in enumerate(tokens):
            # a text that is cut keeps its last token, which marks the end
            cut = row if len(row) <= width else [*row[: width - 1], row[-1]]
            ids[i, : len(cut)], mask[i, : len(cut)] = cut, 1
        inputs = {name: mask if "mask" in name.lower() else ids for name in self._inputs}
        embeddings = run_session(self._session, self.settings.model, self._output, inputs)
        if embeddings.ndim != 2 or len(embeddings) != len(texts):
            raise InvalidInput(
                f"{self.settings.model}: the output {self._output!r} has shape "
                f"{embeddings.shape} for {len(texts)} texts; expected one "
                "embedding each. Set output, in text."
            )
        return embeddings.astype(np.float32)


def _open_tokenizer(path: str) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtra(
            f"The package tokenizers is needed to read {path}: {pip_install('text')}"
        ) from error
    if not Path(path).is_file():
        raise StorageError(f"{path} is missing: the tokenizer of the text encoder.")
    try:
        tokenizer = Tokenizer.from_file(path)
    except Exception as error:  # it has no error of its own
        raise InvalidInput(f"{path} is not a tokenizer: {first_line(error)}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
