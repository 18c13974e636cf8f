"""Which question to ask next: a page of one label's images, by what it is worth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tagkin.errors import InvalidInput

__all__ = ["PAGE", "STRATEGIES", "Page", "best_page", "expected_actions"]

PAGE = 60  # images that a screen shows at once
STRATEGIES = ("most-right", "learn-most")
_STEP = 10  # a page is cut at a whole row of the grid
_RANGE = 2  # actions that mark a run of images: a click at its start, a shift-click at its end
_LARGE = 1.25  # power of the number of right ones: of pages that pay alike, the larger one
_UNSURE = 20  # images of a page that is asked to learn from


class Page(NamedTuple):
    """A page of images for one label."""

    shown: np.ndarray
    """Which of the label's images, by position, the surest first."""
    expected_right: float
    expected_actions: float
    value: float
    """By which pages of different labels are compared: the largest is asked first."""


def expected_actions(p: np.ndarray) -> np.ndarray:
    """Actions that pages of the first 1, 2, …, n images are likely to take, shape (n,).

    One key ends a page. Before it, the exceptions are clicked: the wrong ones where the rest is
    accepted, the right ones where it is rejected; or the images from one on are marked as wrong
    together, and exceptions on both sides.

    Parameters
    ----------
    p : array of shape (n,)
        Probabilities, descending.
    """
    n = np.arange(1, len(p) + 1)
    right = np.cumsum(p)
    marked = _RANGE + np.cumsum(np.minimum(p, 1 - p))
    return np.asarray(1 + np.minimum(np.minimum(right, n - right), marked))


def best_page(p: np.ndarray, strategy: str = "most-right", n_decided: int = 0) -> Page | None:
    """The page to ask of one label; None where there is nothing to ask.

    Parameters
    ----------
    p : array of shape (n,)
        Probabilities of the undecided images, descending.
    strategy : "most-right" or "learn-most"
        The most right labels per action; or the images that say most of the others: unsure ones,
        of labels for which much is open and little decided.
    n_decided : int, default 0
        How many images were decided on for this label.
    """
    if strategy not in STRATEGIES:
        raise InvalidInput(f"strategy is one of {', '.join(STRATEGIES)}; found {strategy!r}.")
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
