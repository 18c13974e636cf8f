"""Answers to the photographs of a moment, which say something of the others taken then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from tagkin.catalogue import Catalogue
from tagkin.catalogue.moment_index import MomentIndex

__all__ = ["AnswersInTime", "NearAnswers", "TaggedTimes"]


@dataclass(frozen=True)
class NearAnswerNumbers:
    """Numbers of the correction."""

    reach: float = 24 * 3600.0
    """Seconds from a photograph to answers that count."""
    half: float = 1800.0
    """Seconds after which an answer weighs half."""
    near: float = 2 * 3600.0
    """Seconds between photographs of which one should have the tags of the other."""
    least_strength: float = 0.3
    most_strength: float = 30.0
    most_answers: int = 50
    """Answers before a photograph that count, and after it: the nearest."""


NEAR_ANSWERS = NearAnswerNumbers()


class AnswersInTime(NamedTuple):
    """The answers to a tag of n photographs with known times."""

    times: np.ndarray
    """Seconds, ascending, shape (n,)."""
    accepted: np.ndarray
    """1 or 0, shape (n,)."""
    strength: float
    """κ, the answers that a confidence counts for; see `TaggedTimes.strength`."""

    @classmethod
    def of(cls, times: np.ndarray, accepted: np.ndarray, strength: float) -> Self:
        """Return answers in the order of their times (n,); those without a time do not count."""
        order = np.argsort(times)[: np.count_nonzero(~np.isnan(times))]
        return cls(times[order], accepted[order], strength)

    def correct(self, times: np.ndarray, confidences: np.ndarray) -> np.ndarray:
        """Return corrected confidences (n,) of photographs taken at `times` (n,), NaN if unknown.

        The answers y_j, Δt_ij from photograph i, pull its confidence P_i:

            P'_i = (Σ_j w_ij y_j + κ P_i) / (Σ_j w_ij + κ),  w_ij = 1 / (1 + |Δt_ij| / ½ h).

        Confidences of photographs without answers within a day stay.
        """
        at = np.searchsorted(self.times, times)
        first = np.searchsorted(self.times, times - NEAR_ANSWERS.reach)
        end = np.searchsorted(self.times, times + NEAR_ANSWERS.reach, side="right")
        first = np.maximum(first, at - NEAR_ANSWERS.most_answers)
        lengths = np.minimum(end, at + NEAR_ANSWERS.most_answers) - first
        lengths[np.isnan(times)] = 0
        rows = np.repeat(np.arange(len(times)), lengths)
        columns = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths - first, lengths)
        apart = np.abs(self.times[columns] - times[rows])
        weights = 1 / (1 + apart / NEAR_ANSWERS.half)
        total = np.bincount(rows, weights, len(times))
        right = np.bincount(rows, weights * self.accepted[columns], len(times))
        return np.asarray(confidences + (right - total * confidences) / (total + self.strength))


class TaggedTimes(NamedTuple):
    """When the tagged photographs were taken."""

    order: np.ndarray
    """Those with a known time, earliest first, shape (n,)."""
    first: np.ndarray
    """The position of the first that is near each one, shape (n,)."""
    end: np.ndarray
    """The position after the last one, shape (n,)."""

    @classmethod
    def of(cls, times: np.ndarray) -> Self:
        """Find the photographs within two hours of each other; times (N,) are in seconds."""
        order = np.argsort(times)[: np.count_nonzero(~np.isnan(times))]
        sorted_times = times[order]
        first = np.searchsorted(sorted_times, sorted_times - NEAR_ANSWERS.near)
        end = np.searchsorted(sorted_times, sorted_times + NEAR_ANSWERS.near, side="right")
        return cls(order, first, end)

    def strength(self, has: np.ndarray) -> float:
        """Return κ of a tag, given which photographs (N,) have it.

        κ = (1 − q) / q, from .3 to 30: q is the share of the photographs within two hours of
        another one with the tag that have it, too, (1 + n_with) / (2 + n). So what all photographs
        of an afternoon show moves at once, and a fish of one photograph hardly moves the next.
        """
        has = has[self.order]
        counts = np.append(0, np.cumsum(has))
        is_near = counts[self.end] - counts[self.first] - has > 0
        share = (1 + np.count_nonzero(is_near & has)) / (2 + np.count_nonzero(is_near))
        strength = (1 - share) / share
        return float(np.clip(strength, NEAR_ANSWERS.least_strength, NEAR_ANSWERS.most_strength))


class NearAnswers:
    """The answers since the last training by tag, with the times of their photographs.

    Any thread may call any method.
    """

    def __init__(self, moments: Callable[[Catalogue], MomentIndex]):
        self._moments = moments
        self._tagged: tuple[np.ndarray, TaggedTimes] | None = None
        self._strengths: dict[int, float] = {}

    def renew(self) -> None:
        """Forget how strong answers are, because the known tags changed."""
        self._tagged, self._strengths = None, {}

    def times(self, catalogue: Catalogue, contents: np.ndarray) -> np.ndarray:
        """Return when photographs were taken, in seconds, shape (n,); NaN if unknown."""
        return self._moments(catalogue).of(contents).times

    def read(self, catalogue: Catalogue) -> dict[int, AnswersInTime]:
        """Return the answers of each tag that has some at known times."""
        found = {}
        for tag, answers in catalogue.suggestions.answers_since_training().items():
            contents, accepted = np.array(answers).T
            times = self.times(catalogue, contents)
            if not np.isnan(times).all():
                strength = self._strength(catalogue, tag, contents)
                found[tag] = AnswersInTime.of(times, accepted, strength)
        return found

    def _strength(self, catalogue: Catalogue, tag: int, answered: np.ndarray) -> float:
        """Return κ of a tag, from the photographs that had it before these answers."""
        strengths, tagged = self._strengths, self._tagged
        if tag not in strengths:
            if tagged is None:
                contents = np.array(catalogue.photographs.tagged(), np.int64)
                tagged = contents, TaggedTimes.of(self.times(catalogue, contents))
                self._tagged = tagged
            known = np.setdiff1d(catalogue.photographs.with_tag(tag), answered)
            strengths[tag] = tagged[1].strength(np.isin(tagged[0], known))
        return strengths[tag]
