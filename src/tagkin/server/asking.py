"""Confidences that follow a reviewer's answers, and the next question: images of one label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from tagkin.errors import InvalidInput

__all__ = [
    "N_BANDS",
    "N_CANDIDATES",
    "PAGE",
    "STRATEGIES",
    "AnswerCurve",
    "Answers",
    "Page",
    "best_page",
    "expect_right",
    "expected_actions",
    "list_bands",
    "page_value",
]

N_CANDIDATES = 40  # labels with most right suggestions, from which a question is chosen
PAGE = 60
"""Images on a page, if a person chose no other number."""
STRATEGIES = ("most-right", "learn-most")
_STEP = 10  # images in a row of the grid; a page has whole rows
_LARGE = 1.25  # power of the number of right images, which prefers larger pages
_UNSURE = 20  # images on a page of the strategy "learn-most"


class Page(NamedTuple):
    """A page of images for one label."""

    shown: np.ndarray
    """Positions of the label's images on the page, most confident first."""
    expected_right: float
    expected_actions: float
    value: float
    """Value to compare pages of different labels; the largest is asked first."""

    @property
    def pays(self) -> bool:
        """Whether it brings more right labels than it takes actions."""
        return self.expected_right > self.expected_actions


def expected_actions(p: np.ndarray) -> np.ndarray:
    """Return the expected actions for pages of the first 1, 2, …, n images, shape (n,).

    Images with a probability of at least one half are accepted unless the reviewer clicks them;
    the others are not, unless the reviewer clicks them. One key ends the page:

        E[actions] = 1 + Σ min(p, 1 − p).

    The probabilities p (n,) are descending.
    """
    return np.asarray(1 + np.cumsum(np.minimum(p, 1 - p)))


def page_value(right: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Return what pages are worth, R^1.25 / E: those with more right labels per action pay more."""
    return np.asarray(right**_LARGE / actions)


def best_page(p: np.ndarray, strategy: str = "most-right", n_decided: int = 0) -> Page | None:
    """Return the best page of one label; None without images.

    The probabilities p (n,) of its undecided images are descending; `n_decided` is the number of
    the others. "most-right" asks for the most right labels per action: it shows the first 10, 20, …
    or 60 images, by the largest R^1.25 / E[actions]; see `expected_actions`. "learn-most" asks for
    the images that teach most: it shows the 20 images with the largest variance p (1 − p). Its
    value is Σ p (1 − p) over all undecided images, times the share of the page's images among
    these and the decided images.
    """
    if strategy not in STRATEGIES:
        raise InvalidInput(f"strategy must be one of {', '.join(STRATEGIES)}; found {strategy!r}.")
    if not len(p):
        return None
    if strategy == "learn-most":
        spread = p * (1 - p)
        shown = np.sort(np.argsort(-spread, kind="stable")[:_UNSURE])
        value = float(spread.sum() * len(shown) / (n_decided + len(shown)))
        return Page(shown, float(p[shown].sum()), float(expected_actions(p[shown])[-1]), value)
    top = p[:PAGE]
    right, actions = np.cumsum(top), expected_actions(top)
    sizes = np.unique(np.append(np.arange(_STEP, len(top) + 1, _STEP), len(top))) - 1
    values = page_value(right[sizes], actions[sizes])
    best = sizes[int(np.argmax(values))]
    return Page(np.arange(best + 1), float(right[best]), float(actions[best]), float(values.max()))


def expect_right(confidences: Sequence[np.ndarray], n: int) -> float:
    """Return how many of the next n answers are likely right, on the best pages of all labels.

    `confidences` has the probabilities of each label's undecided images, descending.
    """
    pages = []
    for p in confidences:
        start = 0
        while (page := best_page(p[start:])) is not None:
            pages.append((page.value, len(page.shown), page.expected_right))
            start += len(page.shown)
    right = 0.0
    for _, n_shown, expected in sorted(pages, reverse=True):
        if n <= 0:
            break
        right += expected * min(1.0, n / n_shown)
        n -= n_shown
    return right


class Answers(NamedTuple):
    """n answers to suggestions, last ones first."""

    tags: np.ndarray
    contents: np.ndarray
    confidences: np.ndarray
    """Of the suggestions, shape (n,)."""
    accepted: np.ndarray
    """1 for accepted tags, 0 for rejected ones, shape (n,)."""

    def take(self, is_taken: np.ndarray) -> Answers:
        """Return some of the answers."""
        return Answers(*(values[is_taken] for values in self))


# --- confidences that follow answers --------------------------------------------------------------

N_BANDS = 10


@dataclass(frozen=True)
class Answering:
    """Numbers of the correction. Others (3 to 20, .3 to .8) changed log loss by less than .001."""

    strength: float = 5.0
    """Answers that a confidence counts for."""
    common_strength: float = 50.0
    """The same for the answers to all labels together. On six evenings (photos, Flickr8k), 5 and 20
    changed log loss by less than .001; without the answers to other labels it was .003 higher."""
    reach: float = 0.5
    """Weight of an answer for the next band."""


ANSWERING = Answering()
_CENTERS = (np.arange(N_BANDS) + 0.5) / N_BANDS
_WEIGHTS = ANSWERING.reach ** np.abs(np.subtract.outer(np.arange(N_BANDS), np.arange(N_BANDS)))


@dataclass(frozen=True)
class AnswerCurve:
    """A correction of one label's confidences, learned from its answers in bands of confidence.

    The confidence p at the center of a band has a Beta prior of strength s and mean p + c. An
    answer y (1 or 0) to a suggestion of confidence q counts as y − q + p here, with the weight
    w = 2^−k, k bands away. The corrected confidence is the mean of the posterior,

        p' = (s (p + c) + Σ w (y − q + p)) / (s + Σ w) = p + (s c + Σ w (y − q)) / (s + Σ w).

    c is the same correction, learned from the answers to all labels (`start`): the questions with
    the largest confidences come first, and these are too large more often than too small.

    A band gets at most the confidence of the band above it, so the order stays that of the model.
    Between centers, the correction is interpolated.
    """

    n_answers: np.ndarray = field(default_factory=lambda: np.zeros(N_BANDS))
    """Answers in each band, shape (10,)."""
    surplus: np.ndarray = field(default_factory=lambda: np.zeros(N_BANDS))
    """Σ (y − q) of the answers in each band, shape (10,)."""
    common: np.ndarray = field(default_factory=lambda: np.zeros(N_BANDS))
    """c, shape (10,)."""

    @classmethod
    def start(cls, bands: Iterable[tuple[int, float, float]]) -> AnswerCurve:
        """Return the curve of a label without answers, from the bands of all labels; see `add`."""
        every = cls().add(bands)
        return cls(common=every._mean_surplus(ANSWERING.common_strength))

    def add(self, bands: Iterable[tuple[int, float, float]]) -> AnswerCurve:
        """Return a curve with more bands, each with its number, its answers and their surplus."""
        n_answers, surpluses = self.n_answers.copy(), self.surplus.copy()
        for band, n, surplus in bands:
            n_answers[band] += n
            surpluses[band] += surplus
        return replace(self, n_answers=n_answers, surplus=surpluses)

    def correct(self, confidences: np.ndarray) -> np.ndarray:
        """Return corrected confidences (n,)."""
        shifts = self._mean_surplus(ANSWERING.strength)
        values = np.minimum.accumulate((_CENTERS + shifts)[::-1])[::-1]
        corrected = confidences + np.interp(confidences, _CENTERS, values - _CENTERS)
        return np.asarray(np.clip(corrected, 0, 1))

    def _mean_surplus(self, strength: float) -> np.ndarray:
        """Return (s c + Σ w (y − q)) / (s + Σ w) for each band, shape (10,)."""
        total = strength * self.common + _WEIGHTS @ self.surplus
        return np.asarray(total / (strength + _WEIGHTS @ self.n_answers))


def list_bands(confidences: np.ndarray, accepted: np.ndarray) -> list[tuple[int, float, float]]:
    """Return the bands of answers: confidences (n,), and whether each was accepted (n,)."""
    bands = np.minimum((N_BANDS * confidences).astype(int), N_BANDS - 1)
    n_answers = np.bincount(bands, minlength=N_BANDS).tolist()
    surplus = np.bincount(bands, accepted - confidences, minlength=N_BANDS).tolist()
    return list(zip(range(N_BANDS), n_answers, surplus, strict=True))
