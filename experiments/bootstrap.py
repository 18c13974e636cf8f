"""Bootstrap intervals over the test images, with the same resamples for every method.

Since all methods share the resamples, the difference of two methods in each resample is a paired
bootstrap. A resample is a weight per image: how often the image was drawn. Weighted MAP equals
the MAP of the drawn images, with ties in expectation, as in `tagkin.evaluation`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from tagkin.evaluation import average_precision, evaluate, top_labels

__all__ = [
    "Difference",
    "Ranking",
    "compare",
    "interval",
    "measure",
    "resample_weights",
    "weighted_map",
]

MEASURES = ("MAP", "macro_precision", "macro_recall", "n_plus")


def resample_weights(n: int, n_resamples: int, seed: int) -> np.ndarray:
    """How often each of n images is in each resample, uint16 of shape (n_resamples, n)."""
    rng = np.random.default_rng([seed, n])
    weights = np.empty((n_resamples, n), dtype=np.uint16)
    for row in weights:
        row[:] = np.bincount(rng.integers(0, n, n), minlength=n)
    return weights


@dataclass(frozen=True)
class Ranking:
    """Images by descending score for one label; images with equal scores form a group."""

    order: np.ndarray
    starts: np.ndarray
    """First position of each group that contains a positive."""
    ends: np.ndarray
    positives: np.ndarray
    """Images with the label, ordered by group."""
    positive_starts: np.ndarray
    """Where each group's positives begin among `positives`."""

    @classmethod
    def of(cls, scores: np.ndarray, carries: np.ndarray) -> Ranking:
        """The ranking by scores (n,) of images that carry the label or not (n,)."""
        order = np.argsort(-scores, kind="stable")
        ranked = scores[order]
        first = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
        group = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(order))))
        positions = np.flatnonzero(carries[order])
        held, positive_starts = np.unique(group[positions], return_index=True)
        ends = np.append(first[1:], len(order))
        return cls(order, first[held], ends[held], order[positions], positive_starts)

    def average_precision(self, weights: np.ndarray, harmonic: np.ndarray) -> np.ndarray:
        """Expected AP of each resample (a row of weights), or NaN if no image has the label.

        A group of G images with P positives, after N₀ images with P₀ positives, adds
        Σⱼ P/G (P₀ + 1 + (j − 1)(P − 1)/(G − 1)) / (N₀ + j), j = 1…G. Harmonic numbers give it in
        closed form.
        """
        P = np.add.reduceat(
            weights[:, self.positives], self.positive_starts, axis=1, dtype=np.int32
        )
        reached = np.cumsum(weights[:, self.order], axis=1, dtype=np.int32)
        end = reached[:, self.ends - 1]
        N0 = np.where(self.starts > 0, reached[:, self.starts - 1], 0)
        G, P0 = end - N0, np.cumsum(P, axis=1) - P
        inverse = harmonic[end] - harmonic[N0]
        slope = (P - 1) / np.maximum(G - 1, 1)
        added = P / np.maximum(G, 1) * ((P0 + 1) * inverse + slope * (G - (N0 + 1) * inverse))
        total = P.sum(axis=1)
        return np.where(total > 0, added.sum(axis=1) / np.maximum(total, 1), np.nan)


def weighted_map(
    truth: scipy.sparse.csr_array, scores: np.ndarray, weights: np.ndarray, n_entries: int = 2**18
) -> np.ndarray:
    """MAP of each resample, shape (n_resamples,), for weights (n_resamples×n).

    Of the weights, `n_entries` are taken at a time, so that they fit in the cache of a core.
    """
    n, D = scores.shape
    most = int(weights.sum(axis=1, dtype=np.int64).max())
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, most + 1))])
    by_label = scipy.sparse.csc_array(truth)
    rows = max(1, n_entries // n)
    precision = np.full((len(weights), D), np.nan)
    for t in range(D):
        carries = np.zeros(n, dtype=bool)
        carries[by_label.indices[by_label.indptr[t] : by_label.indptr[t + 1]]] = True
        if carries.any():
            ranking = Ranking.of(scores[:, t], carries)
            for first in range(0, len(weights), rows):
                some = slice(first, first + rows)
                precision[some, t] = ranking.average_precision(weights[some], harmonic)
    return np.nanmean(precision, axis=1)


def weighted_counts(
    truth: scipy.sparse.csr_array, scores: np.ndarray, weights: np.ndarray, top: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Precision, recall and N+ of each resample, at `top` labels per image."""
    best = top_labels(scores, top)
    n, k = best.shape
    given = scipy.sparse.csr_array(
        (np.ones(best.size, np.float32), best.ravel(), k * np.arange(n + 1)), shape=truth.shape
    )
    present = scipy.sparse.csr_array(truth != 0, dtype=np.float32)
    drawn = weights.astype(np.float32).T
    hits = (present.multiply(given)).T @ drawn
    given_count, present_count = given.T @ drawn, present.T @ drawn
    precision = hits / np.maximum(given_count, 1)
    recall = hits / np.maximum(present_count, 1)
    return precision.mean(axis=0), recall.mean(axis=0), (recall > 0).sum(axis=0)


def measure(
    truth: scipy.sparse.csr_array, scores: np.ndarray, top: int, weights: np.ndarray
) -> dict[str, np.ndarray]:
    """Metrics of scores, the same metrics in every resample, and the AP of each label."""
    found = evaluate(truth, scores, top)
    precision, recall, n_plus = weighted_counts(truth, scores, weights, top)
    return {
        "values": np.array([found[name] for name in (*MEASURES, "MiAP")]),
        "resampled": np.stack([weighted_map(truth, scores, weights), precision, recall, n_plus]),
        "label_precision": average_precision(truth, scores),
    }


def interval(resampled: np.ndarray, value: float) -> tuple[float, float]:
    """95 % interval around a value: bootstrap percentiles, corrected for bias.

    A resample repeats images, which shifts MAP a little; that shift is subtracted.
    """
    low, high = np.percentile(resampled, [2.5, 97.5]) + value - resampled.mean()
    return float(low), float(high)


@dataclass(frozen=True)
class Difference:
    """The difference of two methods in one metric, on the same images."""

    value: float
    low: float
    high: float
    p: float
    """Two-sided: twice the share of resamples beyond 0, at least 1/resamples."""


def compare(
    ours: np.ndarray, theirs: np.ndarray, our_value: float, their_value: float
) -> Difference:
    """Paired bootstrap of a difference, from the metrics in the same resamples."""
    value = our_value - their_value
    differences = ours - theirs
    differences = differences + value - differences.mean()
    low, high = np.percentile(differences, [2.5, 97.5])
    beyond = min((differences <= 0).mean(), (differences >= 0).mean())
    p = min(1.0, max(2 * float(beyond), 1 / len(differences)))
    return Difference(value, float(low), float(high), p)
