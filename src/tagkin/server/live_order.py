"""The order that follows decisions: learned from in the background, asked for at any time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tagkin.catalogue import Catalogue, Open, TagCounts, load_model, model_of
from tagkin.errors import TagkinError
from tagkin.server.order import Asked, StoredOrder, Verdict

if TYPE_CHECKING:
    from tagkin.catalogue.live_review import LiveReview

__all__ = ["LiveOrder"]

_PATIENCE = 3.0  # seconds for the thread to end
_DOUBTED = 20_000  # accepted tags that are looked through for wrong ones
_AT_ONCE = 0.1  # seconds that a decision waits for what is learned from it


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
        self._live: LiveReview | None = None
        self._doubted: tuple[LiveReview, int, list[tuple[int, int, float]]] | None = None
        self._expected: dict[int, float] = {}
        self._rank: dict[int, int] = {}  # of tags, by what their next page is worth
        self._todo: queue.Queue[list[Verdict] | None] = queue.Queue()
        self._renew = threading.Event()
        self._is_closed = False
        self._done = threading.Condition()
        self._n_given = self._n_done = 0
        self._thread = threading.Thread(target=self._work, name="live order", daemon=True)
        self._renew.set()
        self._thread.start()
        self._todo.put(None)

    # --- asked at any time ----------------------------------------------------------------

    def tags(self, catalogue: Catalogue) -> list[TagCounts]:
        """Those whose next page is worth most first."""
        found, rank = self._stored.tags(catalogue), self._rank
        return sorted(found, key=lambda one: rank.get(one.id, len(rank)))

    def suggestions(
        self, catalogue: Catalogue, tag: int, n: int, after: Open | None
    ) -> Sequence[Open]:
        """The surest first, as far as they are known by now."""
        if self._live is None or tag not in self._rank:  # such as one that was not learned yet
            return self._stored.suggestions(catalogue, tag, n, after)
        last = None if after is None else (after.confidence, after.content)
        return [Open(content, "", p) for content, p in self._live.for_tag(tag, n, last)]

    def confidences(self, content: int, tags: Sequence[int]) -> dict[int, float]:
        """Of a photograph's suggestions, by tag."""
        return {} if self._live is None else dict(self._live.for_photograph(content, tags))

    def expected(self) -> dict[int, float]:
        """By tag, how many of its suggestions are likely right."""
        return self._expected

    def question(self, catalogue: Catalogue, strategy: str) -> Asked | None:
        """The page that is worth most."""
        found = [] if self._live is None else self._live.questions(1, strategy)
        if not found:
            return self._stored.question(catalogue, strategy)
        (one,) = found
        pairs = zip(one.contents, one.confidences, strict=True)
        shown = [Open(content, "", p) for content, p in pairs]
        return Asked(one.tag, shown, one.expected_right, one.expected_actions)

    def doubted(self) -> Sequence[tuple[int, int, float]]:
        """Accepted tags that may be wrong, the least sure first; found anew after decisions."""
        live, now = self._live, self._n_done
        if live is None:
            return ()
        if self._doubted is None or self._doubted[:2] != (live, now):
            self._doubted = live, now, live.doubted(_DOUBTED)
        return self._doubted[2]

    @property
    def is_live(self) -> bool:
        """Whether decisions change the order."""
        return self._live is not None

    @property
    def is_opening(self) -> bool:
        """Whether it is not live yet, and may be soon."""
        return self._live is None and self._renew.is_set()

    # --- learned in the background ----------------------------------------------------------

    def learn(self, verdicts: Sequence[Verdict]) -> None:
        """Learn from decisions, soon."""
        with self._done:
            self._n_given += 1
            self._todo.put(list(verdicts))

    def catch_up(self) -> None:
        """Wait a moment for what is learned from; not while it is opened."""
        with self._done:
            if self._live is not None and not self._renew.is_set():
                mine = self._n_given
                self._done.wait_for(lambda: self._n_done >= mine, _AT_ONCE)

    def renew(self) -> None:
        """Open it anew, soon."""
        self._renew.set()
        self._todo.put(None)

    def wait(self, seconds: float) -> bool:
        """Wait until it is opened and has learned from everything; whether it has."""
        with self._done:
            return self._done.wait_for(
                lambda: self._n_done >= self._n_given and not self._renew.is_set(), seconds
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

    def _work(self) -> None:
        while True:
            verdicts = self._todo.get()
            if self._is_closed:
                return
            if self._renew.is_set():
                self._live = self._opened()
                with self._done:
                    self._renew.clear()
            if verdicts is not None:
                # what was decided while it was opened is learned twice, which is once
                if self._live is not None:
                    self._live.learn(_with_truth(verdicts))
                with self._done:
                    self._n_done += 1
            if self._live is not None:
                self._expected = self._live.expected()
                self._rank = {tag: i for i, tag in enumerate(self._live.ranking())}
            with self._done:
                self._done.notify_all()

    def _opened(self) -> LiveReview | None:
        """From the catalogue as it is now; None where nothing was learned, or can be."""
        with Catalogue(self._path, write=False) as catalogue:
            if model_of(catalogue) is None:
                return None
            from tagkin.catalogue.live_review import LiveReview  # takes seconds to import

            try:
                return LiveReview.open(catalogue, load_model(catalogue)[0])
            except (TagkinError, OSError, MemoryError):
                return None  # the stored order does


def _with_truth(verdicts: Iterable[Verdict]) -> list[tuple[int, int, bool | None]]:
    return [(c, t, None if v is None else v > 0) for c, t, v in verdicts]
