"""What names of tags say of photographs: vectors of names, priors, and scores of any words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Annotated, Protocol

import numpy as np

from tagkin.arrays import logit
from tagkin.errors import InvalidInput
from tagkin.records.forms import resource, storable
from tagkin.records.rules import Flags, Floats
from tagkin.tag_meanings.word_map import normalize

__all__ = [
    "Meanings",
    "NamePrior",
    "NameTable",
    "common_tags",
    "measure_fit",
    "score_words",
    "split_levels",
]

_PULL = 8  # names of mean zero that count with those of a collection, because few have no mean


@storable
@dataclass(frozen=True)
class NameTable:
    """One vector for the name of each of D tags, which a prior uses to score the tag.

    Attributes
    ----------
    rows : float32 array of shape (D, m)
        Centred and of unit length; zero for names without a meaning.
    is_unknown : bool array of shape (D,)
        Which names have no meaning, such as numbers.
    center : float32 array of shape (m,)
        Mean of the names' vectors, which was subtracted.
    """

    rows: Annotated[np.ndarray, Floats("D", "words")]
    is_unknown: Annotated[np.ndarray, Flags("D").kept_on_host()]
    center: Annotated[np.ndarray, Floats("words")]

    def __len__(self) -> int:
        return len(self.is_unknown)

    def some(self, tags: np.ndarray) -> NameTable:
        """Return the rows of these tags (n,), given by number."""
        return NameTable(self.rows[tags], self.is_unknown[tags], self.center)


@dataclass(frozen=True)
class Meanings:
    """What a prior knows about D names.

    Attributes
    ----------
    vectors : float32 array of shape (D, m)
        Of unit length.
    is_unknown : bool array of shape (D,)
    is_centered : bool
        Whether a table has the names relative to their mean.
    """

    vectors: np.ndarray
    is_unknown: np.ndarray
    is_centered: bool = True

    def table(self, center: np.ndarray | None = None) -> NameTable:
        """Return the names centred on the mean of these names, or on a given `center` (m,).

        What all tags of a collection have in common says nothing about a single photograph.
        """
        if center is None:
            known = self.vectors[~self.is_unknown & self.is_centered]
            center = known.sum(axis=0) / (len(known) + _PULL)
        rows = normalize(self.vectors - center)
        rows[self.is_unknown] = 0
        return NameTable(rows.astype(np.float32), self.is_unknown, center.astype(np.float32))


# --- priors ------------------------------------------------------------------------------


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
class NamePrior:
    """Scores photographs for tags by the tags' names, before any photograph has the tag.

    An encoder embeds the names in the space of the photographs.

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
        return "<NamePrior>"

    @property
    def bias(self) -> float | None:
        """What makes scores log-odds, if adding a number does."""
        return self.encoder.bias

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


@cache
def common_tags() -> tuple[str, ...]:
    """Return several hundred common English tags of visible things."""
    text = (files("tagkin.tag_meanings") / "common_tags.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())


# --- search ------------------------------------------------------------------------------

_BACKGROUND = 2.0  # robust standard deviations above the median, where chance ends
# The same for the best photograph, if the words fit any. In collections of 53, 100 and 600
# photographs, words that fit none, as "philosophy", reached 3.7, and words that fit at least 3.8.
_STANDS_OUT = 3.75


def score_words(prior: NamePrior, E: np.ndarray, words: str) -> np.ndarray:
    """Return cosines (n,) of words with photographs, embedded as E (n×m) by `embed_images`.

    Parameters
    ----------
    prior : NamePrior
        What knows words.
    E : array of shape (n, m)
        Photographs, embedded by `embed_images`.
    words : str
        Any words.
    """
    words = " ".join(words.split())
    if not words:
        raise InvalidInput("Search for at least one word.")
    return np.asarray(E, dtype=np.float32) @ prior.encoder([words])[0]


def measure_fit(scores: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return how well words fit n photographs relative to the best, and whether any stands out.

    Most photographs do not show what somebody searches for. Their scores are the background: the
    median and what is near it. The fit is 1 for the best photograph and 0 in the background.
    """
    if not len(scores):
        return np.zeros(0), False
    median, best = np.median(scores), scores.max()
    spread = 1.4826 * np.median(np.abs(scores - median))
    background = min(median + _BACKGROUND * spread, best)
    fit = np.clip((scores - background) / max(best - background, 1e-12), 0, 1)
    return fit, bool(best > median + _STANDS_OUT * spread)
