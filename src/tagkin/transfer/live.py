"""Scores that follow a person's decisions, one label at a time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse

from tagkin.arrays import blas_threads_for, expit, to_numpy
from tagkin.errors import InvalidInput
from tagkin.transfer._correction import fit_correction, left_out

__all__ = ["LiveScores"]

_SURE = 1e-4  # probabilities are kept this far from 0 and 1
_BLOCK = 2**22  # products of embeddings that are in memory at once
_INTERCEPT_PENALTY = 0.05  # a label's level is the first thing that decisions teach


@dataclass
class _Label:
    """One label: the images that it may be right for, and what is known of them.

    All arrays have one entry for each of these images, ascending.
    """

    rows: np.ndarray
    offsets: np.ndarray
    """Logits as they were suggested."""
    verdicts: np.ndarray
    """1 accepted, −1 rejected, 0 open."""
    scores: np.ndarray
    """Logits now."""
    weights: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Weight of the decided neighbours; of length 0 until there are any."""
    votes: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Weight of those that have the label."""
    theta: np.ndarray | None = None
    """The correction, where there is one."""


class LiveScores:
    """Logits of labels for images, corrected by decisions as they come.

    A label's score for an image is what the learned model gave, z⁰, and a correction that
    decisions on this label alone teach:

        z = z⁰ + a Δ + bₜ + φᵀwₜ,    Δ = logit((p⁰ + Σⱼ eⱼ yⱼ) / (1 + Σⱼ eⱼ)) − z⁰,

    p⁰ being the probability of z⁰, and the sums being over the decided images j: each votes with
    eⱼ = exp(τ cos) in units of all the votes that the model had counted for this image. w, b and a
    minimise the logistic loss of the decisions + λ/2 ‖w‖² + μ/2 (a − a⁰)², with next to no penalty
    on b, the label's level: a label whose suggestions are mostly rejected falls as a whole.

    Parameters
    ----------
    candidates : sparse array of shape (N, D)
        Probabilities of the labels that an image may get; others are out of the question.
    embeddings : array of shape (N, m)
        In the semantic space, for votes.
    features : array of shape (N, r)
        φ: directions in which a label may differ from what was learned; see
        `principal_components`.
    support : array of shape (N,)
        Σ exp(τ (cos − 1)) over the images that the model had learned from, for each image.
    temperature : float, default 10.0
        τ.
    regularization : float, default 0.3
        λ.
    vote_weight : float, default 0.6
        a⁰.
    vote_penalty : float, default 10.0
        μ.

    Notes
    -----
    A batch of decisions costs one product of embeddings with those decided, and one small
    regression from where the last one ended; no other label is touched. The same decisions give
    the same scores whatever their order, up to the regression's tolerance (1e-4 logits).
    """

    def __init__(
        self,
        candidates: scipy.sparse.sparray,
        embeddings: np.ndarray,
        features: np.ndarray,
        support: np.ndarray,
        temperature: float = 10.0,
        regularization: float = 0.3,
        vote_weight: float = 0.6,
        vote_penalty: float = 10.0,
    ):
        columns = scipy.sparse.csc_array(candidates)
        columns.sort_indices()
        n = columns.shape[0]
        lengths = {"embeddings": embeddings, "features": features, "support": support}
        for name, given in lengths.items():
            if len(given) != n:
                raise InvalidInput(f"{name} has {len(given)} rows where candidates has {n}.")
        self.shape: tuple[int, int] = columns.shape
        norms = np.linalg.norm(embeddings, axis=1, keepdims=True)
        self._directions = (embeddings / np.where(norms > 0, norms, 1)).astype(np.float32)
        self._features = np.ascontiguousarray(features, dtype=np.float32)
        self._support = np.maximum(np.asarray(support, dtype=np.float64), 1e-12)
        self.temperature, self.regularization = temperature, regularization
        self.vote_weight, self.vote_penalty = vote_weight, vote_penalty
        logits = _logit(columns.data.astype(np.float64)).astype(np.float32)
        ends = columns.indptr
        self._labels = [
            _Label(
                columns.indices[a:b].astype(np.int64),
                logits[a:b],
                np.zeros(b - a, dtype=np.int8),
                logits[a:b].copy(),
            )
            for a, b in itertools.pairwise(ends)
        ]

    # --- asking --------------------------------------------------------------------------

    def open(self, label: int) -> tuple[np.ndarray, np.ndarray]:
        """Images for which a label is undecided and their probabilities, the surest first."""
        one = self._labels[label]
        rows = np.flatnonzero(one.verdicts == 0)
        order = rows[np.lexsort((one.rows[rows], -one.scores[rows]))]
        return one.rows[order], _probability(one.scores[order])

    def of_image(self, row: int, labels: Sequence[int] | None = None) -> list[tuple[int, float]]:
        """Undecided labels of one image and their probabilities, the surest first."""
        found = []
        for label in range(self.shape[1]) if labels is None else labels:
            one = self._labels[label]
            at = int(np.searchsorted(one.rows, row))
            if at < len(one.rows) and one.rows[at] == row and one.verdicts[at] == 0:
                found.append((label, float(_probability(one.scores[at]))))
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))

    def n_decided(self, label: int) -> int:
        """How many images were decided on for a label."""
        return int(np.count_nonzero(self._labels[label].verdicts))

    def accepted(self, label: int) -> tuple[np.ndarray, np.ndarray]:
        """Images for which a label was accepted, and how probable it was without knowing that.

        The probability is that of a correction which has not learned from the image's own
        decision (to first order); the least sure first.
        """
        one = self._labels[label]
        decided = np.flatnonzero(one.verdicts)
        if one.theta is None or not len(decided):
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        scores = left_out(*self._problem(one, decided, self._vote_shift(one)), one.theta)
        yes = one.verdicts[decided] > 0
        rows, scores = one.rows[decided][yes], scores[yes]
        order = np.lexsort((rows, scores))
        return rows[order], _probability(scores[order])

    # --- learning ------------------------------------------------------------------------

    def learn(self, label: int, rows: np.ndarray, verdicts: np.ndarray) -> None:
        """Decide on a label for some images.

        Parameters
        ----------
        label : int
        rows : int array of shape (n,)
            The images.
        verdicts : int array of shape (n,)
            1 accepted, −1 rejected, 0 taken back: open again.
        """
        rows, verdicts = np.asarray(rows, dtype=np.int64), np.asarray(verdicts, dtype=np.int8)
        if not len(rows):
            return
        self._include(label, rows)
        one = self._labels[label]
        at = np.searchsorted(one.rows, rows)
        changes = (one.verdicts[at] != 0) & (one.verdicts[at] != verdicts)
        one.verdicts[at] = verdicts
        if changes.any():
            # what was said before cannot be unsaid exactly: all of it is counted again
            one.weights = one.votes = np.zeros(0)
            at = np.flatnonzero(one.verdicts)
        self._add_votes(one, at)
        self._correct(one)

    def _include(self, label: int, rows: np.ndarray) -> None:
        """Make room for images for which nobody had suggested a label: it was not likely."""
        one = self._labels[label]
        fresh = np.setdiff1d(rows, one.rows)
        if not len(fresh):
            return
        known = np.concatenate([one.rows, fresh])
        order = np.argsort(known, kind="stable")
        least = float(one.offsets.min(initial=0.0))

        def widened(values: np.ndarray, fill: float) -> np.ndarray:
            return np.concatenate([values, np.full(len(fresh), fill, values.dtype)])[order]

        label_now = _Label(
            known[order],
            widened(one.offsets, least),
            widened(one.verdicts, 0),
            widened(one.scores, least),
            theta=one.theta,
        )
        self._labels[label] = label_now
        self._add_votes(label_now, np.flatnonzero(label_now.verdicts))

    def _add_votes(self, one: _Label, at: np.ndarray) -> None:
        """Add the votes of images, by position among the label's own."""
        if not len(one.weights):
            one.weights, one.votes = np.zeros(len(one.rows)), np.zeros(len(one.rows))
        at = at[one.verdicts[at] != 0]
        if not len(at):
            return
        decided = self._directions[one.rows[at]]
        said = np.stack([np.ones(len(at)), one.verdicts[at] > 0], axis=1).astype(np.float32)
        step = max(1, _BLOCK // len(at))
        for start in range(0, len(one.rows), step):
            part = slice(start, start + step)
            rows = one.rows[part]
            weights = self._directions[rows] @ decided.T  # cosines; in place from here on
            weights -= 1
            weights *= np.float32(self.temperature)
            np.exp(weights, out=weights)
            own = np.flatnonzero((at >= start) & (at < start + len(rows)))
            weights[at[own] - start, own] = 0  # nobody votes for itself
            both = (weights @ said) / self._support[rows][:, None]
            one.weights[part] += both[:, 0]
            one.votes[part] += both[:, 1]

    def _correct(self, one: _Label) -> None:
        """Fit a label's correction to its decisions, and correct its scores."""
        decided = np.flatnonzero(one.verdicts)
        if not len(decided):
            one.scores, one.theta = one.offsets.copy(), None
            return
        shift = self._vote_shift(one)
        r = self._features.shape[1]
        problem = self._problem(one, decided, shift)
        with blas_threads_for(len(decided) * r * r):  # many small systems: threads would only wait
            theta = fit_correction(*problem, self._prior(), one.theta)
        moved = self._features[one.rows] @ theta[:r].astype(np.float32)
        one.scores = (one.offsets + moved + theta[r] + theta[-1] * shift).astype(np.float32)
        one.theta = theta

    def _problem(
        self, one: _Label, decided: np.ndarray, shift: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Inputs, offsets, verdicts and penalties of a label's correction."""
        r = self._features.shape[1]
        inputs = np.empty((len(decided), r + 2))
        inputs[:, :r] = self._features[one.rows[decided]]
        inputs[:, r], inputs[:, r + 1] = 1, shift[decided]
        penalties = np.full(r + 2, float(self.regularization))
        penalties[r:] = _INTERCEPT_PENALTY, self.vote_penalty
        truth = (one.verdicts[decided] > 0).astype(np.float64)
        return inputs, one.offsets[decided].astype(np.float64), truth, penalties

    def _prior(self) -> np.ndarray:
        prior = np.zeros(self._features.shape[1] + 2)
        prior[-1] = self.vote_weight
        return prior

    def _vote_shift(self, one: _Label) -> np.ndarray:
        """Δ of a label's images, in logits."""
        before = _probability(one.offsets)
        return _logit((before + one.votes) / (1 + one.weights)) - _logit(before)


def _logit(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, _SURE, 1 - _SURE)
    return np.log(p) - np.log1p(-p)


def _probability(z: np.ndarray) -> np.ndarray:
    return np.asarray(to_numpy(expit(np.asarray(z, dtype=np.float64))))
