"""The order that follows decisions: learned from in the background, asked for at any time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tagkin.catalogue import Catalogue, OpenSuggestion, TagCounts
from tagkin.errors import TagkinError
from tagkin.server.order import Asked, StoredOrder, Verdict

if TYPE_CHECKING:
    from tagkin.catalogue.live_review import LiveReview

__all__ = ["LiveOrder"]

_PATIENCE = 3.0  # seconds for the thread to end
_DOUBTED = 20_000  # accepted tags that are looked through for wrong ones
_AT_ONCE = 0.1  # seconds that a decision waits for what is learned from it


class _Known(NamedTuple):
    """What is known at a time; it is replaced as a whole, since others read it meanwhile."""

    live: LiveReview | None
    expected: dict[int, float]
    rank: dict[int, int]
    """Of tags, by what their next page is worth."""


class LiveOrder:
    """By what a `LiveReview` has learned; by what was stored, until there is one.

    It is opened in a thread of its own, which takes seconds, and again after each fit. Decisions
    are learned from in the same thread: with few photographs before the answer to a decision goes
    out, with many soon after it.

    Parameters
    ----------
    catalogue : Path
    """

    def __init__(self, catalogue: Path):
        self._path = catalogue
        self._stored = StoredOrder()
        self._known = _Known(None, {}, {})
        self._doubted: tuple[LiveReview, int, list[tuple[int, int, float]]] | None = None
        self._todo: queue.Queue[list[Verdict] | None] = queue.Queue()
        self._is_closed = False
        self._done = threading.Condition()
        self._n_given = self._n_done = 0
        self._n_asked = self._n_opened = 0  # how often it was to be opened, and was
        self._thread = threading.Thread(target=self._work, name="live order", daemon=True)
        self._thread.start()
        self.renew()

    # --- asked at any time ----------------------------------------------------------------

    def tags(self, catalogue: Catalogue) -> list[TagCounts]:
        """Those whose next page is worth most first."""
        found, rank = self._stored.tags(catalogue), self._known.rank
        return sorted(found, key=lambda one: rank.get(one.id, len(rank)))

    def suggestions(
        self, catalogue: Catalogue, tag: int, n: int, after: OpenSuggestion | None
    ) -> Sequence[OpenSuggestion]:
        """The surest first, as far as they are known by now."""
        live, _, rank = self._known
        if live is None or tag not in rank:  # such as one that was not learned yet
            return self._stored.suggestions(catalogue, tag, n, after)
        last = None if after is None else (after.confidence, after.content)
        found = [
            OpenSuggestion(content, "", p, live.run) for content, p in live.for_tag(tag, n, last)
        ]
        # Undo may reopen suggestions that came after it was opened. One place stays empty: a full
        # page has another one behind it.
        if len(found) < n - 1:
            known = {content for content, _ in live.for_tag(tag)}
            stored = self._stored.suggestions(catalogue, tag, len(known) + n, None)
            found += [one for one in stored if one.content not in known][: n - 1 - len(found)]
        return found

    def confidences(self, content: int, tags: Sequence[int]) -> dict[int, float]:
        """Of a photograph's suggestions, by tag."""
        live = self._known.live
        return {} if live is None else dict(live.for_photograph(content, tags))

    def expected(self) -> dict[int, float]:
        """By tag, how many of its suggestions are likely right."""
        return self._known.expected

    def question(self, catalogue: Catalogue, strategy: str) -> Asked | None:
        """The page that is worth most."""
        live = self._known.live
        found = [] if live is None else live.questions(1, strategy)
        if live is None or not found:
            return self._stored.question(catalogue, strategy)
        (one,) = found
        pairs = zip(one.contents, one.confidences, strict=True)
        shown = [OpenSuggestion(content, "", p, live.run) for content, p in pairs]
        return Asked(one.tag, shown, one.expected_right, one.expected_actions)

    def doubted(self) -> Sequence[tuple[int, int, float]]:
        """Accepted tags that may be wrong, the least sure first; found anew after decisions."""
        live, now = self._known.live, self._n_done
        if live is None:
            return ()
        if self._doubted is None or self._doubted[:2] != (live, now):
            self._doubted = live, now, live.doubted(_DOUBTED)
        return self._doubted[2]

    @property
    def is_live(self) -> bool:
        """Whether decisions change the order."""
        return self._known.live is not None

    @property
    def is_opening(self) -> bool:
        """Whether it is not live yet, and may be soon."""
        return not self.is_live and self._is_to_be_opened()

    # --- learned in the background ----------------------------------------------------------

    def learn(self, verdicts: Sequence[Verdict]) -> None:
        """Learn from decisions, soon."""
        with self._done:
            self._n_given += 1
            self._todo.put(list(verdicts))

    def catch_up(self) -> None:
        """Wait a moment for what is learned from; not while it is opened."""
        with self._done:
            if self.is_live and not self._is_to_be_opened():
                mine = self._n_given
                self._done.wait_for(lambda: self._n_done >= mine, _AT_ONCE)

    def renew(self) -> None:
        """Open it anew, soon."""
        with self._done:
            self._n_asked += 1
            self._todo.put(None)

    def wait(self, seconds: float) -> bool:
        """Wait until it is opened and has learned from everything; whether it has."""
        with self._done:
            return self._done.wait_for(
                lambda: self._n_done >= self._n_given and not self._is_to_be_opened(), seconds
            )

    def close(self) -> None:
        """End the thread, which may be at something that cannot be stopped."""
        self._is_closed = True
        self._todo.put(None)
        self._thread.join(_PATIENCE)

    @property
    def is_at_work(self) -> bool:
        """Whether the thread has not ended."""
        return self._thread.is_alive()

    def _is_to_be_opened(self) -> bool:
        return self._n_opened < self._n_asked

    def _work(self) -> None:
        live: LiveReview | None = None
        while True:
            verdicts = self._todo.get()
            if self._is_closed:
                return
            n_asked = self._n_asked  # a later wish may mean a model that is not there yet
            if self._n_opened < n_asked:
                live = self._opened()
            # what was decided while it was opened is learned twice, which is once
            if live is not None and verdicts is not None:
                live.learn(_with_truth(verdicts))
            known = _Known(None, {}, {})
            if live is not None:
                rank = {tag: i for i, tag in enumerate(live.ranking())}
                known = _Known(live, live.expected(), rank)
            with self._done:  # nobody is told before all of it can be seen
                self._known, self._n_opened = known, n_asked
                self._n_done += verdicts is not None
                self._done.notify_all()

    def _opened(self) -> LiveReview | None:
        """From the catalogue as it is now; None where nothing was learned, or can be."""
        try:
            with Catalogue(self._path, write=False) as catalogue:
                if catalogue.model.fingerprint() is None:
                    return None
                from tagkin.catalogue.live_review import LiveReview  # takes seconds to import

                return LiveReview.open(catalogue, catalogue.model.load()[0])
        except (TagkinError, OSError, MemoryError):
            return None  # the stored order does


def _with_truth(verdicts: Iterable[Verdict]) -> list[tuple[int, int, bool | None]]:
    return [(c, t, None if v is None else v > 0) for c, t, v in verdicts]
