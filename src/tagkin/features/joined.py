"""Features of several backbones, side by side."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tagkin.features.backbone import Backbone, check_batch, fingerprint_of
from tagkin.features.text_encoder import TextEncoder

__all__ = ["JoinedBackbones"]


class JoinedBackbones(Backbone):
    """Concatenated features of several backbones, each of unit length.

    A prepared photograph is the input of each backbone, side by side. Each of them adds its time.

    Parameters
    ----------
    name : str
    parts : sequence of Backbone
    """

    def __init__(self, name: str, parts: Sequence[Backbone]):
        self.name, self._parts = name, list(parts)
        self.dimension = sum(part.dimension for part in parts)
        self.fingerprint = fingerprint_of(self.name, *(part.fingerprint for part in parts))
        self.preprocessing = max((p.preprocessing for p in parts), key=lambda p: p.min_side)
        self.batch_size = max(part.batch_size for part in parts)
        pixels = np.zeros((8, 8, 3), dtype=np.uint8)
        self._shapes = [part.prepare(pixels).shape for part in parts]

    def prepare(self, pixels: np.ndarray) -> np.ndarray:
        """Return the inputs of all backbones, side by side."""
        both = np.zeros((*self._shape, 3), dtype=np.uint8)
        left = 0
        for part, (height, width, _) in zip(self._parts, self._shapes, strict=True):
            both[:height, left : left + width] = part.prepare(pixels)
            left += width
        return both

    @property
    def _shape(self) -> tuple[int, int]:
        return max(shape[0] for shape in self._shapes), sum(shape[1] for shape in self._shapes)

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        """Return features (n, dimension) of prepared photographs."""
        check_batch(batch, self, self._shape)
        features = np.empty((len(batch), self.dimension), dtype=np.float32)
        left = column = 0
        for part, (height, width, _) in zip(self._parts, self._shapes, strict=True):
            part_features = part(np.ascontiguousarray(batch[:, :height, left : left + width]))
            norms = np.linalg.norm(part_features, axis=1, keepdims=True)
            norms[norms == 0] = 1  # zero features stay zero
            np.divide(part_features, norms, out=features[:, column : column + part.dimension])
            left, column = left + width, column + part.dimension
        return features

    @functools.cached_property
    def text_encoder(self) -> TextEncoder | None:
        """The text encoder of the first backbone that has one."""
        for part, columns in zip(self._parts, self._columns, strict=True):
            if part.text_encoder is not None:
                return _PartTextEncoder(part.text_encoder, columns)
        return None

    @property
    def caption_columns(self) -> slice | None:
        """Those of the first backbone that has some."""
        for part, columns in zip(self._parts, self._columns, strict=True):
            if (own := part.caption_columns) is not None:
                return slice(columns.start + own.start, columns.start + own.stop)
        return None

    @property
    def _columns(self) -> list[slice]:
        """The features of each backbone."""
        ends = np.cumsum([0, *(part.dimension for part in self._parts)]).tolist()
        return [slice(*pair) for pair in pairwise(ends)]


class _PartTextEncoder(TextEncoder):
    """A text encoder of one of several backbones."""

    def __init__(self, encoder: TextEncoder, columns: slice):
        self.settings = encoder.settings
        self._encoder, self._columns = encoder, columns

    def __call__(self, names: Sequence[str]) -> np.ndarray:
        """Return float32 embeddings (n, d) of unit length of sentences with the names."""
        return self._encoder(names)

    def embed_images(self, X: np.ndarray) -> np.ndarray:
        """Return float32 unit vectors (n, d) of photographs."""
        return self._encoder.embed_images(X[:, self._columns])
