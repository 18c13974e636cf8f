"""The model of an evening: learned from tagged photographs and answers, it suggests tags."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse

from tagkin import FeatureAnnotator
from tagkin.catalogue.events import split_events
from tagkin.server.answers import LIKELY
from tagkin.tag_meanings import NamePrior
from tagkin.transfer.occasions import Occasions
from tagkin.wording import main_input, shares_of

__all__ = ["Collection", "Learned", "Suggested", "count_likely", "learn", "suggest"]

LEAST, MOST = 0.05, 20  # confidence and number of suggestions of a photograph


class Collection(NamedTuple):
    """N photographs, the first of which are tagged completely, and new ones to test on."""

    X: np.ndarray
    truth: np.ndarray
    """Right tags of all photographs (N×D), of which a tagged one has at least one."""
    n_tagged: int
    new_features: np.ndarray
    new_truth: np.ndarray
    n_never: int = 0
    """Right tags of untagged photographs that no tagged one has."""
    names: list[str] | None = None
    prior: NamePrior | None = None
    occasions: Occasions | None = None

    @property
    def n_missing(self) -> int:
        """Tags that a person can reach."""
        return int(self.truth[self.n_tagged :].sum())

    @property
    def is_tagged(self) -> np.ndarray:
        """Which photographs are tagged completely, shape (N,)."""
        return np.arange(len(self.X)) < self.n_tagged

    @property
    def times(self) -> np.ndarray:
        """When the photographs were taken, in seconds, shape (N,); NaN if unknown."""
        times = None if self.occasions is None else self.occasions.times
        return np.full(len(self.X), np.nan) if times is None else times

    @property
    def events(self) -> np.ndarray:
        """The event of each photograph, shape (N,); those without a time are the last one."""
        times = self.times
        events, known = np.full(len(times), len(times)), np.isfinite(times)
        events[known] = split_events((1000 * times[known]).astype("datetime64[ms]"))
        return events


class Suggested(NamedTuple):
    """Suggestions for all photographs."""

    confidences: np.ndarray
    """Shape (N, D), 0 if not suggested."""
    inputs: np.ndarray
    """What contributes most to each, shape (N, D)."""


class Learned(NamedTuple):
    """A model, and the number (N,) of each photograph among those it learned from, or −1."""

    annotator: FeatureAnnotator
    known: np.ndarray


def learn(c: Collection, verdicts: np.ndarray) -> Learned:
    """Fit a model as `tagkin.catalogue` does: of an untagged photograph, only answers are known."""
    rows = np.flatnonzero(c.is_tagged | (verdicts != 0).any(axis=1))
    labels = np.where(c.is_tagged[:, None], c.truth, verdicts > 0)
    options: dict[str, Any] = {}
    if c.occasions is not None:
        options |= c.occasions.take(rows).to_dict()
    annotator = FeatureAnnotator(prior=c.prior).fit(
        c.X[rows],
        _named(c, labels[rows]),
        groups=np.arange(len(rows)),
        rejected=_sparse(verdicts[rows] < 0),
        accepted=_sparse(verdicts[rows] > 0),
        complete=c.is_tagged[rows],
        **options,
    )
    known = np.full(len(c.X), -1)
    known[rows] = np.arange(len(rows))
    return Learned(annotator, known)


def suggest(
    learned: Learned, c: Collection, verdicts: np.ndarray, offered: np.ndarray | None
) -> Suggested:
    """Return the open suggestions."""
    options: dict[str, Any] = {} if offered is None else {"offered": _sparse(offered)}
    if c.occasions is not None:
        options |= c.occasions.to_dict()
    lists = learned.annotator.suggest(
        c.X,
        n=MOST,
        threshold=LEAST,
        n_kin=0,
        known=learned.known,
        present=_sparse(np.where(c.is_tagged[:, None], c.truth, verdicts > 0)),
        rejected=_sparse(verdicts < 0),
        complete=c.is_tagged,
        **options,
    )
    P, inputs = np.zeros(c.truth.shape), np.full(c.truth.shape, "", dtype="<U7")
    for row, suggestions in enumerate(lists):
        for suggestion in suggestions:
            P[row, suggestion.label] = suggestion.confidence
            inputs[row, suggestion.label] = main_input(shares_of(suggestion))
    return Suggested(P, inputs)


def count_likely(learned: Learned, c: Collection) -> int:
    """Count right suggestions at 50 % on new photographs."""
    if not len(c.new_features):
        return 0
    P = learned.annotator.predict_proba(c.new_features)
    return int(((P >= LIKELY) & c.new_truth).sum())


def _named(c: Collection, labels: np.ndarray) -> Any:
    """Return labels (n×D) with their names, if these are known."""
    if c.names is None:
        return _sparse(labels)
    return pd.DataFrame(labels.astype(int), columns=c.names)


def _sparse(values: np.ndarray) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(values.astype(np.float32))
