"""Suggestions of a catalogue that follow decisions while a person works."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from tagkin.annotator.asking import Page, best_page
from tagkin.annotator.live import live_scores
from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.live_candidates import live_candidates
from tagkin.errors import InvalidInput

if TYPE_CHECKING:
    from tagkin.annotator import Annotator
    from tagkin.annotator.live import LiveScores

__all__ = ["LiveReview", "Question"]


class Question(NamedTuple):
    """A page to ask: one tag, and photographs that may show it."""

    tag: int
    """The tag's number in the catalogue."""
    contents: Sequence[int]
    """The surest first."""
    confidences: Sequence[float]
    expected_right: float
    """How many of them are likely to show it."""
    expected_actions: float
    """Keys and clicks that the page is likely to take; see `tagkin.annotator.asking`."""


class LiveReview:
    """The open suggestions of a catalogue, in an order that follows decisions.

    It holds every suggestion that was open when it was opened. `learn` takes decisions as they
    are made, and changes the confidences of the tags that they are about: votes of the decided
    photographs count for their kin, and what was learned of the tag is corrected. That takes a
    part of a second at 10,000 photographs. A new fit makes better ones: open it anew then.

    Tags and photographs go by their numbers in the catalogue (``tags.id``, ``contents.id``).
    Any thread may call any method at any time. Nothing is read from the catalogue after `open`,
    and nothing is ever written to it.

    Parameters
    ----------
    scores : LiveScores
        One row for each content, one column for each tag.
    contents, tags : sequences of int
        The numbers of rows and of columns, ascending.
    run : int, optional
        The run that suggested the tags.

    Examples
    --------
    >>> from tagkin.catalogue.live_review import LiveReview
    >>> live = LiveReview.open(catalogue, annotator)              # doctest: +SKIP
    >>> question = live.questions(1)[0]                           # doctest: +SKIP
    >>> live.learn([(c, question.tag, True) for c in question.contents])  # doctest: +SKIP
    """

    def __init__(
        self,
        scores: LiveScores,
        contents: Sequence[int],
        tags: Sequence[int],
        run: int | None = None,
    ):
        if scores.shape != (len(contents), len(tags)):
            raise InvalidInput(
                f"Scores of the shape {scores.shape} are not of {len(contents)} photographs and "
                f"{len(tags)} tags."
            )
        self.run = run
        self._scores = scores
        self._contents = np.asarray(contents, dtype=np.int64)
        self._tags = np.asarray(tags, dtype=np.int64)
        self._row = {int(content): i for i, content in enumerate(contents)}
        self._column = {int(tag): i for i, tag in enumerate(tags)}
        self._lock = threading.RLock()
        self._pages: dict[str, list[Page | None]] = {}
        self._expected = np.zeros(len(tags))
        self._stale = set(range(len(tags)))  # columns whose expectation is not as the scores are

    @classmethod
    def open(cls, catalogue: Catalogue, annotator: Annotator) -> Self:
        """Take the open suggestions of a catalogue, and learn from all its decisions.

        What the annotator has learned from decisions counts in its confidences; how these fared is
        learned here, also from decisions that were made before it was fitted.
        """
        found = live_candidates(catalogue, annotator)
        scores = live_scores(annotator.estimator_, found.features, found.confidences)
        live = cls(scores, found.contents, found.tags, found.run)
        live.learn(found.decisions)
        return live

    # --- learning ------------------------------------------------------------------------

    def learn(self, decisions: Iterable[tuple[int, int, bool | None]]) -> None:
        """Take decisions into account.

        Parameters
        ----------
        decisions : iterable of (content, tag, accepted)
            True for accepted, False for rejected, and None for one that was taken back: its
            suggestion is open again. Photographs and tags that it does not know are passed over:
            they are learned from by the next fit.
        """
        verdicts: dict[int, dict[int, int]] = {}
        for content, tag, accepted in decisions:
            row, column = self._row.get(int(content)), self._column.get(int(tag))
            if row is not None and column is not None:
                verdict = 0 if accepted is None else 1 if accepted else -1
                verdicts.setdefault(column, {})[row] = verdict
        with self._lock:
            for column, of_column in sorted(verdicts.items()):
                rows = np.array(sorted(of_column))
                self._scores.learn(column, rows, np.array([of_column[int(r)] for r in rows]))
                self._stale.add(column)
                for strategy, pages in self._pages.items():
                    pages[column] = self._page(column, strategy)

    # --- asking --------------------------------------------------------------------------

    def questions(self, n: int = 1, strategy: str = "most-right") -> list[Question]:
        """The pages to ask next, each of another tag, the one that is worth most first.

        Parameters
        ----------
        n : int, default 1
            How many, at most.
        strategy : "most-right" or "learn-most"
            The most right tags per action, or where decisions teach most.
        """
        with self._lock:
            return [self._question(column, page) for column, page in self._ranked(strategy)[:n]]

    def ranking(self, strategy: str = "most-right") -> list[int]:
        """Tags with open suggestions, in the order of `questions`, and nothing else of these."""
        with self._lock:
            return [int(self._tags[column]) for column, _ in self._ranked(strategy)]

    def for_tag(
        self, tag: int, n: int | None = None, after: tuple[float, int] | None = None
    ) -> list[tuple[int, float]]:
        """Photographs that may show a tag and the confidences, the surest first; n at most.

        Those up to a confidence and content, `after`, are left out.
        """
        column = self._column.get(int(tag))
        if column is None:
            return []
        with self._lock:
            rows, p = self._scores.open(column)
        contents = self._contents[rows]
        if after is not None:
            later = (p < after[0]) | ((p == after[0]) & (contents > after[1]))
            contents, p = contents[later], p[later]
        return list(zip(contents[:n].tolist(), p[:n].tolist(), strict=True))

    def for_photograph(
        self, content: int, tags: Sequence[int] | None = None
    ) -> list[tuple[int, float]]:
        """Tags that a photograph may show and the confidences, the surest first.

        Where `tags` are given, no others are looked at.
        """
        row = self._row.get(int(content))
        if row is None:
            return []
        known = None if tags is None else [self._column[t] for t in tags if t in self._column]
        with self._lock:
            found = self._scores.of_image(row, known)
        return [(int(self._tags[column]), p) for column, p in found]

    def doubted(self, n: int) -> list[tuple[int, int, float]]:
        """Accepted tags that may be wrong: content, tag and confidence, the least sure first.

        Each confidence is without the decision itself. It takes a moment where much was decided.
        """
        found: list[tuple[float, int, int]] = []
        for column, tag in enumerate(self._tags.tolist()):
            with self._lock:
                rows, p = self._scores.accepted(column)
            contents = self._contents[rows[:n]].tolist()
            found += [(q, tag, c) for q, c in zip(p[:n].tolist(), contents, strict=True)]
        return [(content, tag, p) for p, tag, content in sorted(found)[:n]]

    def expected(self) -> dict[int, float]:
        """How many of the open suggestions are likely right, by tag."""
        with self._lock:
            for column in self._stale:
                self._expected[column] = float(self._scores.open(column)[1].sum())
            self._stale.clear()
            return dict(zip(self._tags.tolist(), self._expected.tolist(), strict=True))

    def n_decided(self, tag: int) -> int:
        """How many decisions on a tag it has learned from."""
        column = self._column.get(int(tag))
        if column is None:
            return 0
        with self._lock:
            return self._scores.n_decided(column)

    def _ranked(self, strategy: str) -> list[tuple[int, Page]]:
        """Columns and their pages, the one that is worth most first."""
        pages = self._pages.get(strategy)
        if pages is None:
            pages = [self._page(column, strategy) for column in range(len(self._tags))]
            self._pages[strategy] = pages
        some = [(column, page) for column, page in enumerate(pages) if page is not None]
        return sorted(some, key=lambda pair: (-pair[1].value, pair[0]))

    def _page(self, column: int, strategy: str) -> Page | None:
        _, p = self._scores.open(column)
        return best_page(p, strategy, self._scores.n_decided(column))

    def _question(self, column: int, page: Page) -> Question:
        rows, p = self._scores.open(column)
        return Question(
            int(self._tags[column]),
            self._contents[rows[page.shown]].tolist(),
            p[page.shown].tolist(),
            page.expected_right,
            page.expected_actions,
        )
