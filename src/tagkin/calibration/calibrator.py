"""From scores to calibrated probabilities, so that each image gets as many labels as are sure."""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tagkin.arrays import (
    Array,
    as_block,
    check_integer,
    expit,
    like,
    namespace,
    row_blocks,
    to_numpy,
)
from tagkin.arrays.scores import check_pair, check_scores, read_scores
from tagkin.calibration.pooling import (
    ScoreTable,
    fit_like,
    fit_link,
    fit_sigmoids,
    places_among,
    summarize,
)
from tagkin.errors import InvalidInput
from tagkin.wording import count

__all__ = ["LabelCalibrator"]

# Weight of the calibrated probability, in images, beside the held-out images themselves. On new
# images of Corel5k, votes reached a precision of .76 with 10 where .8 was wanted, and .83 with 30.
_PRIOR_IMAGES = 30

# Precisions that a label may be asked for, and by how much less than wanted at the most. Labels
# that are nearly always right lift the precision of all suggestions together above what is wanted;
# the others' cuts go down for it, but not beyond this. What the held-out images promise must stay
# above what is wanted by a margin, since the cuts were chosen on the same images.
_PRECISIONS = np.linspace(0.0, 1.0, 201)
_LARGEST_DROP, _MARGIN = 0.1, 0.02


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
    cut_scores_, cut_precision_ : arrays of shape (D, G)
        Scores at which a label may be cut, from the highest, and the precision expected of the
        images that score as high or higher.
    joint_precision_ : array of shape (201,)
        Precision expected of all suggestions together where each label is asked for 0, .005, … 1.

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
        scores, log_odds = fit_link(table)
        z = np.interp(table.mean, scores, log_odds)
        slopes, intercepts = fit_sigmoids(z, table).T
        self.n_images_, self.n_labels_ = S.shape
        self.link_scores_, self.link_log_odds_ = scores, log_odds
        self.slopes_, self.intercepts_ = slopes.copy(), intercepts.copy()

        self.cut_scores_ = table.lowest
        self.cut_precision_ = _cut_precision(z, table, slopes, intercepts)
        self.joint_precision_ = _joint_precision(self.cut_precision_, table)
        return self

    def extend(self, n_labels: int, S: Array | None = None, Y: Array | None = None) -> Self:
        """Add labels after those that were fitted: D is `n_labels` from now on.

        Without held-out scores they get the median slope and intercept of the others, and for
        least scores the precision that their probability promises at the cut itself, which is no
        more than that above it.

        Parameters
        ----------
        n_labels : int
        S, Y : arrays of shape (n, new labels), optional
            Scores of the new labels for images that did not count for themselves, and whether the
            images carry the labels. Slopes and intercepts are learned from them, drawn towards
            those of the labels that are known; the link stays.
        """
        check_is_fitted(self)
        n_new = check_integer("n_labels", n_labels) - self.n_labels_
        if n_new < 0:
            raise InvalidInput(f"Found {n_labels} labels where {self.n_labels_} were fitted.")
        slopes, intercepts = to_numpy(self.slopes_), to_numpy(self.intercepts_)
        if n_new and S is not None and Y is not None:
            return self._extend_by(*check_pair(Y, S), n_new)
        slope, intercept = np.median(slopes), np.median(intercepts)
        cuts = to_numpy(self.cut_scores_)
        links = to_numpy(self.link_scores_)
        grid = np.linspace(links[-1], links[0], cuts.shape[1])
        promised = expit(slope * np.interp(grid, links, to_numpy(self.link_log_odds_)) + intercept)
        self.slopes_ = np.append(slopes, np.full(n_new, slope))
        self.intercepts_ = np.append(intercepts, np.full(n_new, intercept))
        self.cut_scores_ = np.vstack([cuts, np.tile(grid, (n_new, 1))])
        self.cut_precision_ = np.vstack(
            [to_numpy(self.cut_precision_), np.tile(promised, (n_new, 1))]
        )
        self.n_labels_ += n_new
        return self

    def spread(self, columns: np.ndarray, n_labels: int) -> Self:
        """Be one of D = `n_labels` labels, of which these columns, ascending, were fitted.

        The others get what `extend` gives to labels without held-out scores.
        """
        self.extend(n_labels)
        places = places_among(columns, n_labels)
        for name in ("slopes_", "intercepts_", "cut_scores_", "cut_precision_"):
            setattr(self, name, to_numpy(getattr(self, name))[places])
        return self

    def _extend_by(self, labels: csr_array, S: Array, n_new: int) -> Self:
        """Add labels by held-out scores S (n×new)."""
        if S.shape[1] != n_new:
            raise InvalidInput(f"Found scores of {S.shape[1]} labels where {n_new} are new.")
        known = np.stack([to_numpy(self.slopes_), to_numpy(self.intercepts_)], axis=1)
        table = summarize(S, labels)
        z = np.interp(table.mean, to_numpy(self.link_scores_), to_numpy(self.link_log_odds_))
        fresh = fit_like(known, z, table)
        cuts, width = to_numpy(self.cut_scores_), to_numpy(self.cut_scores_).shape[1]
        # tables of one width; a cut that no score reaches is never taken
        lowest = _padded(table.lowest, width, -np.inf)
        precision = _padded(_cut_precision(z, table, *fresh.T), width, 0.0)
        self.slopes_, self.intercepts_ = np.concatenate([known, fresh]).T.copy()
        self.cut_scores_ = np.vstack([_padded(cuts, lowest.shape[1], -np.inf), lowest])
        before = _padded(to_numpy(self.cut_precision_), lowest.shape[1], 0.0)
        self.cut_precision_ = np.vstack([before, precision])
        self.n_labels_ += n_new
        return self

    def predict_proba(self, S: Array) -> Array:
        """Probability of every label for every image, (n, D), as an array of S's kind.

        Float32 where S is (or narrower), otherwise float64.
        """
        S = self._check_scores(S)
        xp = namespace(S)
        P = xp.empty(tuple(S.shape), dtype=as_block(S[:1], finite=False).dtype, device=S.device)
        scores, log_odds = to_numpy(self.link_scores_), to_numpy(self.link_log_odds_)
        slopes, intercepts = to_numpy(self.slopes_), to_numpy(self.intercepts_)
        for rows in row_blocks(S.shape[0], 32 * S.shape[1]):
            z = np.interp(read_scores(S, rows, finite=True), scores, log_odds)
            z *= slopes
            z += intercepts
            P[rows] = like(expit(z), P)
        return P

    def log_odds(self, S: Array) -> np.ndarray:
        """Log-odds of every label for every image, (n, D), float32.

        They are those of `predict_proba`, but go on beyond the lowest and the highest of the
        held-out scores' steps, in a straight line, so that only equal scores are tied.
        """
        S = self._check_scores(S)
        scores, log_odds = to_numpy(self.link_scores_), to_numpy(self.link_log_odds_)
        slopes, intercepts = to_numpy(self.slopes_), to_numpy(self.intercepts_)
        width = scores[-1] - scores[0]
        beyond = (log_odds[-1] - log_odds[0]) / width if width > 0 else 0.0
        found = np.empty(tuple(S.shape), dtype=np.float32)
        for rows in row_blocks(S.shape[0], 48 * S.shape[1]):
            s = read_scores(S, rows, finite=True)
            z = np.interp(s, scores, log_odds) + beyond * (s - np.clip(s, scores[0], scores[-1]))
            found[rows] = slopes * z + intercepts
        return found

    def min_scores(self, precision: float) -> np.ndarray:
        """Each label's lowest score from which on its suggestions are right often enough.

        The precision of "score ≥ least score" is estimated on the held-out images and drawn
        towards what their calibrated probabilities promise, (positives + 30 p̄) / (images + 30),
        where p̄ is the mean probability of those images. A label with one positive that happens
        to lead its ranking so gets no low cut by luck.

        The wanted precision is that of all suggestions together. Where some labels are right far
        more often than wanted, the others are asked for less, by .1 at the most, as long as the
        held-out images promise .02 more than is wanted.

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
        if isinstance(precision, bool) or not 0 < precision <= 1:
            raise InvalidInput(f"precision lies above 0 and at most at 1; found {precision!r}.")
        cuts, asked = to_numpy(self.cut_scores_), self._asked_of_each(precision)
        reached = to_numpy(self.cut_precision_) >= asked
        lowest = cuts.shape[1] - 1 - np.argmax(reached[:, ::-1], axis=1)
        found = np.take_along_axis(cuts, lowest[:, None], axis=1)[:, 0]
        return np.where(reached.any(axis=1), found, np.inf)

    def _asked_of_each(self, precision: float) -> float:
        """Precision to ask of each label, so that all suggestions together have the wanted one."""
        if not hasattr(self, "joint_precision_"):
            return precision  # a model of version 0.1
        allowed = (precision >= _PRECISIONS) & (precision - _LARGEST_DROP <= _PRECISIONS)
        enough = to_numpy(self.joint_precision_) >= precision + _MARGIN
        for asked in _PRECISIONS[allowed][::-1]:
            if not enough[np.searchsorted(_PRECISIONS, asked)]:
                break
            precision = float(asked)
        return precision

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

    def _check_scores(self, S: Array) -> Array:
        check_is_fitted(self)
        S = check_scores(S)
        if S.shape[1] != self.n_labels_:
            raise InvalidInput(
                f"S has {S.shape[1]} columns, but scores of {self.n_labels_} labels were fitted. "
                "Pass the same labels in the same order, or fit again."
            )
        return S


def _cut_precision(
    z: np.ndarray, table: ScoreTable, slopes: np.ndarray, intercepts: np.ndarray
) -> np.ndarray:
    """Precision expected of the images that score as high as each group or higher, (D, G)."""
    p = expit(slopes[:, None] * z + intercepts[:, None])
    images, positives, expected = (
        np.cumsum(part, axis=1) for part in (table.count, table.positives, table.count * p)
    )
    prior = _PRIOR_IMAGES * expected / images
    return (positives + prior) / (images + _PRIOR_IMAGES)


def _joint_precision(cut_precision: np.ndarray, table: ScoreTable) -> np.ndarray:
    """Precision expected of all suggestions where each label is asked for each of _PRECISIONS."""
    images = np.cumsum(table.count, axis=1)
    n_right = images * cut_precision
    # the last cut of each label that reaches a precision: cuts sorted by the best from there on
    best_from = np.maximum.accumulate(cut_precision[:, ::-1], axis=1)[:, ::-1]
    given, right = np.zeros(len(_PRECISIONS)), np.zeros(len(_PRECISIONS))
    for best, n, r in zip(best_from, images, n_right, strict=True):
        n_reaching = np.searchsorted(-best, -_PRECISIONS, side="right")
        some = n_reaching > 0
        given[some] += n[n_reaching[some] - 1]
        right[some] += r[n_reaching[some] - 1]
    return np.divide(right, given, out=np.ones_like(right), where=given > 0)


def _padded(table: np.ndarray, width: int, value: float) -> np.ndarray:
    """A table with columns of one value at its end, so that it is `width` wide at least."""
    return np.pad(table, ((0, 0), (0, max(0, width - table.shape[1]))), constant_values=value)
