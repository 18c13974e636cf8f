"""Tags that no photograph carries yet, suggested by their names alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tagkin.annotator.naming import confidences_by_name
from tagkin.annotator.photograph_features import PhotographFeatures
from tagkin.annotator.photographs import Photographs, tags_now
from tagkin.annotator.suggesting import Rule
from tagkin.annotator.suggestions import PhotoSuggestions, TagSuggestion
from tagkin.errors import InvalidInput, MissingExtra
from tagkin.features import Extraction
from tagkin.progress import Progress
from tagkin.tag_meanings import NamePrior

__all__ = ["UnseenTags", "Wanted"]


class Wanted(NamedTuple):
    """Which suggestions a person asked for, as `Annotator.suggest` explains it."""

    n: int | None = None
    threshold: float | None = None
    precision: float | None = None

    def rule(self) -> Rule:
        """For tags that have a confidence and no score: of those with .8, 80 % are right."""
        if self.precision is not None:
            return Rule(self.n, max(self.precision, self.threshold or 0.0))
        if self.threshold is None:
            return Rule(self.n, 0.5 if self.n is None else 0.0)
        return Rule(self.n, self.threshold)


class UnseenTags(PhotographFeatures):
    """The part of an `Annotator` that knows tags by their names."""

    names: bool
    estimator_: Any
    vocabulary_: Any

    def suggest_by_name(
        self,
        photographs: Photographs,
        vocabulary: Sequence[str],
        *,
        n: int | None = None,
        threshold: float | None = None,
        precision: float | None = None,
        progress: Progress | None = None,
    ) -> list[PhotoSuggestions]:
        """Tags of a vocabulary for photographs, from the names alone; nothing need be learned.

        Parameters
        ----------
        vocabulary : sequence of str
            The tags that may be suggested; `tagkin.tag_meanings.common_tags` has some.
        photographs, n, threshold, precision : as in `suggest`

        Returns
        -------
        suggestions : one `PhotoSuggestions` for each photograph that could be read
            They have no kin and a `name_share` of 1. What their confidence rests on is said at
            `tagkin.tag_meanings.ClassPrior`.
        """
        wanted = Wanted(n, threshold, precision)
        wanted.rule()  # refused before looking, not after
        words = checked_vocabulary(vocabulary)
        self._prior_or_refuse()
        carried = tags_now(photographs, "given")
        seen = self._readable(photographs, progress)
        empty = [PhotoSuggestions(file, (), tuple(carried(file, ()))) for file in seen.files]
        return self._with_words(empty, seen, words, wanted)

    def unknown_words(self, vocabulary: Sequence[str]) -> list[str]:
        """Those of some words that have no meaning here, and so cannot be suggested by name."""
        words = checked_vocabulary(vocabulary)
        kinds = self._prior_or_refuse().meanings(words).kinds
        return [word for word, kind in zip(words, kinds, strict=True) if not kind]

    def confidences(self, features: np.ndarray) -> np.ndarray:
        """Return the confidence of every tag (photographs × `vocabulary_.names_`).

        `features` are those that `look` returns.
        """
        self._check_backbone()
        P: np.ndarray = self.estimator_.predict_proba(features)
        return P

    def _unseen(self, vocabulary: Sequence[str] | None) -> list[str]:
        """Those of some words that are no tags of this annotator yet."""
        words = [] if vocabulary is None else checked_vocabulary(vocabulary)
        known = self.vocabulary_.transform([[word] for word in words]).sum(axis=1) if words else ()
        return [word for word, there in zip(words, known, strict=True) if not there]

    def _with_words(
        self,
        suggested: list[PhotoSuggestions],
        seen: Extraction,
        words: Sequence[str],
        wanted: Wanted,
    ) -> list[PhotoSuggestions]:
        """The suggestions for photographs, with further words where their names say so."""
        if not words:
            return suggested
        rule = wanted.rule()
        P = confidences_by_name(self._prior_or_refuse(), seen.features, words)
        result = []
        for one, row in zip(suggested, P, strict=True):
            own = {tag.casefold() for tag in one.tags}
            free = np.array([word.casefold() not in own for word in words]) & (row > 0)
            picked = rule.picked(row[None], row[None], free[None])[0]
            added = [TagSuggestion(words[t], float(row[t]), (), 1.0) for t in picked]
            both = sorted([*one.suggestions, *added], key=lambda s: -s.confidence)
            result.append(PhotoSuggestions(one.file, tuple(both[: wanted.n]), one.tags))
        return result

    def _usable_prior(self, features: np.ndarray) -> tuple[NamePrior | None, str]:
        """What makes names count beside such features; or None, and why they do not."""
        if not self.names:
            return None, "They were not asked for (names=False)."
        if features.shape[1] != self._backbone().dimension:
            return None, f"These are not the features of {self.backbone}."
        try:
            prior = self._prior_or_refuse()
            prior.meanings(())
        except (InvalidInput, MissingExtra) as error:
            return None, str(error)
        return prior, ""

    def _check_backbone(self) -> None:
        """Refuse another backbone than that of the model, and give the model its prior."""
        super()._check_backbone()
        if self.estimator_.names_ is not None:
            self.estimator_.prior = self._prior()  # a model is stored without it

    def _prior_or_refuse(self) -> NamePrior:
        prior = self._prior()
        if prior is None:
            raise InvalidInput(
                f"The backbone {self.backbone} knows no names: it tells no classes apart, and no "
                "text encoder was named in its .json file."
            )
        return prior


def checked_vocabulary(vocabulary: Sequence[str]) -> list[str]:
    """Words to suggest, each once and without blanks around it."""
    if isinstance(vocabulary, str):
        raise InvalidInput(f"vocabulary is a list of tags; found the text {vocabulary!r}.")
    words = dict.fromkeys(word.strip() for word in vocabulary)
    words.pop("", None)
    if not words:
        raise InvalidInput("The vocabulary is empty. Name a tag at least.")
    return list(words)
