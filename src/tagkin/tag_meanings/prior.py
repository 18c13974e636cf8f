"""Priors from tag names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from tagkin.arrays import logit
from tagkin.records.forms import resource
from tagkin.tag_meanings.meanings import Meanings, NameTable
from tagkin.tag_meanings.vocabularies import common_tags
from tagkin.tag_meanings.word_map import normalize

__all__ = ["NamePrior", "TextPrior", "split_levels"]


class NamePrior(Protocol):
    """Scores images for tags by the tags' names, before any image has the tag."""

    def meanings(self, names: Sequence[str]) -> Meanings:
        """Return what is known about the names."""

    def scores(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return float32 scores (n, D) of names for features X (n, d); higher is likelier.

        Parameters
        ----------
        X : array of shape (n, d)
            Features.
        rows : array of shape (D, m)
            Vectors of the names.
        """

    def log_odds(self, X: np.ndarray, table: NameTable) -> np.ndarray:
        """Return log-odds (n, D) that tags are right, from their names alone; −∞ if unknown.

        Parameters
        ----------
        X : array of shape (n, d)
            Features.
        table : NameTable
            The names.
        """


class _TextEncoder(Protocol):
    @property
    def scale(self) -> float: ...

    @property
    def bias(self) -> float | None: ...

    @property
    def is_centered(self) -> bool: ...

    def __call__(self, names: Sequence[str]) -> np.ndarray: ...

    def embed_images(self, X: np.ndarray) -> np.ndarray: ...


# Intercept and slope from the log-odds of a name among common tags to the log-odds that it is right
_ALONE = -0.06, 0.53
_SUREST = 0.99  # highest probability that text encoders may give
_SAME = 0.999  # cosine of the embeddings of one word


@resource
class TextPrior:
    """A prior from an encoder that embeds texts in the space of the photographs.

    The score of a tag is the scaled cosine of the embeddings of the image and of the tag's name. A
    `CaptionEncoder` has names centred on those of the collection. The log-odds of the name alone
    are the score plus the encoder's bias (SigLIP was trained with these odds). Without a bias, m is
    the probability of the tag among the common tags, their softmax, and the log-odds are
    α + β logit m. The odds are at most those of m = 0.99.

    Parameters
    ----------
    encoder : CaptionEncoder or TextEncoder
        See `tagkin.features.TextEncoder`.
    """

    def __init__(self, encoder: _TextEncoder):
        self.encoder = encoder

    def __repr__(self) -> str:
        return "<TextPrior>"

    def meanings(self, names: Sequence[str]) -> Meanings:
        """Return the embeddings of the tags' names; names without a letter are unknown."""
        words = [split_levels(name)[-1] for name in names]
        is_unknown = np.array([not any(map(str.isalpha, word)) for word in words], dtype=bool)
        if not words:
            return Meanings(np.empty((0, 0), dtype=np.float32), is_unknown)
        return Meanings(normalize(self.encoder(words)), is_unknown, self.encoder.is_centered)

    def scores(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return float32 scaled cosines (n, D).

        Parameters
        ----------
        X : array of shape (n, d)
            Features.
        rows : array of shape (D, m)
            Vectors of the names.
        """
        return self.encoder.scale * (self.encoder.embed_images(X) @ rows.T)

    def log_odds(self, X: np.ndarray, table: NameTable) -> np.ndarray:
        """Return log-odds (n, D) that the tags are right, from their names alone.

        Parameters
        ----------
        X : array of shape (n, d)
            Features.
        table : NameTable
            The names.
        """
        intercept, slope = _ALONE
        scores = self.scores(X, table.rows)
        if self.encoder.bias is not None:
            odds = scores + self.encoder.bias
        else:
            common = self._common.table(table.center).rows
            against = self.scores(X, common)
            top = against.max(axis=1, keepdims=True)
            others = (table.rows @ common.T < _SAME).astype(np.float32)
            total = np.exp(against - top) @ others.T
            odds = intercept + slope * (scores - top - np.log(np.maximum(total, 1e-9)))
        odds = np.minimum(odds, intercept + slope * logit(np.array(_SUREST)))
        odds[:, table.is_unknown] = -np.inf
        return odds

    @cached_property
    def _common(self) -> Meanings:
        """Common tags, which a name competes with."""
        return self.meanings(common_tags())


def split_levels(name: str) -> list[str]:
    """Return the levels of a tag such as animal|dog, with blanks for underscores."""
    return [level.replace("_", " ").strip() for level in re.split(r"[|/]", name)]
