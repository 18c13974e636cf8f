"""The order of suggestions, as answers correct their confidences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tagkin.catalogue import Catalogue, OpenSuggestion, TagCounts
from tagkin.catalogue.moment_index import MomentIndex
from tagkin.catalogue.open_index import OpenIndex
from tagkin.server.asking import N_CANDIDATES, PAGE, Answers, best_page, expect_right
from tagkin.server.correcting import AskedSuggestions, Corrections
from tagkin.server.forgetting import ForgottenTags
from tagkin.server.near_answers import AnswersInTime, NearAnswers
from tagkin.server.readers import View


class Question(NamedTuple):
    """A page to ask."""

    tag: int
    suggestions: Sequence[OpenSuggestion]
    """Most confident first."""
    pays: bool
    """Whether it likely brings more correct tags than it takes actions."""


class Ranked(NamedTuple):
    """The n open suggestions of a tag, most confident first by what was corrected."""

    contents: np.ndarray
    stored: np.ndarray
    """The confidences of the model, shape (n,)."""
    confidences: np.ndarray
    """Corrected, shape (n,)."""

    @property
    def shift(self) -> float:
        """By how much answers change the number of correct suggestions."""
        return float((self.confidences - self.stored).sum())


_NO_TAG = -1  # has no answers
_N_AHEAD = 3  # pages of a tag that a forecast looks at
_MUCH = 0.25  # change of μ, see `Forgetting`, after which suggestions are ranked anew
_Choose = Callable[[Catalogue, Sequence[OpenSuggestion]], list[OpenSuggestion]]


class Order:
    """Corrects the confidences of the model, by which tags and suggestions are ordered.

    Answers since the last training correct the confidences of their tag, and the last answers those
    of all tags a little: see `AnswerCurve`. Then they correct those of photographs taken at most a
    day before or after: see `AnswersInTime`. Answers on photographs that a person tagged say how
    often tags are forgotten there: see `Forgetting`. The number of correct suggestions of a tag
    follows its own answers only, because counting all anew would take long. Any thread may call any
    method.

    `moments` tells when the photographs of a catalogue were taken.
    """

    def __init__(
        self, moments: Callable[[Catalogue], MomentIndex] = lambda catalogue: catalogue.moments
    ):
        self._near = NearAnswers(moments)
        self._forgotten = ForgottenTags()
        self._answers: tuple[int, dict[int, AnswersInTime]] = -1, {}
        # with the version before it was read, and μ of `Forgetting`:
        self._ranked: dict[int, tuple[int, float, Ranked]] = {}
        self._version = self._renewed = 0
        self._changed: dict[int, int] = {}  # the version of the last answers to a tag
        self._corrections: tuple[int, Corrections] = -1, Corrections()
        self._answered: dict[int, tuple[int, Ranked]] = {}  # with the version before it was read
        self._left: dict[int, set[int]] = {}

    def correct(
        self, catalogue: Catalogue, tag: int, suggestions: Sequence[OpenSuggestion]
    ) -> list[OpenSuggestion]:
        """Return suggestions of a tag with corrected confidences."""
        if not suggestions:
            return []
        corrected = self._correct(
            catalogue,
            tag,
            np.array([s.content for s in suggestions]),
            np.array([s.confidence for s in suggestions]),
        )
        pairs = zip(suggestions, corrected.tolist(), strict=True)
        return [suggestion._replace(confidence=p) for suggestion, p in pairs]

    def rank(self, catalogue: Catalogue, tag: int) -> Ranked | None:
        """Return all suggestions of a tag, most confident first by what was corrected.

        None if their order is that of the model, because no answer is about a moment or a tagged
        photograph. The order changes with answers to the tag, and with those to others only if
        they change much how often tags are forgotten.
        """
        version, ranked = self._version, self._ranked
        forgetting = self._read_corrections(catalogue).forgetting
        if tag not in self._read_answers(catalogue) and not forgetting.own:
            return None
        at, common, _ = ranked.get(tag, (-1, 0.0, None))
        if at < self._changed_at(tag) or abs(common - forgetting.common) > _MUCH:
            contents, stored = catalogue.suggestions.contents_of_tag(tag)
            corrected = self._correct(catalogue, tag, contents, stored)
            order = np.lexsort((contents, -corrected))
            result = Ranked(contents[order], stored[order], corrected[order])
            ranked[tag] = version, forgetting.common, result
        return ranked[tag][2]

    def is_asked(
        self, catalogue: Catalogue, suggestions: Sequence[OpenSuggestion]
    ) -> list[OpenSuggestion]:
        """Return the corrected suggestions that are worth a question; see `Forgetting`."""
        contents = np.array([s.content for s in suggestions], np.int64)
        confidences = np.array([s.confidence for s in suggestions])
        forgetting = self._read_corrections(catalogue).forgetting
        asked = forgetting.is_asked(confidences, self._forgotten.is_tagged(catalogue, contents))
        return [s for s, is_asked in zip(suggestions, asked, strict=True) if is_asked]

    def _correct(
        self, catalogue: Catalogue, tag: int, contents: np.ndarray, confidences: np.ndarray
    ) -> np.ndarray:
        answers = self._read_answers(catalogue).get(tag)
        times = None if answers is None else self._near.times(catalogue, contents)
        asked = AskedSuggestions(confidences, self._forgotten.is_tagged(catalogue, contents), times)
        return self._read_corrections(catalogue).correct(tag, asked, answers)

    def expect(self, catalogue: Catalogue, tags: Sequence[TagCounts]) -> list[TagCounts]:
        """Return tags with the number of suggestions that are likely correct by all answers."""
        answered = self.answered(catalogue)
        shifts = {tag: ranked.shift for tag, ranked in answered.items()}
        return [replace(t, expected=max(0.0, t.expected + shifts.get(t.id, 0.0))) for t in tags]

    def expected(self, catalogue: Catalogue, stored: float) -> float:
        """Return how many of all suggestions are likely correct; `stored` is by the model alone."""
        shifts = [ranked.shift for ranked in self.answered(catalogue).values()]
        return max(0.0, stored + sum(shifts))

    def likely(
        self, catalogue: Catalogue, index: OpenIndex, least: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the open suggestions with a corrected confidence of `least` or more.

        They are tags, contents and confidences, each of shape (n,). Those of tags without answers
        are left out if the model says less.
        """
        answered = self.answered(catalogue)
        at = np.flatnonzero(index.is_open & (index.confidences >= least))
        at = at[~np.isin(index.tags[at], np.array([*answered], np.int64), kind="table")]
        corrected = self._correct(catalogue, _NO_TAG, index.contents[at], index.confidences[at])
        found = [(index.tags[at], index.contents[at], corrected)]
        found += [
            (np.full(len(r.contents), tag), r.contents, r.confidences)
            for tag, r in answered.items()
        ]
        tags, contents, confidences = map(np.concatenate, zip(*found, strict=True))
        is_likely = confidences >= least
        return tags[is_likely], contents[is_likely], confidences[is_likely]

    def learn(self, tags: Iterable[int]) -> None:
        """Let answers correct the confidences of their tags."""
        self._version += 1
        for tag in tags:
            self._changed[tag] = self._version

    def leave(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Note contents and tags that a person saw and left open; no question repeats them.

        New suggestions may be asked again.
        """
        for content, tag in pairs:
            self._left[tag] = {*self._left.get(tag, ()), content}

    def left_open(self, tag: int) -> set[int]:
        """Return the contents that a person saw and left open for a tag."""
        return self._left.get(tag, set())

    def renew(self) -> None:
        """Use new suggestions, or edited tags."""
        self._near.renew()
        self._forgotten.renew()
        self._version += 1
        self._renewed = self._version
        self._ranked, self._answered, self._left = {}, {}, {}

    def _read_corrections(self, catalogue: Catalogue) -> Corrections:
        version, corrections = self._version, self._corrections
        if corrections[0] != version:
            stored = catalogue.suggestions
            _, last = self._forgotten.split(catalogue, Answers(*stored.last_answers()))
            to_model = Answers(*stored.answers_to_model())
            on_tagged, others = self._forgotten.split(catalogue, to_model)
            corrections = version, Corrections.learn(last, others, on_tagged)
            self._corrections = corrections
        return corrections[1]

    def _read_answers(self, catalogue: Catalogue) -> dict[int, AnswersInTime]:
        """Return the answers of each tag with answers about moments."""
        version, answers = self._version, self._answers
        if answers[0] != version:
            self._answers = answers = version, self._near.read(catalogue)
        return answers[1]

    def answered(self, catalogue: Catalogue) -> dict[int, Ranked]:
        """Return the suggestions of each tag with answers, in any order."""
        version, known = self._version, self._answered
        tags = self._read_corrections(catalogue).answered | self._read_answers(catalogue).keys()
        answered = {}
        for tag in tags:
            at, ranked = known.get(tag, (-1, None))
            if ranked is None or at < self._changed_at(tag):
                ranked = self.rank(catalogue, tag)
                if ranked is None:
                    contents, stored = catalogue.suggestions.contents_of_tag(tag)
                    corrected = self._correct(catalogue, tag, contents, stored)
                    ranked = Ranked(contents, stored, corrected)
                known[tag] = version, ranked
            answered[tag] = ranked
        return answered

    def _changed_at(self, tag: int) -> int:
        """Return the version of the last change to the suggestions of a tag."""
        return max(self._renewed, self._changed.get(tag, 0))


@dataclass(frozen=True)
class Reading:
    """What answers are about: a catalogue, the order, and the photographs of the filters."""

    catalogue: Catalogue
    order: Order
    selected: View | None = None
    is_of_unseen: bool = False
    """Whether suggestions that a person left open are skipped where answers changed the order."""

    @property
    def is_of_burst(self) -> bool:
        """Whether the photographs are one burst, which are shown one by one."""
        return self.selected is not None and self.selected.is_of_burst

    def correct(self, tag: int, suggestions: Sequence[OpenSuggestion]) -> list[OpenSuggestion]:
        """Return suggestions of a tag with corrected confidences."""
        return self.order.correct(self.catalogue, tag, suggestions)

    def count(self, tags: Sequence[TagCounts]) -> list[TagCounts]:
        """Return tags with the number of their suggestions here, and of those likely correct."""
        if self.selected is None:
            return self.order.expect(self.catalogue, tags)
        counts = self.selected.suggestions.counts
        numbers = [counts.get(tag.id, (0, 0.0)) for tag in tags]
        pairs = zip(tags, numbers, strict=True)
        return [replace(tag, n_suggested=n, expected=right) for tag, (n, right) in pairs]

    def tags(self) -> list[TagCounts]:
        """Return the tags with suggestions, most correct ones first."""
        tags = self.count([tag for tag in self.catalogue.tags.list_all() if tag.n_suggested])
        suggested = [tag for tag in tags if tag.n_suggested]
        return sorted(suggested, key=lambda tag: (-tag.expected, tag.name))

    def suggestions(
        self, tag: int, n: int, after: OpenSuggestion | None = None
    ) -> Sequence[OpenSuggestion]:
        """Return `n` suggestions of a tag after another one, with the confidences of the model.

        In the order of the corrected confidences.
        """
        ranked = self.order.rank(self.catalogue, tag)
        if ranked is not None:
            page = self._page_of(tag, ranked, n, after)
        elif self.selected is None:
            return self.catalogue.suggestions.for_tag(tag, n, after)
        else:
            page = self.selected.suggestions.for_tag(tag, n, after)
        stored = self.catalogue.suggestions.of_tag(tag, [s.content for s in page])
        runs = {suggestion.content: suggestion.run for suggestion in stored}
        return [s._replace(run=runs.get(s.content)) for s in page]

    def _page_of(
        self, tag: int, ranked: Ranked, n: int, after: OpenSuggestion | None
    ) -> list[OpenSuggestion]:
        """Return `n` selected suggestions after another one, without paths and runs."""
        contents, stored, p = ranked
        is_shown = np.ones(len(contents), bool)
        if self.selected is not None:
            is_shown &= self.selected.photographs.has(contents)
        if self.is_of_unseen:
            is_shown &= ~np.isin(contents, list(self.order.left_open(tag)))
        if after is not None and after.content in contents:
            is_shown[: np.argmax(contents == after.content) + 1] = False
        elif after is not None:  # it was answered since
            (last,) = self.correct(tag, [after])
            is_shown &= (p < last.confidence) | (
                (p == last.confidence) & (contents > after.content)
            )
        at = np.flatnonzero(is_shown)[:n]
        pairs = zip(contents[at].tolist(), stored[at].tolist(), strict=True)
        return [OpenSuggestion(content, "", confidence) for content, confidence in pairs]

    def question(self, strategy: str) -> Question | None:
        """Return the best page to ask next; None if no suggestion is open.

        Unlikely suggestions for photographs that a person tagged come last, see `Forgetting`.
        """
        return self._best_question(strategy, self.order.is_asked) or self._best_question(strategy)

    def _best_question(self, strategy: str, choose: _Choose | None = None) -> Question | None:
        best, value = None, -1.0
        for tag in self.tags()[:N_CANDIDATES]:
            seen = self.order.left_open(tag.id)
            listed = self.suggestions(tag.id, PAGE + len(seen))
            suggestions = [s for s in listed if s.content not in seen][:PAGE]
            corrected = self.correct(tag.id, suggestions)
            if choose is not None:
                asked = {s.content for s in choose(self.catalogue, corrected)}
                suggestions = [s for s in suggestions if s.content in asked]
                corrected = [s for s in corrected if s.content in asked]
            n_decided = tag.n_accepted + tag.n_rejected
            page = best_page(np.array([s.confidence for s in corrected]), strategy, n_decided)
            if page is not None and page.value > value:
                value = page.value
                shown = [suggestions[int(i)] for i in page.shown]
                best = Question(tag.id, shown, page.pays)
        return best

    def forecast(self, n: int) -> float:
        """Return how many of the next `n` answers accept a tag, on the best pages."""
        tags = [tag.id for tag in self.tags()[:N_CANDIDATES]]
        ahead = [self._confidences(tag, self.suggestions(tag, _N_AHEAD * PAGE)) for tag in tags]
        return expect_right(ahead, n)

    def _confidences(self, tag: int, suggestions: Sequence[OpenSuggestion]) -> np.ndarray:
        return np.array([suggestion.confidence for suggestion in self.correct(tag, suggestions)])
