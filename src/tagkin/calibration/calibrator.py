"""From scores to calibrated probabilities, so that each image gets as many labels as are sure."""

from __future__ import annotations

from numbers import Real
from typing import Self

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
from tagkin.arrays.scores import check_pair, check_scores, read_scores
from tagkin.calibration.cuts import (
    asked_of_each,
    asked_of_later,
    cut_precision,
    joint_precision,
)
from tagkin.calibration.later import fit_later, held_out_precision
from tagkin.calibration.link import Link, LinkedLabels
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

# Images that carry labels which came later, from which on these have a link of their own. On other
# training images of COCO and Flickr8k, with 10 to 30 of them, the log-loss for each was 3.03 and
# 4.05 with it, and 3.12 and 4.10 with that of the labels known before.
_OWN_LINK = 10
_OF_LATER = (
    "later_link_scores_",
    "later_link_log_odds_",
    "later_level_scores_",
    "later_level_log_odds_",
    "later_joint_precision_",
)


class LabelCalibrator(BaseEstimator):
    """Probabilities of labels, learned from scores of images that were held out.

    P(t | s) = σ(aₜ g(s) + bₜ). The link g is one increasing function for all labels: the log-odds
    at each score, by isotonic regression. Slope aₜ ≥ 0 and intercept bₜ are the label's own, shrunk
    towards those of all labels as far as the labels agree with each other (empirical Bayes). A
    label with many positives is fitted by them; one with few or none by what holds for the others.
    Probabilities never decrease with the score.

    Fit it on images that the scores were not learned from: scores of training images are too
    good.

    Attributes
    ----------
    n_labels_ : int
        Labels, D.
    n_images_ : int
        Held-out images that were learned from.
    link_scores_, link_log_odds_ : arrays of shape (k,)
        The link g: linear in between, constant outside.
    slopes_, intercepts_ : arrays of shape (D,)
        aₜ and bₜ.
    n_first_ : int
        Labels that the link is of; those after them came later and have another.
    later_link_scores_, later_link_log_odds_ : arrays of shape (j,)
        The link of labels that came later, where they have one.
    later_level_scores_, later_level_log_odds_ : arrays of shape (i,)
        For these, P(t | s) = σ(h(aₜ g(s) + bₜ)): h, increasing, is this.
    cut_scores_, cut_precision_ : arrays of shape (D, G)
        Scores at which a label may be cut, from the highest, and the precision expected of the
        images that score as high or higher.
    joint_precision_ : array of shape (201,)
        Precision expected of all suggestions together where each label is asked for 0, .005, … 1.
    later_joint_precision_ : array of shape (201,)
        The same for labels that came later, where they have a link of their own; on images that
        the cuts were not learned from.

    Notes
    -----
    On neighbours' votes and ridge scores of Flickr8k, COCO and Corel5k the held-out log-loss was
    below that of a sigmoid for each label (Platt) with the same pooling, and below that of an
    isotonic regression for each label. Scores that were scaled label by label gain nothing from a
    common link: there a pooled sigmoid did as well, and better on Corel5k.

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

    def fit(self, S: Array, Y: Array) -> Self:
        """Learn from scores S (n×D), finite, and labels Y (n×D, dense or sparse)."""
        labels, S = check_pair(Y, S)
        table = summarize(S, labels)
        link = Link(*fit_link(table))
        z = link(table.mean)
        sigmoids = fit_sigmoids(z, table)
        self.n_images_, self.n_labels_ = S.shape
        self.n_first_ = self.n_labels_
        for name in _OF_LATER:
            self.__dict__.pop(name, None)  # of labels that came after an earlier fit
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
        """Add labels after those that were fitted: D is `n_labels` from now on.

        Without held-out scores they get the median slope and intercept of those before them, and
        for least scores the precision that their probability promises at the cut itself, which is
        no more than that above it.

        Parameters
        ----------
        n_labels : int
        S, Y : arrays of shape (n, new labels), optional
            Scores of the new labels for images that did not count for themselves, and whether the
            images carry the labels. The first labels that are on enough of them, ten together, get
            a link of their own: what scores them may be other than what scored the labels before
            (votes alone, where a read-out has not learned them), and so may be the way from scores
            to probabilities. Otherwise slopes and intercepts are drawn towards those of the labels
            before them, whose link stays.
        groups : array of shape (n,), optional
            Images of one group (a burst, near-duplicates) do not judge each other's cuts.
        """
        check_is_fitted(self)
        n_new = check_integer("n_labels", n_labels) - self.n_labels_
        if n_new < 0:
            raise InvalidInput(f"Found {n_labels} labels where {self.n_labels_} were fitted.")
        if n_new and S is not None and Y is not None:
            return self._extend_by(*check_pair(Y, S), n_new, groups)
        kind = self._kinds()[-1]
        usual = np.median(kind.sigmoids, axis=1)
        scores = kind.link.scores
        grid = np.linspace(scores[-1], scores[0], self.cut_scores_.shape[1])
        promised = expit(kind._replace(sigmoids=usual).log_odds(grid))
        return self._widen(
            np.tile(usual, (n_new, 1)),
            np.tile(grid, (n_new, 1)),
            np.tile(promised, (n_new, 1)),
        )

    def spread(self, columns: np.ndarray, n_labels: int) -> Self:
        """Be one of D = `n_labels` labels, of which these columns, ascending, were fitted.

        The others get what `extend` gives to labels without held-out scores.
        """
        self.extend(n_labels)
        positions = positions_among(columns, n_labels)
        for name in ("slopes_", "intercepts_", "cut_scores_", "cut_precision_"):
            setattr(self, name, to_numpy(getattr(self, name))[positions])
        return self

    def _extend_by(self, labels: csr_array, S: Array, n_new: int, groups: Array | None) -> Self:
        """Add labels by held-out scores S (n×new)."""
        if S.shape[1] != n_new:
            raise InvalidInput(f"Found scores of {S.shape[1]} labels where {n_new} are new.")
        table = summarize(S, labels)
        kinds = self._kinds()
        if len(kinds) == 1 and labels.nnz >= _OWN_LINK:
            n = S.shape[0]
            apart = np.arange(n) if groups is None else check_groups(groups, n)
            return self._extend_apart(table, labels, S, apart)
        kind = kinds[-1]
        z = kind.link(table.mean)
        fresh = fit_like(kind.sigmoids.T, z, table)
        log_odds = sigmoid_log_odds(z, fresh)
        if kind.level is not None:
            log_odds = kind.level(log_odds)
        return self._widen(fresh, table.lowest, cut_precision(log_odds, table))

    def _extend_apart(
        self, table: ScoreTable, labels: csr_array, S: Array, groups: np.ndarray
    ) -> Self:
        """Add labels by their groups of held-out scores, with a link of their own."""
        fresh = fit_later(table)
        self.n_first_ = self.n_labels_
        self.later_link_scores_, self.later_link_log_odds_ = fresh.link
        self.later_level_scores_, self.later_level_log_odds_ = fresh.level
        self.later_joint_precision_ = held_out_precision(S, labels, groups, table, fresh.precision)
        return self._widen(fresh.sigmoids, table.lowest, fresh.precision)

    def _widen(self, sigmoids: np.ndarray, lowest: np.ndarray, precision: np.ndarray) -> Self:
        """Add labels by their slopes and intercepts (new×2) and their cuts (new×G)."""
        known = np.stack([to_numpy(self.slopes_), to_numpy(self.intercepts_)], axis=1)
        self.slopes_, self.intercepts_ = np.concatenate([known, sigmoids]).T.copy()
        # tables of one width; a cut that no score reaches is never taken
        self.cut_scores_ = _stacked(to_numpy(self.cut_scores_), lowest, -np.inf)
        self.cut_precision_ = _stacked(to_numpy(self.cut_precision_), precision, 0.0)
        self.n_labels_ += len(sigmoids)
        return self

    def _kinds(self) -> list[LinkedLabels]:
        """Labels that were fitted, and those that came later if these have a link of their own."""
        sigmoids = np.stack([to_numpy(self.slopes_), to_numpy(self.intercepts_)])
        link = Link(to_numpy(self.link_scores_), to_numpy(self.link_log_odds_))
        joint = self.joint_precision_
        if not hasattr(self, "later_link_scores_"):
            return [LinkedLabels(slice(None), link, sigmoids, None, joint)]
        later = Link(to_numpy(self.later_link_scores_), to_numpy(self.later_link_log_odds_))
        level = Link(to_numpy(self.later_level_scores_), to_numpy(self.later_level_log_odds_))
        first, rest = slice(self.n_first_), slice(self.n_first_, None)
        return [
            LinkedLabels(first, link, sigmoids[:, first], None, joint),
            LinkedLabels(rest, later, sigmoids[:, rest], level, self.later_joint_precision_),
        ]

    def predict_proba(self, S: Array) -> Array:
        """Probability of every label for every image, (n, D), as an array of S's kind.

        Float32 where S is (or narrower), otherwise float64.
        """
        S = self._check_scores(S)
        xp = namespace(S)
        P = xp.empty(tuple(S.shape), dtype=as_block(S[:1], finite=False).dtype, device=S.device)
        kinds = self._kinds()
        for rows in row_blocks(S.shape[0], 32 * S.shape[1]):
            s = read_scores(S, rows, finite=True)
            for kind in kinds:
                P[rows, kind.labels] = like(expit(kind.log_odds(s[:, kind.labels])), P)
        return P

    def log_odds(self, S: Array) -> np.ndarray:
        """Log-odds of every label for every image, (n, D), float32.

        They are those of `predict_proba`, but go on beyond the lowest and the highest of the
        held-out scores' steps, in a straight line, so that only equal scores are tied.
        """
        S = self._check_scores(S)
        kinds = self._kinds()
        found = np.empty(tuple(S.shape), dtype=np.float32)
        for rows in row_blocks(S.shape[0], 48 * S.shape[1]):
            s = read_scores(S, rows, finite=True)
            for kind in kinds:
                found[rows, kind.labels] = kind.log_odds(s[:, kind.labels], prolonged=True)
        return found

    def min_scores(self, precision: float) -> np.ndarray:
        """Each label's lowest score from which on its suggestions are right often enough.

        The precision of "score ≥ least score" is estimated on the held-out images and drawn
        towards what their calibrated probabilities promise, (positives + 30 p̄) / (images + 30),
        where p̄ is the mean probability of those images. A label with one positive that happens
        to lead its ranking so gets no low cut by luck.

        The wanted precision is that of all suggestions together. Where some labels are right far
        more often than wanted, the others are asked for less, by .1 at the most, as long as the
        held-out images promise .005 more than is wanted. Labels that came later and have a link of
        their own are asked for less, by .3 at the most, or for more, by .1 at the most, so that
        what is wanted is reached by cuts on images that they were not learned from.

        Parameters
        ----------
        precision : float
            Wanted share of right suggestions, above 0 and at most 1.

        Returns
        -------
        min_scores : float64 array of shape (D,)
            Suggest label t where ``S[:, t] >= min_scores[t]``; ∞ where the label cannot reach
            the precision.
        """
        check_is_fitted(self)
        number = isinstance(precision, Real) and not isinstance(precision, bool)
        if not number or not 0 < precision <= 1:
            raise InvalidInput(f"precision lies above 0 and at most at 1; found {precision!r}.")
        cuts = to_numpy(self.cut_scores_)
        asked = np.empty((self.n_labels_, 1))
        for ask, kind in zip((asked_of_each, asked_of_later), self._kinds(), strict=False):
            asked[kind.labels] = ask(precision, kind.joint_precision)
        reached = to_numpy(self.cut_precision_) >= asked
        lowest = cuts.shape[1] - 1 - np.argmax(reached[:, ::-1], axis=1)
        found = np.take_along_axis(cuts, lowest[:, None], axis=1)[:, 0]
        return np.where(reached.any(axis=1), found, np.inf)

    def describe(self) -> list[str]:
        """What this calibrator is, in a few sentences."""
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
        """Refuse what no `extend` would have left: a link of later labels in part."""
        missing = [name for name in ("n_first_", *_OF_LATER) if not hasattr(self, name)]
        if missing and any(hasattr(self, name) for name in _OF_LATER):
            raise InvalidInput(f"labels that came later have a link without {missing[0]}")
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


def _stacked(above: np.ndarray, below: np.ndarray, value: float) -> np.ndarray:
    """Two tables, one above the other; the narrower one ends with columns of one value."""
    width = max(above.shape[1], below.shape[1])
    return np.vstack(
        [
            np.pad(table, ((0, 0), (0, width - table.shape[1])), constant_values=value)
            for table in (above, below)
        ]
    )
