"""Scores that follow a person's decisions, one label at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse

from tagkin.arrays import expit, to_numpy
from tagkin.arrays.threads import blas_threads_for
from tagkin.errors import InvalidInput
from tagkin.transfer._correction import fit_correction, leave_one_out_scores

__all__ = ["LiveScores"]

_SURE = 1e-4  # probabilities are kept this far from 0 and 1
_BLOCK = 2**22  # numbers that are in memory at once
_PENALTY = 0.3  # λ
_INTERCEPT_PENALTY = 0.05  # small, because a few decisions already show a label's level
_VOTE_WEIGHT, _VOTE_PENALTY = 0.6, 10.0  # a⁰ and μ


@dataclass
class _Label:
    """State of a label: its candidate images, their decisions and scores.

    All arrays have one entry for each of these images, ascending.
    """

    rows: np.ndarray
    offsets: np.ndarray
    """Logits of the suggestions."""
    verdicts: np.ndarray
    """1 accepted, −1 rejected, 0 open."""
    scores: np.ndarray
    """Current logits."""
    weights: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Weight of the decided neighbours; empty before the first decision."""
    votes: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Weight of the decided neighbours that have the label."""
    theta: np.ndarray | None = None
    """Coefficients of the correction, or None without decisions."""


class LiveScores:
    """Logits of labels for images, corrected after each decision.

    A label's score for an image is the model's score z⁰ plus a correction learned from decisions
    on this label only:

        z = z⁰ + a Δ + bₜ + φᵀwₜ,    Δ = logit((p⁰ + Σⱼ eⱼ yⱼ) / (1 + Σⱼ eⱼ)) − z⁰,

    p⁰ is the probability of z⁰, and the sums are over the decided images j. Each votes with
    eⱼ = exp(τ cos), divided by the sum of all votes that the model counted for this image. w, b
    and a minimise the logistic loss of the decisions + λ/2 ‖w‖² + μ/2 (a − a⁰)². The penalty on b,
    the label's level, is very small: if most suggestions of a label are rejected, all its scores
    fall.

    Parameters
    ----------
    candidates : sparse array of shape (N, D)
        Probabilities of the labels that an image may get.
    embeddings : array of shape (N, m)
        Embeddings in the semantic space, of unit length, for votes. They may be float16.
    features : array of shape (N, r)
        φ: features for the corrections, such as principal components. They may be float16.
    support : array of shape (N,)
        Σ exp(τ (cos − 1)) over the model's training images, for each image.
    temperature : float, default 10.0
        τ.

    Notes
    -----
    A batch of decisions costs one product with the embeddings of the decided images, and a small
    regression that starts from the last result; other labels do not change. The order of
    decisions does not matter, up to the regression's tolerance (1e-4 logits).
    """

    def __init__(
        self,
        candidates: scipy.sparse.sparray,
        embeddings: np.ndarray,
        features: np.ndarray,
        support: np.ndarray,
        temperature: float = 10.0,
    ):
        columns = scipy.sparse.csc_array(candidates)
        columns.sort_indices()
        n = columns.shape[0]
        lengths = {"embeddings": embeddings, "features": features, "support": support}
        for name, array in lengths.items():
            if len(array) != n:
                raise InvalidInput(f"{name} has {len(array)} rows, but candidates has {n}.")
        self.shape: tuple[int, int] = columns.shape
        self._directions = np.ascontiguousarray(embeddings)
        self._features = np.ascontiguousarray(features)
        self._support = np.maximum(np.asarray(support, dtype=np.float64), 1e-12)
        self.temperature = temperature
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
        """Return a label's undecided images and their probabilities, most confident first."""
        state = self._labels[label]
        rows = np.flatnonzero(state.verdicts == 0)
        order = rows[np.lexsort((state.rows[rows], -state.scores[rows]))]
        return state.rows[order], _probability(state.scores[order])

    def of_image(self, row: int, labels: Sequence[int] | None = None) -> list[tuple[int, float]]:
        """Return an image's undecided labels and their probabilities, most confident first."""
        undecided = []
        for label in range(self.shape[1]) if labels is None else labels:
            state = self._labels[label]
            position = int(np.searchsorted(state.rows, row))
            if (
                position < len(state.rows)
                and state.rows[position] == row
                and state.verdicts[position] == 0
            ):
                undecided.append((label, float(_probability(state.scores[position]))))
        return sorted(undecided, key=lambda pair: (-pair[1], pair[0]))

    def n_decided(self, label: int) -> int:
        """Return the number of decided images of a label."""
        return int(np.count_nonzero(self._labels[label].verdicts))

    def accepted(self, label: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a label's accepted images and leave-one-out probabilities, least confident first.

        Each probability comes from a correction without the image's own decision, to first order.
        """
        state = self._labels[label]
        decided = np.flatnonzero(state.verdicts)
        if state.theta is None or not len(decided):
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        scores = leave_one_out_scores(
            *self._problem(state, decided, self._vote_shift(state)), state.theta
        )
        yes = state.verdicts[decided] > 0
        rows, scores = state.rows[decided][yes], scores[yes]
        order = np.lexsort((rows, scores))
        return rows[order], _probability(scores[order])

    # --- learning ------------------------------------------------------------------------

    def learn(self, label: int, rows: np.ndarray, verdicts: np.ndarray) -> None:
        """Learn from decisions on a label for some images.

        Parameters
        ----------
        label : int
        rows : int array of shape (n,)
            The images.
        verdicts : int array of shape (n,)
            1 accepted, −1 rejected, 0 open again after an undo.
        """
        rows, verdicts = np.asarray(rows, dtype=np.int64), np.asarray(verdicts, dtype=np.int8)
        if not len(rows):
            return
        self._include(label, rows)
        state = self._labels[label]
        positions = np.searchsorted(state.rows, rows)
        changes = (state.verdicts[positions] != 0) & (state.verdicts[positions] != verdicts)
        state.verdicts[positions] = verdicts
        if changes.any():
            # subtracting old votes would leave rounding errors, so all votes are counted again
            state.weights = state.votes = np.zeros(0)
            positions = np.flatnonzero(state.verdicts)
        self._add_votes(state, positions)
        self._correct(state)

    def _include(self, label: int, rows: np.ndarray) -> None:
        """Add images that were not candidates of a label, with its lowest score."""
        state = self._labels[label]
        fresh = np.setdiff1d(rows, state.rows)
        if not len(fresh):
            return
        known = np.concatenate([state.rows, fresh])
        order = np.argsort(known, kind="stable")
        least = float(state.offsets.min(initial=0.0))

        def widen(values: np.ndarray, fill: float) -> np.ndarray:
            return np.concatenate([values, np.full(len(fresh), fill, values.dtype)])[order]

        new_state = _Label(
            known[order],
            widen(state.offsets, least),
            widen(state.verdicts, 0),
            widen(state.scores, least),
            theta=state.theta,
        )
        self._labels[label] = new_state
        self._add_votes(new_state, np.flatnonzero(new_state.verdicts))

    def _add_votes(self, state: _Label, positions: np.ndarray) -> None:
        """Add the votes of these images, given by position among the label's images."""
        if not len(state.weights):
            state.weights, state.votes = np.zeros(len(state.rows)), np.zeros(len(state.rows))
        positions = positions[state.verdicts[positions] != 0]
        if not len(positions):
            return
        decided = self._directions[state.rows[positions]].astype(np.float32)
        ballots = np.stack([np.ones(len(positions)), state.verdicts[positions] > 0], axis=1).astype(
            np.float32
        )
        for part in self._parts(state, len(positions) + decided.shape[1]):
            rows, start = state.rows[part], part.start
            directions = self._directions[rows].astype(np.float32)
            weights = directions @ decided.T  # cosines; changed in place below
            weights -= 1
            weights *= np.float32(self.temperature)
            np.exp(weights, out=weights)
            own = np.flatnonzero((positions >= start) & (positions < start + len(rows)))
            weights[positions[own] - start, own] = 0  # an image does not vote for itself
            totals = (weights @ ballots) / self._support[rows][:, None]
            state.weights[part] += totals[:, 0]
            state.votes[part] += totals[:, 1]

    def _correct(self, state: _Label) -> None:
        """Fit a label's correction to its decisions, and correct its scores."""
        decided = np.flatnonzero(state.verdicts)
        if not len(decided):
            state.scores, state.theta = state.offsets.copy(), None
            return
        shift = self._vote_shift(state)
        r = self._features.shape[1]
        problem = self._problem(state, decided, shift)
        with blas_threads_for(len(decided) * r * r):  # threads do not speed up many small systems
            theta = fit_correction(*problem, self._prior(), state.theta)
        state.scores = (state.offsets + theta[r] + theta[-1] * shift).astype(np.float32)
        for part in self._parts(state, r):
            state.scores[part] += self._features[state.rows[part]].astype(np.float32) @ theta[:r]
        state.theta = theta

    def _parts(self, state: _Label, width: int) -> Iterator[slice]:
        """Yield slices of a label's images that need `width` numbers in memory each."""
        step = max(1, _BLOCK // width)
        for start in range(0, len(state.rows), step):
            yield slice(start, start + step)

    def _problem(
        self, state: _Label, decided: np.ndarray, shift: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the inputs, offsets, verdicts and penalties of a label's correction."""
        r = self._features.shape[1]
        inputs = np.empty((len(decided), r + 2))
        inputs[:, :r] = self._features[state.rows[decided]]
        inputs[:, r], inputs[:, r + 1] = 1, shift[decided]
        penalties = np.full(r + 2, _PENALTY)
        penalties[r:] = _INTERCEPT_PENALTY, _VOTE_PENALTY
        truth = (state.verdicts[decided] > 0).astype(np.float64)
        return inputs, state.offsets[decided].astype(np.float64), truth, penalties

    def _prior(self) -> np.ndarray:
        prior = np.zeros(self._features.shape[1] + 2)
        prior[-1] = _VOTE_WEIGHT
        return prior

    def _vote_shift(self, state: _Label) -> np.ndarray:
        """Return Δ of a label's images, in logits."""
        before = _probability(state.offsets)
        return _logit((before + state.votes) / (1 + state.weights)) - _logit(before)


def _logit(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, _SURE, 1 - _SURE)
    return np.log(p) - np.log1p(-p)


def _probability(z: np.ndarray) -> np.ndarray:
    return np.asarray(to_numpy(expit(np.asarray(z, dtype=np.float64))))
