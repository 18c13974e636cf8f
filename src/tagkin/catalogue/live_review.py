"""A live review: open suggestions, reordered after every decision."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from tagkin.annotator.asking import Page, best_page
from tagkin.annotator.live import live_scores
from tagkin.catalogue.database import Database
from tagkin.catalogue.live_candidates import read_candidates

if TYPE_CHECKING:
    from tagkin.annotator import Annotator
    from tagkin.annotator.live import LiveScores

__all__ = ["LiveReview", "Question"]


class Question(NamedTuple):
    """A page to ask: one tag, and photographs that may show it."""

    tag: int
    """The tag's number in the catalogue."""
    contents: Sequence[int]
    """Most confident first."""
    confidences: Sequence[float]


class LiveReview:
    """The open suggestions of a catalogue, in an order that follows decisions.

    It has every suggestion that was open when it was opened. `learn` takes decisions as they are
    made, and updates the confidences of their tags: decided photographs vote for their kin, and the
    tag's scores are corrected. That takes a fraction of a second at 10,000 photographs. Open it
    again after a new fit.

    Tags and photographs are numbers in the catalogue (``tags.id``, ``contents.id``). Any thread may
    call any method. It reads the catalogue only in `open`, and never writes to it.

    Parameters
    ----------
    scores : LiveScores
        A row for each content, a column for each tag.
    contents, tags : sequences of int
        The numbers of rows and of columns, ascending.
    run : int, optional
        The run that suggested the tags.

    Examples
    --------
    >>> live = catalogue.live_review()                            # doctest: +SKIP
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
        self.run = run
        self._scores = scores
        self._contents = np.asarray(contents, dtype=np.int64)
        self._tags = np.asarray(tags, dtype=np.int64)
        self._row = {int(content): i for i, content in enumerate(contents)}
        self._column = {int(tag): i for i, tag in enumerate(tags)}
        self._lock = threading.RLock()
        self._pages: dict[str, list[Page | None]] = {}
        self._expected = np.zeros(len(tags))
        self._stale = set(range(len(tags)))  # columns whose expectation is outdated
        self._accepted: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # by column

    @classmethod
    def open(cls, database: Database, annotator: Annotator) -> Self:
        """Read the open suggestions of a catalogue, and learn from all its decisions.

        The annotator's confidences include the decisions that it learned from. This also learns how
        well the confidences predicted decisions, including those before the fit.
        """
        candidates = read_candidates(database, annotator)
        scores = live_scores(candidates.images, candidates.confidences)
        live = cls(scores, candidates.contents, candidates.tags, candidates.run)
        live.learn(candidates.decisions)
        return live

    # --- learning ------------------------------------------------------------------------

    def learn(self, decisions: Iterable[tuple[int, int, bool | None]]) -> None:
        """Learn from decisions.

        Parameters
        ----------
        decisions : iterable of (content, tag, accepted)
            True for accepted, False for rejected, None for undone, which reopens the suggestion.
            Unknown photographs and tags are skipped until the next fit.
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
                self._accepted.pop(column, None)
                for strategy, pages in self._pages.items():
                    pages[column] = self._choose_page(column, strategy)

    # --- asking --------------------------------------------------------------------------

    def questions(self, n: int = 1, strategy: str = "most-right") -> list[Question]:
        """Return the next pages to ask, each of another tag, most valuable first.

        Parameters
        ----------
        n : int, default 1
            The maximum number of pages.
        strategy : "most-right" or "learn-most"
            The most correct tags per action, or the most informative decisions.
        """
        with self._lock:
            return [
                self._make_question(column, page) for column, page in self._rank_pages(strategy)[:n]
            ]

    def ranking(self) -> list[int]:
        """Return the tags with open suggestions, in the order of `questions`."""
        with self._lock:
            return [int(self._tags[column]) for column, _ in self._rank_pages("most-right")]

    def for_tag(
        self, tag: int, n: int | None = None, after: tuple[float, int] | None = None
    ) -> list[tuple[int, float]]:
        """Return photographs that may show a tag with confidences, most confident first.

        Start after the confidence and content in `after`; return at most `n`.
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
        """Return tags that a photograph may show with confidences, most confident first.

        Only `tags`, if given.
        """
        row = self._row.get(int(content))
        if row is None:
            return []
        known = None if tags is None else [self._column[t] for t in tags if t in self._column]
        with self._lock:
            pairs = self._scores.of_image(row, known)
        return [(int(self._tags[column]), p) for column, p in pairs]

    def list_doubtful(self, n: int) -> list[tuple[int, int, float]]:
        """Return accepted tags that may be wrong: content, tag, confidence; least confident first.

        Each confidence ignores the decision itself. This takes a moment after many decisions, and
        later calls look only at tags with new decisions.
        """
        doubts: list[tuple[float, int, int]] = []
        for column, tag in enumerate(self._tags.tolist()):
            with self._lock:
                if column not in self._accepted:
                    self._accepted[column] = self._scores.accepted(column)
                rows, p = self._accepted[column]
            contents = self._contents[rows[:n]].tolist()
            doubts += [(q, tag, c) for q, c in zip(p[:n].tolist(), contents, strict=True)]
        return [(content, tag, p) for p, tag, content in sorted(doubts)[:n]]

    def expected(self) -> dict[int, float]:
        """Return how many open suggestions are likely correct, by tag."""
        with self._lock:
            for column in self._stale:
                self._expected[column] = float(self._scores.open(column)[1].sum())
            self._stale.clear()
            return dict(zip(self._tags.tolist(), self._expected.tolist(), strict=True))

    def n_decided(self, tag: int) -> int:
        """Return how many decisions on a tag it has learned from."""
        column = self._column.get(int(tag))
        if column is None:
            return 0
        with self._lock:
            return self._scores.n_decided(column)

    def _rank_pages(self, strategy: str) -> list[tuple[int, Page]]:
        """Return columns and their pages, most valuable first."""
        pages = self._pages.get(strategy)
        if pages is None:
            pages = [self._choose_page(column, strategy) for column in range(len(self._tags))]
            self._pages[strategy] = pages
        ranked = [(column, page) for column, page in enumerate(pages) if page is not None]
        return sorted(ranked, key=lambda pair: (-pair[1].value, pair[0]))

    def _choose_page(self, column: int, strategy: str) -> Page | None:
        _, p = self._scores.open(column)
        return best_page(p, strategy, self._scores.n_decided(column))

    def _make_question(self, column: int, page: Page) -> Question:
        rows, p = self._scores.open(column)
        return Question(
            int(self._tags[column]),
            self._contents[rows[page.shown]].tolist(),
            p[page.shown].tolist(),
        )
