"""Persons who review pages of suggestions: what they do, and how many actions it takes.

An action is a key or a click. A page ends with one key. Before it, exceptions are marked: one click
each, or two for a run of photographs (a click at its start, a shift-click at its end), inside of
which single ones can be clicked back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Marked", "clicked", "keys_to_type", "marked", "overlooking"]

RUN = 2


class Marked(NamedTuple):
    """How a page was answered."""

    n_actions: int
    singly: np.ndarray
    """Which photographs the person had to find and click one by one, bool (n,)."""


def clicked(truth: np.ndarray) -> int:
    """Actions where every exception is a click: accept all but the wrong ones, or the reverse."""
    n_right = int(np.count_nonzero(truth))
    return 1 + min(n_right, len(truth) - n_right)


def marked(truth: np.ndarray) -> Marked:
    """The fewest actions with runs: the cheapest path through two states, marked and unmarked.

    Parameters
    ----------
    truth : bool array of shape (n,)
        Which photographs of the page show the tag, in the order in which they are shown.
    """
    return min((_with_default(truth, default) for default in (True, False)), key=lambda m: m[0])


def _with_default(truth: np.ndarray, default: bool) -> Marked:
    """Where what is unmarked is accepted (True) or rejected (False)."""
    wrong = np.stack([truth != default, truth == default]).astype(int)  # unmarked, marked
    costs = np.array([0, RUN])
    came_from = np.zeros((2, len(truth)), dtype=int)
    for i in range(len(truth)):
        into = np.array([[costs[0], costs[1]], [costs[0] + RUN, costs[1]]]) if i else None
        if into is not None:
            came_from[:, i] = into.argmin(axis=1)
            costs = into.min(axis=1)
        costs = costs + wrong[:, i]
    state, singly = int(costs.argmin()), np.zeros(len(truth), dtype=bool)
    total = int(costs.min())
    for i in range(len(truth) - 1, -1, -1):
        singly[i] = wrong[state, i]
        state = int(came_from[state, i])
    return Marked(1 + total, singly)


def overlooking(
    truth: np.ndarray, answer: Marked, share: float, rng: np.random.Generator
) -> tuple[np.ndarray, int]:
    """What a person accepts who overlooks a share of the wrong ones, and her actions.

    Wrong photographs that would have been clicked one by one are accepted where they are
    overlooked; those in a run that is marked as a whole are not looked for.
    """
    missed = answer.singly & ~truth & (rng.random(len(truth)) < share)
    return truth | missed, answer.n_actions - int(np.count_nonzero(missed))


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
