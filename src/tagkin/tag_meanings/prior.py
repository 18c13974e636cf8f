"""Priors from tag names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import scipy.sparse

from tagkin.arrays import logit
from tagkin.arrays.records import resource
from tagkin.tag_meanings.meanings import BORROWED, OWN, Meanings, NameTable

if TYPE_CHECKING:
    from tagkin.tag_meanings.classes import ClassMeanings

__all__ = ["ClassPrior", "NamePrior", "TextPrior"]

Rows: TypeAlias = "np.ndarray | scipy.sparse.csr_array"


class NamePrior(Protocol):
    """Scores images for tags by the tags' names, before any image has the tag."""

    def meanings(self, names: Sequence[str]) -> Meanings:
        """Return all possible meanings of the tags."""

    def scores(self, X: np.ndarray, rows: Rows) -> np.ndarray:
        """Return scores (n, K) of meanings for features X (n, d); higher is likelier."""

    def log_odds(self, X: np.ndarray, table: NameTable) -> np.ndarray:
        """Return log-odds (n, D) that tags are right, from their names alone; −∞ if unknown."""


class _Classifier(Protocol):
    @property
    def synsets(self) -> tuple[int, ...]: ...

    def probabilities(self, X: np.ndarray, temperature: float = 1.0) -> np.ndarray: ...


_TEMPERATURE = 1.5  # of the classifier; chosen like the constants of `ClassMeanings`
_LEAST = 1e-9  # minimum probability of a class

# Intercept and slope of the log-odds that a tag is right by those of its classes, as
# `python -m experiments.names` learns them: of tags that have classes on 1,000 photographs that
# experts labelled, of tags that borrow on these and on 7,091 that people described, the latter so
# that a tag that is only like something is hardly ever suggested.
_ALONE = {OWN: (0.90, 0.62), BORROWED: (-0.06, 0.53)}
_MASSES = 1e-6, 0.99  # probabilities are clipped to this range


@resource
class ClassPrior:
    """A prior from the classes that the backbone was trained on.

    With p(c | x) the classifier's probabilities and r the tag's row, a distribution over classes,

        score = log Σ_c r_c p(c | x),

    with T = 1.5. With b the breadth of the tag and T = 1, m = Σ_c min(b r_c, 1) p(c | x) is the
    probability of all its classes together, and m₀ that of as many classes by chance. The log-odds
    of the name alone are α + β logit (m − m₀)/(1 − m₀): a photograph that the classifier does not
    know says nothing, even about tags that many classes belong to.

    Parameters
    ----------
    classifier : Classifier
        Classifier of the backbone's features; see `tagkin.features.Classifier`.
    lexicon : ClassMeanings, optional
        Meanings of tags in these classes; by default from the installed WordNet and encoder,
        which are read at the first look-up.

    Notes
    -----
    α and β were learned once, on 1,000 photographs of everyday scenes that experts had labelled,
    and apply to similar photographs: 72 % of 65 suggestions with a confidence of at least .5 for
    200 other photographs were right. Fewer match what people write: on Flickr8k, where a tag is
    right if two of five people wrote it, 29 % of such suggestions were right, because people write
    "dog" and neither "animal" nor "greyhound".
    """

    def __init__(self, classifier: _Classifier, lexicon: ClassMeanings | None = None):
        self.classifier = classifier
        self.lexicon = lexicon

    def meanings(self, names: Sequence[str]) -> Meanings:
        """Return all possible meanings of the tags."""
        if self.lexicon is None:
            from tagkin.tag_meanings.classes import ClassMeanings  # reads lexicons

            self.lexicon = ClassMeanings.find(self.classifier.synsets)
        return self.lexicon(names)

    def scores(self, X: np.ndarray, rows: Rows) -> np.ndarray:
        """Return scores (n, K) of meanings for images with features X (n, d)."""
        P = self.classifier.probabilities(X, _TEMPERATURE)
        return np.log(np.maximum((rows @ P.T).T, _LEAST))

    def __repr__(self) -> str:
        return f"<ClassPrior: {len(self.classifier.synsets):,} classes>"

    def log_odds(self, X: np.ndarray, table: NameTable) -> np.ndarray:
        """Return log-odds (n, D) that the tags are right, from their names alone."""
        P = self.classifier.probabilities(X)
        # a class counts once, however large its share
        shares = scipy.sparse.csr_array(table.rows * table.breadths[:, None]).minimum(1)
        masses = (shares @ P.T).T
        chance = np.asarray(shares.sum(axis=1)).ravel() / P.shape[1]
        masses = (masses - chance) / np.maximum(1 - chance, _LEAST)
        intercepts, slopes = (
            np.array([_ALONE.get(kind, (-np.inf, 0.0)) for kind in table.kinds]).reshape(-1, 2).T
        )
        return intercepts + slopes * logit(np.clip(masses, *_MASSES))


class _TextEncoder(Protocol):
    @property
    def scale(self) -> float: ...

    @property
    def bias(self) -> float | None: ...

    def __call__(self, names: Sequence[str]) -> np.ndarray: ...


_SAME = 0.999  # cosine of the embeddings of one word


@resource
class TextPrior:
    """A prior from a text encoder that was trained with the backbone, such as CLIP's or SigLIP's.

    The score of a tag is the scaled cosine of the embeddings of the image and of a sentence with
    the tag's name. The log-odds of the name alone are that score plus the encoder's bias (SigLIP
    was trained with these odds). Without a bias (CLIP), m is the probability of the tag among the
    common tags, their softmax, and the log-odds are α + β logit m as in `ClassPrior`, with α and β
    of a tag that is only like a class. No odds are above those of m = 0.99.

    Parameters
    ----------
    encoder : TextEncoder
        See `tagkin.features.TextEncoder`.
    """

    def __init__(self, encoder: _TextEncoder):
        self.encoder = encoder

    def __repr__(self) -> str:
        return "<TextPrior>"

    def meanings(self, names: Sequence[str]) -> Meanings:
        """Return the embeddings of the tags' names, one meaning per tag."""
        leaves = [re.split(r"[|/]", name)[-1].replace("_", " ").strip() for name in names]
        n = len(names)
        ones = np.ones(n)
        rows = _unit(self.encoder(leaves)) if n else np.empty((0, 0), dtype=np.float32)
        return Meanings(rows, np.arange(n), ones, ones, np.full(n, OWN, dtype=np.int8))

    def scores(self, X: np.ndarray, rows: Rows) -> np.ndarray:
        """Return scaled cosines (n, K)."""
        return self.encoder.scale * (_unit(X) @ np.asarray(rows).T)

    def log_odds(self, X: np.ndarray, table: NameTable) -> np.ndarray:
        """Return log-odds (n, D) that the tags are right, from their names alone."""
        intercept, slope = _ALONE[BORROWED]
        scores = self.scores(X, table.rows)
        if self.encoder.bias is not None:
            odds = scores + self.encoder.bias
        else:
            from tagkin.tag_meanings.vocabularies import common_tags

            common = _unit(self.encoder(common_tags()))
            others = (np.asarray(table.rows) @ common.T < _SAME).astype(np.float32)
            against = self.scores(X, common)
            top = against.max(axis=1, keepdims=True)
            total = np.exp(against - top) @ others.T
            odds = scores - top - np.log(np.maximum(total, _LEAST))
            odds = intercept + slope * odds
        return np.minimum(odds, intercept + slope * logit(np.array(_MASSES[1])))


def _unit(X: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1)
