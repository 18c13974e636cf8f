"""Calibrated probabilities from scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Annotated, NamedTuple

import numpy as np

from tagkin.arrays import (
    Array,
    as_block,
    check_integer,
    expit,
    like,
    namespace,
    row_blocks,
)
from tagkin.arrays.labels import check_scores, positions_among, read_scores
from tagkin.calibration.cuts import (
    new_label_precision,
    per_label_precision,
)
from tagkin.errors import InvalidInput
from tagkin.records.forms import Axes, storable, take
from tagkin.records.rules import Floats, Whole
from tagkin.wording import count

__all__ = ["Calibration", "Link", "LinkedLabels", "NewLabels"]


@storable
@dataclass(frozen=True)
class Link:
    """An increasing function g from scores to log-odds: linear between its k steps."""

    scores: Annotated[np.ndarray, Floats("k", ascending=True).kept_on_host()]
    """Shape (k,), ascending."""
    log_odds: Annotated[np.ndarray, Floats("k").kept_on_host()]
    """Shape (k,)."""

    def __call__(self, s: np.ndarray) -> np.ndarray:
        """Return g(s), constant outside the steps."""
        return np.interp(s, self.scores, self.log_odds)

    def extrapolate(self, s: np.ndarray) -> np.ndarray:
        """Return g(s), continued in a straight line below the lowest and above the highest step."""
        low, high = self.scores[0], self.scores[-1]
        slope = (self.log_odds[-1] - self.log_odds[0]) / (high - low) if high > low else 0.0
        return self(s) + slope * (s - np.clip(s, low, high))


class LinkedLabels(NamedTuple):
    """Labels with a common link."""

    labels: slice
    link: Link
    sigmoids: np.ndarray
    """Slopes and intercepts, shape (2, labels)."""
    level: Link | None
    """h of new labels; see `NewLabels`. None for labels that were fitted together."""
    joint_precision: np.ndarray

    def log_odds(self, s: np.ndarray, extrapolate: bool = False) -> np.ndarray:
        """Return log-odds of scores s (n, labels); `extrapolate` beyond the steps."""
        slopes, intercepts = self.sigmoids
        z = self.link.extrapolate(s) if extrapolate else self.link(s)
        z *= slopes
        z += intercepts
        if self.level is None:
            return z
        return self.level.extrapolate(z) if extrapolate else self.level(z)


@storable
@dataclass(frozen=True)
class NewLabels:
    """P(t | s) = σ(h(aₜ g(s) + bₜ)) of labels added after fitting, if they have their own link."""

    n_before: Annotated[int, Whole()]
    """Number of labels before them, which have the first link."""
    link: Annotated[Link, Axes(k="J")]
    """g."""
    level: Annotated[Link, Axes(k="I")]
    """h, increasing."""
    joint_precision: Annotated[np.ndarray, Floats(201).kept_on_host()]
    """Precision of all their suggestions if each label must reach 0, .005, … 1, on images that the
    cuts were not learned from."""


@storable
@dataclass(frozen=True)
class Calibration:
    """Probabilities of D labels from their scores, P(t | s) = σ(aₜ g(s) + bₜ).

    `fit_calibration` learns it.
    """

    n_images: Annotated[int, Whole()]
    """Number of held-out images."""
    link: Annotated[Link, Axes(k="L")]
    """g."""
    slopes: Annotated[np.ndarray, Floats("D").kept_on_host()]
    """aₜ ≥ 0, shape (D,)."""
    intercepts: Annotated[np.ndarray, Floats("D").kept_on_host()]
    """bₜ, shape (D,)."""
    cut_scores: Annotated[np.ndarray, Floats("D", "G", endless=True).kept_on_host()]
    """Possible least scores of each label, from the highest, shape (D, G)."""
    cut_precision: Annotated[np.ndarray, Floats("D", "G").kept_on_host()]
    """Expected precision of images with each of these scores or more, shape (D, G)."""
    joint_precision: Annotated[np.ndarray, Floats(201).kept_on_host()]
    """Expected precision of all suggestions if each label must reach 0, .005, … 1."""
    new_labels: NewLabels | None = None
    """Link of the labels added after fitting, if they have their own."""

    @property
    def n_labels(self) -> int:
        """Number of labels, D."""
        return len(self.slopes)

    def extend(self, n_labels: int) -> Calibration:
        """Return a calibration with more labels after these, D = `n_labels` in total.

        They get the median slope and intercept of the earlier labels. The precision of their cuts
        is the probability at the cut, which is not above the mean probability of higher scores.
        `extend_calibration` learns from held-out scores of the new labels.
        """
        n_new = self.count_new(n_labels)
        last = self.linked_labels()[-1]
        median = np.median(last.sigmoids, axis=1)
        scores = last.link.scores
        grid = np.linspace(scores[-1], scores[0], self.cut_scores.shape[1])
        promised = expit(last._replace(sigmoids=median).log_odds(grid))
        return self.widen(*(np.tile(row, (n_new, 1)) for row in (median, grid, promised)))

    def count_new(self, n_labels: int) -> int:
        """Return the number of new labels if D = `n_labels`; reject fewer labels than fitted."""
        n_new = check_integer("n_labels", n_labels) - self.n_labels
        if n_new < 0:
            raise InvalidInput(f"Found {n_labels} labels, but {self.n_labels} were fitted.")
        return n_new

    def spread(self, columns: np.ndarray, n_labels: int) -> Calibration:
        """Expand to D = `n_labels` labels; these `columns`, ascending, were fitted.

        The other labels are calibrated as `extend` does without held-out scores.
        """
        return take(self.extend(n_labels), "D", positions_among(columns, n_labels))

    def widen(self, sigmoids: np.ndarray, lowest: np.ndarray, precision: np.ndarray) -> Calibration:
        """Append labels with slopes and intercepts (new×2) and cuts (new×G)."""
        return replace(
            self,
            slopes=np.append(self.slopes, sigmoids[:, 0]),
            intercepts=np.append(self.intercepts, sigmoids[:, 1]),
            # padded cuts have a precision of 0, so they are never used
            cut_scores=_stack_padded(self.cut_scores, lowest, -np.inf),
            cut_precision=_stack_padded(self.cut_precision, precision, 0.0),
        )

    def linked_labels(self) -> list[LinkedLabels]:
        """Return the fitted labels, and the new labels if they have their own link."""
        sigmoids, joint = np.stack([self.slopes, self.intercepts]), self.joint_precision
        new = self.new_labels
        if new is None:
            return [LinkedLabels(slice(None), self.link, sigmoids, None, joint)]
        first, others = slice(new.n_before), slice(new.n_before, None)
        return [
            LinkedLabels(first, self.link, sigmoids[:, first], None, joint),
            LinkedLabels(others, new.link, sigmoids[:, others], new.level, new.joint_precision),
        ]

    def predict_proba(self, S: Array) -> Array:
        """Return the probability of every label for every image, (n, D), with S's array type.

        The dtype is float32 if S is float32 or narrower, otherwise float64.
        """
        S = self._check_scores(S)
        xp = namespace(S)
        P = xp.empty(tuple(S.shape), dtype=as_block(S[:1], finite=False).dtype, device=S.device)
        kinds = self.linked_labels()
        for rows in row_blocks(S.shape[0], 32 * S.shape[1]):
            s = read_scores(S, rows, finite=True)
            for kind in kinds:
                P[rows, kind.labels] = like(expit(kind.log_odds(s[:, kind.labels])), P)
        return P

    def log_odds(self, S: Array) -> np.ndarray:
        """Return the log-odds of every label for every image, (n, D), float32.

        They agree with `predict_proba`, but continue in a straight line below the lowest and above
        the highest step of the link, so only equal scores are tied.
        """
        S = self._check_scores(S)
        kinds = self.linked_labels()
        log_odds = np.empty(tuple(S.shape), dtype=np.float32)
        for rows in row_blocks(S.shape[0], 48 * S.shape[1]):
            s = read_scores(S, rows, finite=True)
            for kind in kinds:
                log_odds[rows, kind.labels] = kind.log_odds(s[:, kind.labels], extrapolate=True)
        return log_odds

    def min_scores(self, precision: float) -> np.ndarray:
        """Return each label's least score at which suggestions reach the precision.

        The precision of "score ≥ least score" is estimated on the held-out images and drawn
        towards their calibrated probabilities, (positives + 30 p̄) / (images + 30), with p̄ the mean
        probability of these images. So a label does not get a low cut because its single positive
        ranks first by luck.

        The precision applies to all suggestions together. If some labels exceed it by far, the
        others may fall short by up to .1, as long as the held-out estimate for all suggestions
        stays .005 above it. New labels with their own link may fall short by up to .3, or must
        exceed it by up to .1, to reach it on images that the cuts were not learned from.

        Parameters
        ----------
        precision : float
            Share of correct suggestions, above 0 and at most 1.

        Returns
        -------
        min_scores : float64 array of shape (D,)
            Suggest label t if ``S[:, t] >= min_scores[t]``; ∞ if the label cannot reach the
            precision.
        """
        is_number = isinstance(precision, Real) and not isinstance(precision, bool)
        if not is_number or not 0 < precision <= 1:
            raise InvalidInput(f"precision must be above 0 and at most 1; found {precision!r}.")
        cuts = self.cut_scores
        wanted = np.empty((self.n_labels, 1))
        for adjust, kind in zip(
            (per_label_precision, new_label_precision), self.linked_labels(), strict=False
        ):
            wanted[kind.labels] = adjust(precision, kind.joint_precision)
        reached = self.cut_precision >= wanted
        lowest = cuts.shape[1] - 1 - np.argmax(reached[:, ::-1], axis=1)
        lowest_scores = np.take_along_axis(cuts, lowest[:, None], axis=1)[:, 0]
        return np.where(reached.any(axis=1), lowest_scores, np.inf)

    def describe(self) -> list[str]:
        """Return a few sentences that describe this calibration."""
        half = np.isfinite(self.min_scores(0.5)).sum()
        low, high = self.slopes.min(), self.slopes.max()
        return [
            f"Probabilities of {count(self.n_labels, 'label')}, learned from the scores of "
            f"{count(self.n_images, 'held-out image')}.",
            f"The labels' slopes lie between {low:.2f} and {high:.2f}, where 1 is the slope of all "
            "labels together.",
            f"{count(half, 'label')} can be suggested with a precision of 0.5.",
        ]

    def check_stored(self) -> None:
        """Reject a stored calibration with more labels of the first link than labels."""
        if self.new_labels is not None and self.new_labels.n_before > self.n_labels:
            n_first = self.new_labels.n_before
            raise InvalidInput(f"{n_first} of {self.n_labels} labels have the first link")

    def _check_scores(self, S: Array) -> Array:
        S = check_scores(S)
        if S.shape[1] != self.n_labels:
            raise InvalidInput(
                f"S has {S.shape[1]} columns, but scores of {self.n_labels} labels were fitted. "
                "Pass the same labels in the same order, or fit again."
            )
        return S


def _stack_padded(above: np.ndarray, below: np.ndarray, value: float) -> np.ndarray:
    """Stack two tables vertically; pad the narrower table with a value."""
    width = max(above.shape[1], below.shape[1])
    return np.vstack(
        [
            np.pad(table, ((0, 0), (0, width - table.shape[1])), constant_values=value)
            for table in (above, below)
        ]
    )
