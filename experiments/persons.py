"""Persons who review pages of suggestions: what they do, and how many actions it takes.

An action is a key or a click. A page ends with one key. Before it, wrong marks are corrected: one
click each, or two for a run of photographs (a click at its start, a shift-click at its end), inside
of which single ones can be clicked back.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["clicked", "keys_to_type", "marked"]

RUN = 2


def clicked(truth: np.ndarray) -> int:
    """Actions where every exception is a click: accept all but the wrong ones, or the reverse."""
    n_right = int(np.count_nonzero(truth))
    return 1 + min(n_right, len(truth) - n_right)


def marked(truth: np.ndarray, guess: np.ndarray) -> int:
    """The fewest actions with runs: the cheapest path through runs with either mark, and none.

    Parameters
    ----------
    truth : bool array of shape (n,)
        Which photographs of the page show the tag, in the order in which they are shown.
    guess : bool array of shape (n,)
        Which of them are not marked as wrong when the page opens.
    """
    costs = np.array([0, RUN, RUN])  # as the page has it, in a run of right, of wrong ones
    for is_right, is_guessed in zip(truth.tolist(), guess.tolist(), strict=True):
        costs = np.minimum(costs, costs.min() + np.array([0, RUN, RUN]))
        costs += [is_right != is_guessed, not is_right, is_right]
    return 1 + int(costs.min())


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
