"""Text encoders that were trained with an image encoder, such as CLIP's and SigLIP's.

The ``.json`` file of the image encoder describes it under the key ``text``::

    "text": {"model": "text.onnx", "tokenizer": "tokenizer.json", "scale": 100.0,
             "prompts": ["a photo of a {}.", "a picture of {}."]}

- ``model``, ``tokenizer``: files, relative to the folder of the ``.json`` file; required.
- ``prompts``: sentences around a name, whose embeddings are averaged.
- ``scale``, ``bias``: factor and offset of cosines, as learned in training. CLIP does not have a
  bias.
- ``lower_case``: whether the encoder was trained on lower case only, as SigLIP 2 was.
- ``length``, ``pad``: number of tokens that every text is padded or cut to (by default the graph's,
  or the text's own), and the token to pad with.
- ``output``: its name in the model; required if it has several, unless one has the usual name of an
  embedding, ``text_embeds`` or ``pooler_output``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from tagkin.errors import InvalidInput, MissingExtra, StorageError
from tagkin.features.model_files import read_settings
from tagkin.features.onnx_files import read_onnx_file
from tagkin.features.onnx_sessions import Network, choose_node, first_line
from tagkin.installing import install_command
from tagkin.records.forms import check_record
from tagkin.records.rules import AxisSizes, Refused, Whole

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["TextEncoder", "TextSettings", "read_text_settings"]

_LONGEST = 77  # tokens that CLIP takes
_MOST_NAMES = 50_000  # whose embeddings are kept in memory
_TYPES = {
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
    "tensor(float)": np.float32,
}


@dataclass(frozen=True)
class TextSettings:
    """Settings of a text encoder, from the ``.json`` file; `model` and `tokenizer` are paths."""

    model: str
    tokenizer: str
    prompts: Sequence[str] = field(default_factory=lambda: ["a photo of a {}."])
    scale: float = 100.0
    bias: float | None = None
    lower_case: bool = False
    length: Annotated[int | None, Whole(1)] = None
    pad: int = 0
    output: str | None = None

    def __post_init__(self) -> None:
        try:
            check_record(self, AxisSizes(), "settings")
        except Refused as error:
            raise InvalidInput(f"{error}.") from error
        if not self.prompts or any(prompt.count("{}") != 1 for prompt in self.prompts):
            raise InvalidInput(
                f"each prompt must have {{}} once, for the name; found {self.prompts!r}."
            )


def read_text_settings(path: Path, values: object) -> TextSettings:
    """Check and return the settings under ``text`` in the file at `path`."""
    settings = read_settings(TextSettings, values, f"{path}: text")
    model, tokenizer = path.parent / settings.model, path.parent / settings.tokenizer
    return replace(settings, model=str(model), tokenizer=str(tokenizer))


class TextEncoder:
    """Embeddings of names, in the space of the features of an image encoder.

    Every name is embedded once and kept. The encoder takes one text at a time, because a quantised
    graph rounds by the largest value in a batch.
    """

    is_centered = False  # it was trained to score names as they are

    def __init__(self, settings: TextSettings):
        self.settings = settings
        self._tokenizer = _open_tokenizer(settings.tokenizer)
        read_onnx_file(Path(settings.model))  # rejects weights in other folders
        self._network = Network(settings.model, settings.model, batch=1)
        self._output = choose_node(
            settings.model, "output", self._network.outputs, settings.output
        ).name
        self._check_inputs()
        width = self._network.inputs[0].shape[1]
        self._width = width if isinstance(width, int) else settings.length
        self._known: dict[str, np.ndarray] = {}

    def _check_inputs(self) -> None:
        inputs, length = self._network.inputs, self.settings.length
        takes = ", ".join(f"{node.name} ({node.type} of shape {node.shape})" for node in inputs)
        usable = all(node.type in _TYPES and len(node.shape) == 2 for node in inputs)
        if not usable or len(inputs) not in (1, 2):
            raise InvalidInput(
                f"{self.settings.model} takes {takes or 'nothing'}; expected tokens (n, length), "
                "and optionally an attention mask."
            )
        width = inputs[0].shape[1]
        if isinstance(width, int) and length not in (None, width):
            raise InvalidInput(
                f"{self.settings.model} takes {takes}; length in text is {length}. Set it to "
                f"{width}."
            )

    @property
    def scale(self) -> float:
        """The factor of cosines."""
        return self.settings.scale

    @property
    def bias(self) -> float | None:
        """The offset that turns scaled cosines into log-odds, or None."""
        return self.settings.bias

    def embed_images(self, X: np.ndarray) -> np.ndarray:
        """Return unit vectors (n, d) of photographs with features X (n, d)."""
        lengths = np.linalg.norm(X, axis=1, keepdims=True)
        return X / np.where(lengths > 0, lengths, 1)

    def __call__(self, names: Sequence[str]) -> np.ndarray:
        """Return float32 embeddings (n, d) of unit length of sentences with the names."""
        rows = {name: self._known.get(name) for name in names}
        embedded = {name: self._embed(name) if row is None else row for name, row in rows.items()}
        if len(self._known) > _MOST_NAMES:
            self._known = {}
        self._known.update(embedded)
        parts = [embedded[name] for name in names]
        return np.stack(parts) if parts else np.empty((0, 0), dtype=np.float32)

    def _embed(self, name: str) -> np.ndarray:
        """Return the mean (d,) of the embeddings of all prompts, of unit length."""
        texts = [prompt.replace("{}", name) for prompt in self.settings.prompts]
        return _normalize(np.mean([_normalize(self._run(text)) for text in texts], axis=0))

    def _run(self, text: str) -> np.ndarray:
        tokens = self._tokenizer.encode(text.lower() if self.settings.lower_case else text).ids
        width = self._width or max(1, min(_LONGEST, len(tokens)))
        # a text that is cut keeps its last token, which marks the end
        cut = tokens if len(tokens) <= width else [*tokens[: width - 1], tokens[-1]]
        ids = [*cut, *[self.settings.pad] * (width - len(cut))]
        mask = [1] * len(cut) + [0] * (width - len(cut))
        inputs: dict[str, np.ndarray] = {
            node.name: np.array([mask if "mask" in node.name.lower() else ids], _TYPES[node.type])
            for node in self._network.inputs
        }
        embeddings = self._network(self._output, inputs)
        if embeddings.ndim != 2 or len(embeddings) != 1:
            raise InvalidInput(
                f"{self.settings.model}: the output {self._output!r} has shape "
                f"{embeddings.shape} for one text; expected one embedding. Set output, in text."
            )
        return embeddings[0].astype(np.float32)


def _normalize(row: np.ndarray) -> np.ndarray:
    return row / (np.linalg.norm(row) or 1)


def _open_tokenizer(path: str) -> Tokenizer:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtra(
            f"The package tokenizers is needed to read {path}: {install_command('text')}"
        ) from error
    if not Path(path).is_file():
        raise StorageError(f"{path} is missing: the tokenizer of the text encoder.")
    try:
        tokenizer = Tokenizer.from_file(path)
    except Exception as error:  # tokenizers raises plain exceptions
        raise InvalidInput(f"{path} is not a tokenizer: {first_line(error)}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
