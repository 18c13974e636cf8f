"""Persons who answer suggestions, round after round.

Each person changes `Answers`: what was accepted, rejected, and accepted in bulk without a look. A
person knows which tags are right. What nobody answered stays open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments.persons import clicked, marked, overlooking

__all__ = ["PERSONS", "Answers", "Person", "list_pages"]

PAGE = 60
SURE = 0.8
OVERLOOKED = 0.05
PLAUSIBLE = 0.5  # confidence of a wrong tag that a hasty person may leave open
LEFT_OPEN = 0.5  # the share that she leaves open


@dataclass
class Answers:
    """All answers about N photographs and D tags; arrays are bool (N, D)."""

    accepted: np.ndarray
    rejected: np.ndarray
    bulk: np.ndarray
    """Tags that were accepted in bulk."""
    n_actions: int = 0

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> Answers:
        """No answers yet."""
        accepted, rejected, bulk = (np.zeros(shape, dtype=bool) for _ in range(3))
        return cls(accepted, rejected, bulk)

    @property
    def present(self) -> np.ndarray:
        """Tags that the photographs got."""
        return self.accepted | self.bulk

    @property
    def is_open(self) -> np.ndarray:
        """Tags that nobody has answered."""
        return ~(self.accepted | self.rejected | self.bulk)


Person = Callable[[Answers, np.ndarray, np.ndarray, int, np.random.Generator], None]
"""A function of the answers so far, the confidences of open suggestions (N×D, 0: not suggested),
the truth (N×D), the amount of work, and a random generator. It adds to the answers."""


def accept_sure(
    answers: Answers, P: np.ndarray, truth: np.ndarray, n: int, rng: np.random.Generator
) -> None:
    """Accept all suggestions with a confidence of 80 % or more, with one command."""
    answers.bulk |= P >= SURE
    answers.n_actions += 1


def answer_pages(
    answers: Answers, P: np.ndarray, truth: np.ndarray, n: int, rng: np.random.Generator
) -> None:
    """Answer a page of 60 for each of the n tags that promise most right suggestions."""
    for tag, rows in list_pages(P, n):
        right = truth[rows, tag]
        answers.accepted[rows, tag], answers.rejected[rows, tag] = right, ~right
        answers.n_actions += marked(right).n_actions


def answer_hastily(
    answers: Answers, P: np.ndarray, truth: np.ndarray, n: int, rng: np.random.Generator
) -> None:
    """Answer the same pages; overlook some wrong tags, and leave some plausible ones open."""
    for tag, rows in list_pages(P, n):
        right = truth[rows, tag]
        said, n_actions = overlooking(right, marked(right), OVERLOOKED, rng)
        plausible = P[rows, tag] >= PLAUSIBLE
        left = ~said & plausible & (rng.random(len(rows)) < LEFT_OPEN)
        answers.accepted[rows, tag], answers.rejected[rows, tag] = said, ~said & ~left
        answers.n_actions += n_actions


def answer_photographs(
    answers: Answers, P: np.ndarray, truth: np.ndarray, n: int, rng: np.random.Generator
) -> None:
    """Answer all suggestions of the next n photographs, in their order."""
    is_new = ~(answers.accepted | answers.rejected).any(axis=1)
    for row in np.flatnonzero(is_new & (P > 0).any(axis=1))[:n]:
        tags = np.flatnonzero(P[row] > 0)
        right = truth[row, tags]
        answers.accepted[row, tags], answers.rejected[row, tags] = right, ~right
        answers.n_actions += clicked(right)


def list_pages(P: np.ndarray, n: int) -> list[tuple[int, np.ndarray]]:
    """Return n tags with the photographs of their page, by the expected number of right tags."""
    pages = []
    for tag in range(P.shape[1]):
        rows = np.argsort(-P[:, tag], kind="stable")[:PAGE]
        rows = rows[P[rows, tag] > 0]
        if len(rows):
            pages.append((-float(P[rows, tag].sum()), tag, rows))
    pages.sort(key=lambda page: page[:2])
    return [(tag, rows) for _, tag, rows in pages[:n]]


PERSONS: dict[str, Person] = {
    "bulk": accept_sure,
    "pages": answer_pages,
    "photographs": answer_photographs,
    "hasty": answer_hastily,
}
