"""Image encoders in ONNX format, with their preprocessing in a small JSON file.

``encoder.onnx`` needs ``encoder.json``, an object such as::

    {"size": 224, "resize": "crop", "short_side": 256, "resample": "bicubic",
     "mean": [0.48, 0.46, 0.41], "std": [0.27, 0.26, 0.28]}

Keys are the parameters of `Preprocessing`, of which only ``size`` is required, and

- ``input``, ``output``: names in the model; required if it has several, unless an output has the
  usual name of an embedding, ``image_embeds`` or ``pooler_output``;
- ``pool``: how the tokens (n, tokens, channels) of a transformer become one vector, ``mean`` or
  ``first``. A map (n, channels, h, w) becomes the mean of all positions;
- ``text``: the text encoder that was trained with the image encoder, see
  `tagkin.features.text_encoder`.

A dynamically quantised model takes one photograph at a time, because it rounds by the largest value
in a batch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np

from tagkin.errors import InvalidInput
from tagkin.features.backbone import Backbone, Preprocessing, check_batch, fingerprint_of
from tagkin.features.model_files import read_json, read_settings, sha256_of_file
from tagkin.features.onnx_files import read_onnx_file
from tagkin.features.onnx_sessions import Network, choose_node
from tagkin.features.text_encoder import TextEncoder, TextSettings, read_text_settings
from tagkin.records.rules import Choice

__all__ = ["OnnxEncoder"]

_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(uint8)": np.uint8,
}
# Operators that round by the largest value of a whole tensor, the other photographs included.
_DYNAMIC = ("DynamicQuantizeLinear", "DynamicQuantizeMatMul", "DynamicQuantizeLSTM")
_EXAMPLE = '{"size": 224, "resize": "crop", "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}'


class OnnxEncoder(Backbone):
    """An image encoder from an ``.onnx`` file and the ``.json`` file of the same name.

    A model with uint8 input gets the pixels unchanged, without scale, mean and std.

    Parameters
    ----------
    path : path
    values : dict, optional
        Content of the ``.json`` file. Default: read the file.
    name : str, optional
        Default: the path.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        values: Mapping[str, object] | None = None,
        name: str | None = None,
    ):
        path = Path(path).expanduser()
        self.name = name or str(path)
        digest = sha256_of_file(path)
        beside = path.with_suffix(".json")
        settings = _read_settings(beside, _read_values(beside) if values is None else values)
        self.preprocessing = settings
        model = read_onnx_file(path)
        hashes = (digest, *map(sha256_of_file, model.weights))
        # features do not depend on the text encoder
        self.fingerprint = fingerprint_of(*hashes, replace(settings, text=None))
        self._settings = settings
        is_quantized = not model.operators.isdisjoint(_DYNAMIC)
        self._network = Network(str(path), self.name, batch=1 if is_quantized else None)
        self._input = choose_node(self.name, "input", self._network.inputs, settings.input)
        self._output = choose_node(self.name, "output", self._network.outputs, settings.output)
        self._check_input()
        fixed = self._network.fixed_batch
        if is_quantized and fixed not in (None, 1):
            raise InvalidInput(
                f"{self.name} is quantised dynamically and takes {fixed} photographs at once, so "
                "features would depend on the other photographs. Export it with a batch of 1."
            )
        self.batch_size = 1 if is_quantized else fixed or self.batch_size
        size = self.preprocessing.size
        self.dimension = self(np.zeros((1, size, size, 3), dtype=np.uint8)).shape[1]

    def _check_input(self) -> None:
        size, shape = self.preprocessing.size, self._input.shape
        fits = len(shape) == 4 and all(
            not isinstance(length, int) or length == expected
            for length, expected in zip(shape[1:], (3, size, size), strict=True)
        )
        if not fits or self._input.type not in _TYPES:
            raise InvalidInput(
                f"{self.name}: the input {self._input.name!r} takes {self._input.type} of shape "
                f"{shape}; its .json says size {size}, which is (n, 3, {size}, {size}). Correct "
                f"the size; supported types are {', '.join(_TYPES)}."
            )

    @cached_property
    def text_encoder(self) -> TextEncoder | None:
        """The text encoder that the ``.json`` file names, or None."""
        return None if self._settings.text is None else TextEncoder(self._settings.text)

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        """Return features (n, dimension) of prepared photographs (n, size, size, 3)."""
        size = self.preprocessing.size
        check_batch(batch, self, (size, size))
        dtype = _TYPES[self._input.type]
        is_raw = dtype == np.uint8
        numbers = batch.transpose(0, 3, 1, 2) if is_raw else self.preprocessing.normalize(batch)
        inputs = {self._input.name: np.ascontiguousarray(numbers, dtype=dtype)}
        output = self._network(self._output.name, inputs)
        return np.ascontiguousarray(self._pool(output, len(batch)), dtype=np.float32)

    def _pool(self, output: np.ndarray, n: int) -> np.ndarray:
        pool = self._settings.pool
        shape = output.shape
        usable = output.ndim in (2, 3, 4) and np.issubdtype(output.dtype, np.floating)
        if not usable or len(output) != n:
            raise InvalidInput(
                f"{self.name}: the output {self._output.name!r} has shape {shape} for {n} "
                'photographs; expected (n, d), (n, tokens, d) or a map. Choose another "output".'
            )
        allowed = {2: (None,), 3: ("mean", "first"), 4: (None, "mean")}[len(shape)]
        if pool not in allowed:
            choices = ", ".join(json.dumps(choice) for choice in allowed)
            raise InvalidInput(
                f"{self.name}: the output {self._output.name!r} has shape {shape}, for which "
                f'"pool" must be one of {choices}; its .json says {json.dumps(pool)}.'
            )
        if pool == "first":
            return output[:, 0]
        if len(shape) == 2:
            return output
        return output.mean(axis=(2, 3) if len(shape) == 4 else 1, dtype=np.float32)


# --- the files ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Settings(Preprocessing):
    """The content of the ``.json`` file."""

    input: str | None = None
    output: str | None = None
    pool: Annotated[str | None, Choice(("mean", "first"))] = None
    text: TextSettings | None = None


def _read_values(path: Path) -> object:
    try:
        return read_json(path)
    except FileNotFoundError as error:
        raise InvalidInput(
            f"{path} is missing: it says how to prepare photographs for the model. Create it, for "
            f"example with {_EXAMPLE}"
        ) from error


def _read_settings(path: Path, values: object) -> _Settings:
    if isinstance(values, Mapping) and "text" in values:
        values = {**values, "text": read_text_settings(path, values["text"])}
    return read_settings(_Settings, values, str(path))
