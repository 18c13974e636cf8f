"""Calibrated probabilities from scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Annotated

import numpy as np
from scipy.sparse import csr_array

from tagkin.arrays import (
    Array,
    as_block,
    check_groups,
    check_integer,
    expit,
    like,
    namespace,
    row_blocks,
)
from tagkin.arrays.records import Axes, storable, take
from tagkin.arrays.rules import Floats, Whole
from tagkin.arrays.scores import check_pair, check_scores, read_scores
from tagkin.calibration.cuts import (
    cut_precision,
    joint_precision,
    new_label_precision,
    per_label_precision,
)
from tagkin.calibration.link import Link, LinkedLabels
from tagkin.calibration.new_labels import NewLabels, fit_new_labels, held_out_precision
from tagkin.calibration.pooling import (
    fit_like,
    fit_link,
    fit_sigmoids,
    positions_among,
    sigmoid_log_odds,
    summarize,
)
from tagkin.errors import InvalidInput
from tagkin.wording import count

__all__ = ["Calibration", "fit_calibration"]

# New labels on at least this many images get their own link. On other training images of COCO and
# Flickr8k, with 10 to 30 images, the log-loss for each was 3.03 and 4.05 with their own link, and
# 3.12 and 4.10 with the link of the earlier labels.
_OWN_LINK = 10


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

    def extend(
        self,
        n_labels: int,
        S: Array | None = None,
        Y: Array | None = None,
        groups: Array | None = None,
    ) -> Calibration:
        """Return a calibration with more labels after these, D = `n_labels` in total.

        Without held-out scores they get the median slope and intercept of the earlier labels. The
        precision of their cuts is then the probability at the cut, which is not above the mean
        probability of higher scores.

        Parameters
        ----------
        n_labels : int
        S, Y : arrays of shape (n, new labels), optional
            Held-out scores of the new labels, and whether the images have the labels. The first
            new labels get their own link if they are on at least ten images in total, because
            other components may score them (only votes, until the read-out learns them).
            Otherwise slopes and intercepts are shrunk towards the earlier labels', and the link
            stays.
        groups : array of shape (n,), optional
            Images of the same group (a burst, near-duplicates) do not judge each other's cuts.
        """
        n_new = check_integer("n_labels", n_labels) - self.n_labels
        if n_new < 0:
            raise InvalidInput(f"Found {n_labels} labels, but {self.n_labels} were fitted.")
        if n_new and S is not None and Y is not None:
            return self._extend_from_scores(*check_pair(Y, S), n_new, groups)
        last = self._linked_labels()[-1]
        median = np.median(last.sigmoids, axis=1)
        scores = last.link.scores
        grid = np.linspace(scores[-1], scores[0], self.cut_scores.shape[1])
        promised = expit(last._replace(sigmoids=median).log_odds(grid))
        return self._widen(*(np.tile(row, (n_new, 1)) for row in (median, grid, promised)))

    def spread(self, columns: np.ndarray, n_labels: int) -> Calibration:
        """Expand to D = `n_labels` labels; these `columns`, ascending, were fitted.

        The other labels are calibrated as `extend` does without held-out scores.
        """
        return take(self.extend(n_labels), "D", positions_among(columns, n_labels))

    def _extend_from_scores(
        self, labels: csr_array, S: Array, n_new: int, groups: Array | None
    ) -> Calibration:
        """Add labels with held-out scores S (n×new)."""
        if S.shape[1] != n_new:
            raise InvalidInput(f"Found scores of {S.shape[1]} labels, but {n_new} are new.")
        table = summarize(S, labels)
        if self.new_labels is None and labels.nnz >= _OWN_LINK:
            n = S.shape[0]
            codes = np.arange(n) if groups is None else check_groups(groups, n)
            fitted = fit_new_labels(table)
            joint = held_out_precision(S, labels, codes, table, fitted.precision)
            own = NewLabels(self.n_labels, fitted.link, fitted.level, joint)
            with_link = replace(self, new_labels=own)
            return with_link._widen(fitted.sigmoids, table.lowest, fitted.precision)
        last = self._linked_labels()[-1]
        z = last.link(table.mean)
        sigmoids = fit_like(last.sigmoids.T, z, table)
        log_odds = sigmoid_log_odds(z, sigmoids)
        if last.level is not None:
            log_odds = last.level(log_odds)
        return self._widen(sigmoids, table.lowest, cut_precision(log_odds, table))

    def _widen(
        self, sigmoids: np.ndarray, lowest: np.ndarray, precision: np.ndarray
    ) -> Calibration:
        """Append labels with slopes and intercepts (new×2) and cuts (new×G)."""
        return replace(
            self,
            slopes=np.append(self.slopes, sigmoids[:, 0]),
            intercepts=np.append(self.intercepts, sigmoids[:, 1]),
            # padded cuts have a precision of 0, so they are never used
            cut_scores=_stack_padded(self.cut_scores, lowest, -np.inf),
            cut_precision=_stack_padded(self.cut_precision, precision, 0.0),
        )

    def _linked_labels(self) -> list[LinkedLabels]:
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
        kinds = self._linked_labels()
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
        kinds = self._linked_labels()
        log_odds = np.empty(tuple(S.shape), dtype=np.float32)
        for rows in row_blocks(S.shape[0], 48 * S.shape[1]):
            s = read_scores(S, rows, finite=True)
            for kind in kinds:
                log_odds[rows, kind.labels] = kind.log_odds(s[:, kind.labels], prolonged=True)
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
            (per_label_precision, new_label_precision), self._linked_labels(), strict=False
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


def fit_calibration(S: Array, Y: Array, levels: np.ndarray | None = None) -> Calibration:
    """Learn probabilities of labels from scores of held-out images.

    The link g is one increasing function for all labels: the log-odds at each score, by isotonic
    regression. Each label has its own slope aₜ ≥ 0 and intercept bₜ, shrunk towards those of all
    labels; the more the labels agree, the stronger the shrinkage (empirical Bayes). A label with
    many positives follows its own data, a label with few or no positives the other labels.
    Probabilities never decrease with the score.

    Parameters
    ----------
    S : array of shape (n, D)
        Finite scores of held-out images; scores of training images are too high.
    Y : array or sparse matrix of shape (n, D)
        Labels of the same images.
    levels : array of shape (D,), optional
        Log-odds to add to each label, such as from `frequency_levels`.

    Notes
    -----
    On neighbours' votes and ridge scores of Flickr8k, COCO and Corel5k the held-out log-loss was
    lower than with a sigmoid for each label (Platt) with the same pooling, and lower than with an
    isotonic regression for each label. A common link does not help scores that were scaled per
    label: there a pooled sigmoid did as well, and better on Corel5k.
    """
    labels, S = check_pair(Y, S)
    table = summarize(S, labels)
    link = Link(*fit_link(table))
    z = link(table.mean)
    sigmoids = fit_sigmoids(z, table)
    if levels is not None:
        sigmoids[:, 1] += levels
        table = replace(table, positives=table.positives * np.exp(levels)[:, None])
    precision = cut_precision(sigmoid_log_odds(z, sigmoids), table)
    joint = joint_precision(precision, table)
    slopes, intercepts = sigmoids.T.copy()
    return Calibration(S.shape[0], link, slopes, intercepts, table.lowest, precision, joint)


def _stack_padded(above: np.ndarray, below: np.ndarray, value: float) -> np.ndarray:
    """Stack two tables vertically; pad the narrower table with a value."""
    width = max(above.shape[1], below.shape[1])
    return np.vstack(
        [
            np.pad(table, ((0, 0), (0, width - table.shape[1])), constant_values=value)
            for table in (above, below)
        ]
    )
