"""Priors from tag names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import scipy.sparse

from tagkin.arrays import logit
from tagkin.records.forms import resource
from tagkin.tag_meanings.meanings import BORROWED, OWN, Meanings, NameTable

if TYPE_CHECKING:
    from tagkin.lexicons import VectorCache
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

# Intercept and slope from the log-odds of a tag's classes to the log-odds that the tag is right.
# Chosen on other images of photos, COCO and Flickr8k: in each, at least as many tags are right as
# these odds say (`python -m experiments.names --alone`). No name alone reaches 80 %.
_ALONE = {OWN: (0.60, 0.55), BORROWED: (-0.06, 0.53)}
_MASSES = 1e-6, 0.8  # probabilities are clipped to this range
_TIE = 0.01  # weight of the unclipped probabilities, to keep the order of clipped ones
_SUREST = 0.99  # highest probability that text encoders may give
_CLAIM = 0.1  # share of a class that a tag needs to have it instead of broader tags


@resource
class ClassPrior:
    """A prior from the classes that the backbone was trained on.

    With p(c | x) the classifier's probabilities and r the tag's row, a distribution over classes,

        score = log Σ_c r_c p(c | x),

    with T = 1.5. With b the breadth of the tag and T = 1, m = Σ_c min(b r_c, 1) p(c | x) is the
    probability of all its classes together, and m₀ the probability of as many random classes. A
    class counts only for the narrowest of the tags that have it: with the tags "dog" and "animal",
    a poodle is a dog, as people would tag it. The log-odds of the name alone are
    α + β logit (m − m₀)/(1 − m₀): a photograph that the classifier does not know says nothing, even
    about tags that many classes belong to.

    Parameters
    ----------
    classifier : Classifier
        Classifier of the backbone's features; see `tagkin.features.Classifier`.
    lexicon : ClassMeanings, optional
        Meanings of tags in these classes; by default from the installed WordNet and encoder,
        which are read at the first look-up.
    cache : VectorCache, optional
        Keeps the vectors of that encoder; see `tagkin.features.FeatureCache`.
    """

    def __init__(
        self,
        classifier: _Classifier,
        lexicon: ClassMeanings | None = None,
        cache: VectorCache | None = None,
    ):
        self.classifier = classifier
        self.lexicon = lexicon
        self.cache = cache

    def meanings(self, names: Sequence[str]) -> Meanings:
        """Return all possible meanings of the tags."""
        if self.lexicon is None:
            from tagkin.tag_meanings.classes import ClassMeanings  # reads lexicons

            self.lexicon = ClassMeanings.find(self.classifier.synsets, self.cache)
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
        shares = _keep_narrowest(shares, table)
        masses = (shares @ P.T).T
        chance = np.asarray(shares.sum(axis=1)).ravel() / P.shape[1]
        masses = (masses - chance) / np.maximum(1 - chance, _LEAST)
        intercepts, slopes = (
            np.array([_ALONE.get(kind, (-np.inf, 0.0)) for kind in table.kinds]).reshape(-1, 2).T
        )
        return intercepts + slopes * logit(np.clip(masses, *_MASSES)) + _TIE * masses


def _keep_narrowest(shares: scipy.sparse.csr_array, table: NameTable) -> scipy.sparse.csr_array:
    """Return shares (D×C) in which broader tags leave a class to the narrowest ones, equally."""
    entries = shares.tocoo()
    is_own = table.kinds[entries.row] == OWN
    claims = is_own & (entries.data >= _CLAIM)
    narrowest = np.full(shares.shape[1], np.inf)
    np.minimum.at(narrowest, entries.col[claims], table.breadths[entries.row[claims]])
    is_narrowest = table.breadths[entries.row] <= narrowest[entries.col] * (1 + 1e-6)
    n_narrowest = np.bincount(entries.col[claims & is_narrowest], minlength=shares.shape[1])
    divided = entries.data * is_narrowest / np.maximum(n_narrowest, 1)[entries.col]
    values = np.where(is_own, divided, entries.data)
    return scipy.sparse.csr_array((values, (entries.row, entries.col)), shape=shares.shape)


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
    of a tag that is only like a class. The odds are at most those of m = 0.99.

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
        rows = _normalize(self.encoder(leaves)) if n else np.empty((0, 0), dtype=np.float32)
        return Meanings(rows, np.arange(n), ones, ones, np.full(n, OWN, dtype=np.int8))

    def scores(self, X: np.ndarray, rows: Rows) -> np.ndarray:
        """Return scaled cosines (n, K)."""
        return self.encoder.scale * (_normalize(X) @ np.asarray(rows).T)

    def log_odds(self, X: np.ndarray, table: NameTable) -> np.ndarray:
        """Return log-odds (n, D) that the tags are right, from their names alone."""
        intercept, slope = _ALONE[BORROWED]
        scores = self.scores(X, table.rows)
        if self.encoder.bias is not None:
            odds = scores + self.encoder.bias
        else:
            from tagkin.tag_meanings.vocabularies import common_tags

            common = _normalize(self.encoder(common_tags()))
            others = (np.asarray(table.rows) @ common.T < _SAME).astype(np.float32)
            against = self.scores(X, common)
            top = against.max(axis=1, keepdims=True)
            total = np.exp(against - top) @ others.T
            odds = scores - top - np.log(np.maximum(total, _LEAST))
            odds = intercept + slope * odds
        return np.minimum(odds, intercept + slope * logit(np.array(_SUREST)))


def _normalize(X: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1)
