"""Calibrated probabilities from scores."""

from __future__ import annotations

from numbers import Real
from typing import Annotated, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tagkin.arrays import (
    Array,
    as_block,
    check_groups,
    check_integer,
    expit,
    like,
    namespace,
    row_blocks,
    to_numpy,
)
from tagkin.arrays.records import storable
from tagkin.arrays.rules import Floats, Size, Whole
from tagkin.arrays.scores import check_pair, check_scores, read_scores
from tagkin.calibration.cuts import (
    cut_precision,
    joint_precision,
    new_label_precision,
    per_label_precision,
)
from tagkin.calibration.link import Link, LinkedLabels
from tagkin.calibration.new_labels import fit_new_labels, held_out_precision
from tagkin.calibration.pooling import (
    ScoreTable,
    fit_like,
    fit_link,
    fit_sigmoids,
    positions_among,
    sigmoid_log_odds,
    summarize,
)
from tagkin.errors import InvalidInput
from tagkin.wording import count

__all__ = ["LabelCalibrator"]

# New labels on at least this many images get their own link. On other training images of COCO and
# Flickr8k, with 10 to 30 images, the log-loss for each was 3.03 and 4.05 with their own link, and
# 3.12 and 4.10 with the link of the earlier labels.
_OWN_LINK = 10
_NEW_LABEL_ATTRIBUTES = (
    "later_link_scores_",
    "later_link_log_odds_",
    "later_level_scores_",
    "later_level_log_odds_",
    "later_joint_precision_",
)


@storable
class LabelCalibrator(BaseEstimator):
    """Probabilities of labels, learned from scores of held-out images.

    P(t | s) = σ(aₜ g(s) + bₜ). The link g is one increasing function for all labels: the log-odds
    at each score, by isotonic regression. Each label has its own slope aₜ ≥ 0 and intercept bₜ,
    shrunk towards those of all labels; the more the labels agree, the stronger the shrinkage
    (empirical Bayes). A label with many positives follows its own data, a label with few or no
    positives the other labels. Probabilities never decrease with the score.

    Fit it on held-out images: scores of training images are too high.

    Attributes
    ----------
    n_labels_ : int
        Labels, D.
    n_images_ : int
        Number of held-out images.
    link_scores_, link_log_odds_ : arrays of shape (k,)
        The link g: linear in between, constant outside.
    slopes_, intercepts_ : arrays of shape (D,)
        aₜ and bₜ.
    n_first_ : int
        Labels with the first link; new labels after them may have their own link.
    later_link_scores_, later_link_log_odds_ : arrays of shape (j,)
        The link of new labels, if they have their own.
    later_level_scores_, later_level_log_odds_ : arrays of shape (i,)
        The increasing function h of new labels: P(t | s) = σ(h(aₜ g(s) + bₜ)).
    cut_scores_, cut_precision_ : arrays of shape (D, G)
        Possible least scores of a label, from the highest, and the expected precision of images
        with this score or more.
    joint_precision_ : array of shape (201,)
        Expected precision of all suggestions if each label must reach 0, .005, … 1.
    later_joint_precision_ : array of shape (201,)
        The same for new labels with their own link, on images that the cuts were not learned from.

    Notes
    -----
    On neighbours' votes and ridge scores of Flickr8k, COCO and Corel5k the held-out log-loss was
    lower than with a sigmoid for each label (Platt) with the same pooling, and lower than with an
    isotonic regression for each label. A common link does not help scores that were scaled per
    label: there a pooled sigmoid did as well, and better on Corel5k.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.calibration import LabelCalibrator
    >>> rng = np.random.default_rng(0)
    >>> S = rng.random((2000, 3))
    >>> Y = rng.random((2000, 3)) < S**2
    >>> calibrator = LabelCalibrator().fit(S, Y)
    >>> calibrator.predict_proba([[0.1, 0.6, 0.9]]).round(1)
    array([[0. , 0.4, 0.8]])
    """

    n_images_: Annotated[int, Whole()]
    n_labels_: Annotated[int, Size("D")]
    link_scores_: Annotated[np.ndarray, Floats("L", ascending=True)]
    link_log_odds_: Annotated[np.ndarray, Floats("L")]
    slopes_: Annotated[np.ndarray, Floats("D")]
    intercepts_: Annotated[np.ndarray, Floats("D")]
    cut_scores_: Annotated[np.ndarray, Floats("D", "G", endless=True)]
    cut_precision_: Annotated[np.ndarray, Floats("D", "G")]
    joint_precision_: Annotated[np.ndarray, Floats(201)]
    n_first_: Annotated[int, Whole().or_absent()]
    later_link_scores_: Annotated[np.ndarray, Floats("J", ascending=True).or_absent()]
    later_link_log_odds_: Annotated[np.ndarray, Floats("J").or_absent()]
    later_level_scores_: Annotated[np.ndarray, Floats("I", ascending=True).or_absent()]
    later_level_log_odds_: Annotated[np.ndarray, Floats("I").or_absent()]
    later_joint_precision_: Annotated[np.ndarray, Floats(201).or_absent()]

    def fit(self, S: Array, Y: Array) -> Self:
        """Learn from scores S (n×D), finite, and labels Y (n×D, dense or sparse)."""
        labels, S = check_pair(Y, S)
        table = summarize(S, labels)
        link = Link(*fit_link(table))
        z = link(table.mean)
        sigmoids = fit_sigmoids(z, table)
        self.n_images_, self.n_labels_ = S.shape
        self.n_first_ = self.n_labels_
        for name in _NEW_LABEL_ATTRIBUTES:
            self.__dict__.pop(name, None)  # left by an earlier `extend`
        self.link_scores_, self.link_log_odds_ = link
        self.slopes_, self.intercepts_ = sigmoids.T.copy()

        self.cut_scores_ = table.lowest
        self.cut_precision_ = cut_precision(sigmoid_log_odds(z, sigmoids), table)
        self.joint_precision_ = joint_precision(self.cut_precision_, table)
        return self

    def extend(
        self,
        n_labels: int,
        S: Array | None = None,
        Y: Array | None = None,
        groups: Array | None = None,
    ) -> Self:
        """Add labels after the fitted ones, up to D = `n_labels`.

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
            Otherwise slopes and intercepts are drawn towards those of the earlier labels, and the
            link stays.
        groups : array of shape (n,), optional
            Images of the same group (a burst, near-duplicates) do not judge each other's cuts.
        """
        check_is_fitted(self)
        n_new = check_integer("n_labels", n_labels) - self.n_labels_
        if n_new < 0:
            raise InvalidInput(f"Found {n_labels} labels, but {self.n_labels_} were fitted.")
        if n_new and S is not None and Y is not None:
            return self._extend_from_scores(*check_pair(Y, S), n_new, groups)
        last = self._linked_labels()[-1]
        median = np.median(last.sigmoids, axis=1)
        scores = last.link.scores
        grid = np.linspace(scores[-1], scores[0], self.cut_scores_.shape[1])
        promised = expit(last._replace(sigmoids=median).log_odds(grid))
        return self._widen(
            np.tile(median, (n_new, 1)),
            np.tile(grid, (n_new, 1)),
            np.tile(promised, (n_new, 1)),
        )

    def spread(self, columns: np.ndarray, n_labels: int) -> Self:
        """Expand to D = `n_labels` labels; these `columns`, ascending, were fitted.

        The other labels are calibrated as `extend` does without held-out scores.
        """
        self.extend(n_labels)
        positions = positions_among(columns, n_labels)
        for name in ("slopes_", "intercepts_", "cut_scores_", "cut_precision_"):
            setattr(self, name, to_numpy(getattr(self, name))[positions])
        return self

    def _extend_from_scores(
        self, labels: csr_array, S: Array, n_new: int, groups: Array | None
    ) -> Self:
        """Add labels with held-out scores S (n×new)."""
        if S.shape[1] != n_new:
            raise InvalidInput(f"Found scores of {S.shape[1]} labels, but {n_new} are new.")
        table = summarize(S, labels)
        kinds = self._linked_labels()
        if len(kinds) == 1 and labels.nnz >= _OWN_LINK:
            n = S.shape[0]
            codes = np.arange(n) if groups is None else check_groups(groups, n)
            return self._extend_with_own_link(table, labels, S, codes)
        kind = kinds[-1]
        z = kind.link(table.mean)
        sigmoids = fit_like(kind.sigmoids.T, z, table)
        log_odds = sigmoid_log_odds(z, sigmoids)
        if kind.level is not None:
            log_odds = kind.level(log_odds)
        return self._widen(sigmoids, table.lowest, cut_precision(log_odds, table))

    def _extend_with_own_link(
        self, table: ScoreTable, labels: csr_array, S: Array, groups: np.ndarray
    ) -> Self:
        """Add labels with their own link, fitted to groups of held-out scores."""
        fresh = fit_new_labels(table)
        self.n_first_ = self.n_labels_
        self.later_link_scores_, self.later_link_log_odds_ = fresh.link
        self.later_level_scores_, self.later_level_log_odds_ = fresh.level
        self.later_joint_precision_ = held_out_precision(S, labels, groups, table, fresh.precision)
        return self._widen(fresh.sigmoids, table.lowest, fresh.precision)

    def _widen(self, sigmoids: np.ndarray, lowest: np.ndarray, precision: np.ndarray) -> Self:
        """Append labels with slopes and intercepts (new×2) and cuts (new×G)."""
        known = np.stack([to_numpy(self.slopes_), to_numpy(self.intercepts_)], axis=1)
        self.slopes_, self.intercepts_ = np.concatenate([known, sigmoids]).T.copy()
        # padded cuts have a precision of 0, so they are never used
        self.cut_scores_ = _stack_padded(to_numpy(self.cut_scores_), lowest, -np.inf)
        self.cut_precision_ = _stack_padded(to_numpy(self.cut_precision_), precision, 0.0)
        self.n_labels_ += len(sigmoids)
        return self

    def _linked_labels(self) -> list[LinkedLabels]:
        """Return the fitted labels, and the new labels if they have their own link."""
        sigmoids = np.stack([to_numpy(self.slopes_), to_numpy(self.intercepts_)])
        link = Link(to_numpy(self.link_scores_), to_numpy(self.link_log_odds_))
        joint = self.joint_precision_
        if not hasattr(self, "later_link_scores_"):
            return [LinkedLabels(slice(None), link, sigmoids, None, joint)]
        later = Link(to_numpy(self.later_link_scores_), to_numpy(self.later_link_log_odds_))
        level = Link(to_numpy(self.later_level_scores_), to_numpy(self.later_level_log_odds_))
        first, others = slice(self.n_first_), slice(self.n_first_, None)
        return [
            LinkedLabels(first, link, sigmoids[:, first], None, joint),
            LinkedLabels(others, later, sigmoids[:, others], level, self.later_joint_precision_),
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
        check_is_fitted(self)
        is_number = isinstance(precision, Real) and not isinstance(precision, bool)
        if not is_number or not 0 < precision <= 1:
            raise InvalidInput(f"precision must be above 0 and at most 1; found {precision!r}.")
        cuts = to_numpy(self.cut_scores_)
        wanted = np.empty((self.n_labels_, 1))
        for adjust, kind in zip(
            (per_label_precision, new_label_precision), self._linked_labels(), strict=False
        ):
            wanted[kind.labels] = adjust(precision, kind.joint_precision)
        reached = to_numpy(self.cut_precision_) >= wanted
        lowest = cuts.shape[1] - 1 - np.argmax(reached[:, ::-1], axis=1)
        lowest_scores = np.take_along_axis(cuts, lowest[:, None], axis=1)[:, 0]
        return np.where(reached.any(axis=1), lowest_scores, np.inf)

    def describe(self) -> list[str]:
        """Return a few sentences that describe this calibrator."""
        slopes = to_numpy(self.slopes_)
        half = np.isfinite(self.min_scores(0.5)).sum()
        return [
            f"Probabilities of {count(self.n_labels_, 'label')}, learned from the scores of "
            f"{count(self.n_images_, 'held-out image')}.",
            f"The labels' slopes lie between {slopes.min():.2f} and {slopes.max():.2f}, where 1 "
            "is the slope of all labels together.",
            f"{count(half, 'label')} can be suggested with a precision of 0.5.",
        ]

    def check_stored(self) -> None:
        """Reject a stored calibrator with an incomplete link of new labels."""
        missing = [name for name in ("n_first_", *_NEW_LABEL_ATTRIBUTES) if not hasattr(self, name)]
        if missing and any(hasattr(self, name) for name in _NEW_LABEL_ATTRIBUTES):
            raise InvalidInput(f"the link of new labels lacks {missing[0]}")
        if not missing and self.n_first_ > self.n_labels_:
            raise InvalidInput(f"{self.n_first_} of {self.n_labels_} labels have the first link")

    def _check_scores(self, S: Array) -> Array:
        check_is_fitted(self)
        S = check_scores(S)
        if S.shape[1] != self.n_labels_:
            raise InvalidInput(
                f"S has {S.shape[1]} columns, but scores of {self.n_labels_} labels were fitted. "
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
