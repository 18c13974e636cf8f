"""Confidences that follow answers: what all corrections of the page make of a model's."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Self

import numpy as np

from tagkin.server.asking import AnswerCurve, Answers, list_bands
from tagkin.server.forgetting import Forgetting
from tagkin.server.near_answers import AnswersInTime

__all__ = ["AskedSuggestions", "Corrections"]


class AskedSuggestions(NamedTuple):
    """Suggestions of a tag for n photographs."""

    confidences: np.ndarray
    """Of the model, shape (n,)."""
    is_tagged: np.ndarray
    """Whether a person tagged the photograph, shape (n,)."""
    times: np.ndarray | None = None
    """Seconds, NaN if unknown, shape (n,); needed with answers about moments."""


class Corrections(NamedTuple):
    """What answers correct, by tag.

    On photographs that a person tagged, answers on such photographs count instead of curves: a no
    there says that the person forgets little, not that the model is wrong.
    """

    start: AnswerCurve = AnswerCurve()
    """Of tags without answers."""
    of_tag: Mapping[int, AnswerCurve] = MappingProxyType({})
    forgetting: Forgetting = Forgetting()

    @classmethod
    def learn(cls, last: Answers, others: Answers, on_tagged: Answers) -> Self:
        """Learn from the last answers to any model, and from those to this one.

        Only the answers `on_tagged` are on photographs that a person tagged.
        """
        start = AnswerCurve.start(list_bands(last.confidences, last.accepted))
        of_tag = {}
        for tag in np.unique(others.tags).tolist():
            own = others.take(others.tags == tag)
            of_tag[tag] = start.add(list_bands(own.confidences, own.accepted))
        forgetting = Forgetting.learn(on_tagged.tags, on_tagged.confidences, on_tagged.accepted)
        return cls(start, of_tag, forgetting)

    @property
    def answered(self) -> set[int]:
        """The tags with answers."""
        return self.of_tag.keys() | self.forgetting.own.keys()

    def correct(
        self, tag: int, asked: AskedSuggestions, answers: AnswersInTime | None = None
    ) -> np.ndarray:
        """Return corrected confidences (n,) of a tag; `answers` are those about moments."""
        confidences, is_tagged, times = asked
        curve = self.of_tag.get(tag, self.start)
        corrected = np.where(is_tagged, confidences, curve.correct(confidences))
        if answers is not None and times is not None:
            corrected = answers.correct(times, corrected)
        return np.where(is_tagged, self.forgetting.correct(tag, corrected), corrected)
