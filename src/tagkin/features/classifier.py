"""The last layer of a classification network, from features to probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from tagkin.arrays.linalg import matmul
from tagkin.errors import InvalidInput

__all__ = ["Classifier", "imagenet_synsets", "join_classifiers"]


@dataclass(frozen=True, eq=False)
class Classifier:
    """A linear classifier of a backbone's features.

    P(c | x) = softmax((W x + b) / T), with x the features exactly as the backbone returns them.
    So probabilities can be computed from cached features, without reading a photograph again.
    """

    weight: np.ndarray
    """(C, d), float32."""
    bias: np.ndarray
    """(C,), float32."""
    synsets: tuple[int, ...]
    """Offsets of the C classes' synsets in WordNet 3.0."""

    def __post_init__(self) -> None:
        shape = (len(self.synsets),)
        if self.weight.ndim != 2 or self.weight.shape[:1] != shape or self.bias.shape != shape:
            raise InvalidInput(
                f"A classifier of {len(self.synsets)} classes needs weights for each class; found "
                f"shapes {self.weight.shape} and {self.bias.shape}."
            )

    def probabilities(self, X: np.ndarray, temperature: float = 1.0) -> np.ndarray:
        """Return probabilities (n, C) of the classes for features X (n, d); each row has sum 1.

        A temperature T above 1 makes them more similar, to show more than the main object.
        """
        if X.ndim != 2 or X.shape[1] != self.weight.shape[1]:
            raise InvalidInput(
                f"The classifier takes features of {self.weight.shape[1]} numbers each; found "
                f"shape {X.shape}."
            )
        # `matmul` uses a single thread for a single photograph
        z = np.asarray(matmul(np.asarray(X, dtype=np.float32), self.weight.T))
        z += self.bias
        z /= temperature
        z -= z.max(axis=1, keepdims=True, initial=-np.inf)
        np.exp(z, out=z)
        z /= z.sum(axis=1, keepdims=True)
        return z


def join_classifiers(parts: list[Classifier], length: float) -> Classifier:
    """Return one classifier of several networks' concatenated features, by their mean logits.

    `length` is typical for features before they are scaled to unit length; the true length is not
    known any more.
    """
    weights = [part.weight * (length / len(parts)) for part in parts]
    bias = np.mean([part.bias for part in parts], axis=0)
    return Classifier(np.hstack(weights), bias, parts[0].synsets)


@cache
def imagenet_synsets() -> tuple[int, ...]:
    """Return the 1,000 classes of ImageNet's challenge in order, as WordNet 3.0 offsets."""
    text = (files("tagkin.features") / "imagenet_synsets.txt").read_text(encoding="ascii")
    return tuple(int(line[1:]) for line in text.split())
