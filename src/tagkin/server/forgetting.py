"""How often a person forgets tags, learned at once from answers on tagged photographs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from tagkin.catalogue import Catalogue
from tagkin.server.asking import Answers

__all__ = ["Forgetting", "ForgottenTags"]


@dataclass(frozen=True)
class Numbers:
    """Numbers of the correction."""

    spread: float = 3.0
    """Standard deviation of μ before any answer. Some people forget nothing, others most tags, so a
    page of 20 answers must tell."""
    spread_of_tag: float = 1.0
    """Standard deviation of dₜ."""
    least: float = 0.05
    """Least corrected confidence that is asked, as of a new suggestion in a review."""
    steps: int = 30
    farthest: float = 2.0
    """Most that μ moves in a step."""


NUMBERS = Numbers()


@dataclass(frozen=True)
class Forgetting:
    """A correction of confidences on tagged photographs, learned from the answers on these.

    A tag of confidence p that a person did not give is right with probability

        p' = σ(logit p + μ + dₜ),

    where dₜ is the tag's own. Both are the most likely ones, given their spreads.
    """

    common: float = 0.0
    """μ."""
    own: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    """dₜ of the tags with answers."""

    @classmethod
    def learn(cls, tags: np.ndarray, confidences: np.ndarray, accepted: np.ndarray) -> Forgetting:
        """Learn from n answers: their tags (n,), confidences (n,), and whether it was yes (n,)."""
        if not len(tags):
            return cls()
        numbers, label = np.unique(tags, return_inverse=True)
        z = _log_odds(confidences)
        mean, d = 0.0, np.zeros(len(numbers))
        least, least_of_tag = NUMBERS.spread**-2, NUMBERS.spread_of_tag**-2
        for _ in range(NUMBERS.steps):  # Newton's method
            r = _probability(z + mean + d[label])
            slopes = np.bincount(label, r - accepted, len(d))
            bends = np.bincount(label, r * (1 - r), len(d))
            of_tag = slopes + least_of_tag * d
            inverse = 1 / (bends + least_of_tag)
            slope = slopes.sum() + least * mean - (bends * inverse * of_tag).sum()
            step = slope / (least + (bends * (1 - bends * inverse)).sum())
            step = float(np.clip(step, -NUMBERS.farthest, NUMBERS.farthest))
            mean, d = mean - step, d - inverse * (of_tag - bends * step)
        return cls(mean, dict(zip(numbers.tolist(), d.tolist(), strict=True)))

    def correct(self, tag: int, confidences: np.ndarray) -> np.ndarray:
        """Return corrected confidences (n,) of a tag on tagged photographs."""
        if not self.own:
            return confidences
        shift = self.common + self.own.get(tag, 0.0)
        return _probability(_log_odds(confidences) + shift)

    def is_asked(self, confidences: np.ndarray, is_tagged: np.ndarray) -> np.ndarray:
        """Return which suggestions (n,) are worth a question, given the corrected confidences.

        On tagged photographs, unlikely ones are not, once answers told so.
        """
        if not self.own:
            return np.ones(len(confidences), bool)
        return np.asarray(~is_tagged | (confidences >= NUMBERS.least))


def _log_odds(confidences: np.ndarray) -> np.ndarray:
    least = np.finfo(np.float32).eps
    p = np.clip(confidences, least, 1 - least)
    return np.asarray(np.log(p) - np.log1p(-p))


def _probability(log_odds: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-log_odds)))


class ForgottenTags:
    """The photographs of a catalogue that a person tagged, and the answers on these.

    Any thread may call any method.
    """

    def __init__(self) -> None:
        self._tagged: np.ndarray | None = None

    def renew(self) -> None:
        """Read again which photographs are tagged."""
        self._tagged = None

    def is_tagged(self, catalogue: Catalogue, contents: np.ndarray) -> np.ndarray:
        """Return which contents (n,) count as complete by the tags in their files."""
        tagged = self._tagged
        if tagged is None:
            self._tagged = tagged = np.array(catalogue.completeness.tagged_in_files(), np.int64)
        return np.isin(contents, tagged)

    def split(self, catalogue: Catalogue, answers: Answers) -> tuple[Answers, Answers]:
        """Return the answers on tagged photographs, and the others."""
        is_tagged = self.is_tagged(catalogue, answers.contents)
        return answers.take(is_tagged), answers.take(~is_tagged)
