"""Choose the next question for a reviewer: a page of images of one label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tagkin.errors import InvalidInput

__all__ = ["PAGE", "STRATEGIES", "Page", "best_page", "expect_right", "expected_actions"]

PAGE = 60  # images on a screen
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


def expected_actions(p: np.ndarray) -> np.ndarray:
    """Return the expected actions for pages of the first 1, 2, …, n images, shape (n,).

    Images with a probability below one half are marked as wrong when the page opens. The reviewer
    corrects wrong marks, one click each, and one key ends the page:

        E[actions] = 1 + Σ min(p, 1 − p).

    Parameters
    ----------
    p : array of shape (n,)
        Probabilities, descending.
    """
    return np.asarray(1 + np.cumsum(np.minimum(p, 1 - p)))


def best_page(p: np.ndarray, strategy: str = "most-right", n_decided: int = 0) -> Page | None:
    """Return the best page of one label; None without images.

    "most-right" shows the first 10, 20, … or 60 images, by the largest R^1.25 / E[actions]; see
    `expected_actions`. "learn-most" shows the 20 images with the largest variance p (1 − p). Its
    value is Σ p (1 − p) over all undecided images, times the share of the page's images among
    these and the decided images.

    Parameters
    ----------
    p : array of shape (n,)
        Probabilities of the undecided images, descending.
    strategy : "most-right" or "learn-most"
        Ask for the most right labels per action, or for the images that teach most: uncertain
        images of labels with many undecided and few decided images.
    n_decided : int, default 0
        Number of decided images of this label.
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
    values = right[sizes] ** _LARGE / actions[sizes]
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
