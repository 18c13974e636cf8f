"""Persons who review pages of suggestions: what they do, and how many actions it takes.

An action is a key or a click. A page ends with one key, which decides on all photographs. Before
it, the person marks the wrong ones above the line and the right ones below it: one click each, two
for a range of photographs (a click at its start, a shift-click at its end), or one on the heading
of an event, which marks all of its photographs on that side of the line. A click on a marked
photograph unmarks it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["clicked", "keys_to_type", "laid_out", "marked"]

RANGE = 2


def clicked(truth: np.ndarray) -> int:
    """Actions where every exception is a click: accept all but the wrong ones, or the reverse."""
    n_right = int(np.count_nonzero(truth))
    return 1 + min(n_right, len(truth) - n_right)


def laid_out(
    is_likely: np.ndarray, events: np.ndarray, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of the tiles of a page, shape (n,), and the heading above each one, (n,).

    Likely ones come first. On each side of the line, they are by event and by time.

    Parameters
    ----------
    is_likely : bool array of shape (n,)
    events : int array of shape (n,)
        In the order of time.
    times : array of shape (n,)
    """
    order = np.lexsort((times, events, ~is_likely))
    changes = np.diff(events[order]) != 0
    return order, np.cumsum(np.append(0, changes | (np.diff(is_likely[order]) != 0)))


def marked(wanted: np.ndarray, headings: np.ndarray | None = None) -> int:
    """Return the fewest actions for a page: the cheapest path through ranges, headings and none.

    Parameters
    ----------
    wanted : bool array of shape (n,)
        Which tiles are to be marked, in the order in which they are shown.
    headings : int array of shape (n,), optional
        The heading above each of them. Default: headings are not clicked.
    """
    groups = [wanted] if headings is None else _split(wanted, headings)
    single, within = 0.0, np.inf  # the fewest actions, if no range is open or one is
    for group in groups:
        at_heading = min(single, within) + 1 + np.count_nonzero(~group)
        for is_wanted in group.tolist():
            single, within = (
                min(single, within) + is_wanted,
                min(single + RANGE, within) + (not is_wanted),
            )
        if headings is not None:
            single = min(single, at_heading)
    return 1 + int(min(single, within))


def _split(values: np.ndarray, headings: np.ndarray) -> list[np.ndarray]:
    return np.split(values, np.flatnonzero(np.diff(headings)) + 1)


def keys_to_type(names: Sequence[str]) -> np.ndarray:
    """Keys for each tag where a name is completed as soon as no other begins so, and Enter."""
    keys = []
    for name in names:
        others = [other for other in names if other != name]
        n = 1
        while n < len(name) and any(other.startswith(name[:n]) for other in others):
            n += 1
        keys.append(n + 1)
    return np.array(keys)
