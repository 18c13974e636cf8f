"""A tag typed today on a few photographs: how often is it suggested, and how often is that right?

A fifth of a collection is tagged completely, without ten of its tags. Then a person types these
tags on 3, 5 or 10 of the other photographs, and nothing else. The model learns each tag at once
(`partial_fit`, one tag at a time), or by a full fit (all ten together).
"""

from __future__ import annotations

from copy import copy

import numpy as np
import scipy.sparse

from experiments.loop import MAIN_SHARE, REVIEWED, Collection, Plan, draw
from experiments.store import Arrays, Store
from tagkin import FeatureAnnotator

__all__ = ["EXAMPLES", "TITLES", "count_suggestions", "run_new_tags"]

EXAMPLES = (3, 5, 10)
TITLES = {"at once": "at once", "full fit": "after a full fit"}
N_TAGS = 10
LEAST = 30  # photographs that show a new tag


def run_new_tags(plan: Plan, name: str, n: int, store: Store) -> Arrays:
    """Count suggestions of new tags that were typed on n photographs each; they are stored."""

    def compute() -> Arrays:
        return suggest_new_tags(draw(plan, name, MAIN_SHARE, store.folder), n)

    return store.get_or_compute(f"{plan.kind}-new-tags", compute, set=name, n=n)


def suggest_new_tags(c: Collection, n: int) -> Arrays:
    """Learn new tags both ways; return counts (10×8) as `count_suggestions` does."""
    rng = np.random.default_rng(0)
    rest = np.arange(c.n_complete, len(c.X))
    frequent = np.flatnonzero(c.truth[rest].sum(axis=0) >= LEAST)
    new = np.sort(rng.permutation(frequent)[:N_TAGS])
    old = np.setdiff1d(np.arange(c.truth.shape[1]), new)
    typed = np.zeros_like(c.truth)
    for tag in new:
        typed[rng.choice(rest[c.truth[rest, tag]], n, replace=False), tag] = True
    annotator = _fit(c.X[: c.n_complete], c.tags[:, old], None)
    at_once = []
    for tag in new:
        rows = np.flatnonzero(typed[:, tag])
        labels = np.zeros((n, len(old) + 1))
        labels[:, -1] = 1
        taught = copy(annotator)  # `partial_fit` replaces its model, and does not change it
        taught.partial_fit(c.X[rows], _sparse(labels), complete=np.zeros(n, dtype=bool))
        others = np.setdiff1d(rest, rows)
        P = _confidences(taught, c.X[others])[:, -1]
        at_once.append(count_suggestions(P, c.truth[others, tag]))
    rows = np.append(np.arange(c.n_complete), np.flatnonzero(typed.any(axis=1)))
    labels = typed[rows].copy()
    labels[: c.n_complete, old] = c.tags[:, old]
    fitted = _fit(c.X[rows], labels, np.arange(len(rows)) < c.n_complete)
    others = np.setdiff1d(rest, rows)
    P = _confidences(fitted, c.X[others])
    full = [count_suggestions(P[:, tag], c.truth[others, tag]) for tag in new]
    return {"at once": np.stack(at_once), "full fit": np.stack(full)}


def count_suggestions(P: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Count photographs, those that show a tag, and its suggestions at 5 and at 50 %.

    From confidences P (n,), 0 if not suggested: for both limits the number of suggestions, the
    right ones, and how many were said to be right. Shape (8,).
    """
    counts = [len(P), np.count_nonzero(truth)]
    for least in (REVIEWED["threshold"], 0.5):
        shown = least <= P
        counts += [np.count_nonzero(shown), np.count_nonzero(shown & truth), P[shown].sum()]
    return np.array(counts, dtype=np.float64)


def _fit(X: np.ndarray, labels: np.ndarray, complete: np.ndarray | None) -> FeatureAnnotator:
    groups = np.arange(len(X))
    annotator = FeatureAnnotator()
    return annotator.fit(X, _sparse(labels), groups=groups, complete=complete)


def _confidences(annotator: FeatureAnnotator, X: np.ndarray) -> np.ndarray:
    P = np.zeros((len(X), len(annotator.classes_)))
    for row, suggestions in zip(P, annotator.suggest(X, n_kin=0, **REVIEWED), strict=True):
        for suggestion in suggestions:
            row[suggestion.label] = suggestion.confidence
    return P


def _sparse(values: np.ndarray) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(values.astype(np.float32))
