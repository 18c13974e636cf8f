"""The order of suggestions that learns from decisions in the background."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tagkin.catalogue import Catalogue, OpenSuggestion, TagCounts, open_catalogue
from tagkin.errors import TagkinError
from tagkin.server.filtered_views import Verdict, View
from tagkin.server.order import Order, Question

if TYPE_CHECKING:
    from tagkin.catalogue.live_review import LiveReview

_PATIENCE = 3.0  # seconds for the thread to stop
_N_CANDIDATES = 20  # pages, of which the first that is still open is asked
_MAX_DOUBTED = 20_000  # accepted tags that are checked
_WAIT = 0.1  # seconds that a decision waits for its update


class _Snapshot(NamedTuple):
    """The latest results; replaced as a whole, because other threads read them."""

    live: LiveReview | None
    expected: dict[int, float]
    rank: dict[int, int]
    """Rank of each tag by the value of its next page."""


class LiveOrder(Order):
    """Orders suggestions by a `LiveReview`, and by stored confidences until it is open.

    A thread opens it, which takes seconds, and opens it again after each fit. The same thread
    learns from decisions. With few photographs, it is done before the answer to a decision.
    """

    def __init__(self, catalogue: Path):
        self._path = catalogue
        self._latest = _Snapshot(None, {}, {})
        self._doubted: tuple[LiveReview, int, list[tuple[int, int, float]]] | None = None
        self._todo: queue.Queue[list[Verdict] | None] = queue.Queue()
        self._is_closed = False
        self._done = threading.Condition()
        self._n_given = self._n_done = 0
        self._n_requested = self._n_opened = 0
        self._thread = threading.Thread(target=self._work, name="live order", daemon=True)
        self._thread.start()
        self.renew()

    # --- reading --------------------------------------------------------------------------

    def tags(self, catalogue: Catalogue, selected: View | None = None) -> list[TagCounts]:
        """Return the tags with suggestions, most valuable next page first."""
        tags, rank = super().tags(catalogue, selected), self._latest.rank
        if selected is not None:
            return tags  # the values hold for pages of all photographs
        return sorted(tags, key=lambda tag: rank.get(tag.id, len(rank)))

    def suggestions(
        self,
        catalogue: Catalogue,
        tag: int,
        n: int,
        after: OpenSuggestion | None,
        selected: View | None = None,
    ) -> Sequence[OpenSuggestion]:
        """Return suggestions of a tag, most confident first by the latest confidences."""
        live, _, rank = self._latest
        if live is None or tag not in rank:  # such as a tag that was not learned yet
            return super().suggestions(catalogue, tag, n, after, selected)
        last = None if after is None else (after.confidence, after.content)
        pairs = live.for_tag(tag, n if selected is None else None, last)
        if selected is not None:
            has = selected.photographs.has([content for content, _ in pairs])
            pairs = [pairs[i] for i in np.flatnonzero(has)[:n].tolist()]
        page = [OpenSuggestion(content, "", p, live.run) for content, p in pairs]
        # Undo may reopen suggestions that the live review does not know. They leave one place
        # empty, because a full page promises another page.
        if len(page) < n - 1:
            known = {content for content, _ in live.for_tag(tag)}
            stored = super().suggestions(catalogue, tag, len(known) + n, None, selected)
            page += [s for s in stored if s.content not in known][: n - 1 - len(page)]
        return page

    def confidences(self, content: int, tags: Sequence[int]) -> dict[int, float]:
        """Return the latest confidences of a photograph's suggestions, by tag."""
        live = self._latest.live
        return {} if live is None else dict(live.for_photograph(content, tags))

    def expected(self) -> dict[int, float]:
        """Return the expected number of correct suggestions, by tag."""
        return self._latest.expected

    def question(
        self, catalogue: Catalogue, strategy: str, selected: View | None = None
    ) -> Question | None:
        """Return the best page to ask next."""
        live = self._latest.live
        questions = live.questions(_N_CANDIDATES, strategy) if live and selected is None else []
        # a tag that was hidden or merged a moment ago has no suggestions any more
        page = next((q for q in questions if catalogue.tags.count(q.tag).n_suggested), None)
        if live is None or page is None:
            return super().question(catalogue, strategy, selected)
        pairs = zip(page.contents, page.confidences, strict=True)
        return page.tag, [OpenSuggestion(content, "", p, live.run) for content, p in pairs]

    def list_doubtful(self) -> Sequence[tuple[int, int, float]]:
        """Return doubtful accepted tags, least confident first, updated after decisions."""
        live, now = self._latest.live, self._n_done
        if live is None:
            return ()
        if self._doubted is None or self._doubted[:2] != (live, now):
            self._doubted = live, now, live.list_doubtful(_MAX_DOUBTED)
        return self._doubted[2]

    @property
    def is_live(self) -> bool:  # type: ignore[override]
        """Whether decisions change the order."""
        return self._latest.live is not None

    @property
    def is_opening(self) -> bool:  # type: ignore[override]
        """Whether it is not live yet, but may be soon."""
        return not self.is_live and self._must_open()

    # --- background work --------------------------------------------------------------------

    def learn(self, verdicts: Sequence[Verdict]) -> None:
        """Queue decisions to learn from."""
        with self._done:
            self._n_given += 1
            self._todo.put(list(verdicts))

    def catch_up(self) -> None:
        """Wait briefly for pending updates, except while opening."""
        with self._done:
            if self.is_live and not self._must_open():
                n_given = self._n_given
                self._done.wait_for(lambda: self._n_done >= n_given, _WAIT)

    def renew(self) -> None:
        """Queue opening with the new model."""
        with self._done:
            self._n_requested += 1
            self._todo.put(None)

    def wait(self, seconds: float) -> bool:
        """Wait until it is open and has learned from all decisions; return whether it has."""
        with self._done:
            return self._done.wait_for(
                lambda: self._n_done >= self._n_given and not self._must_open(), seconds
            )

    def close(self) -> None:
        """Stop the thread, unless a library cannot be interrupted."""
        self._is_closed = True
        self._todo.put(None)
        self._thread.join(_PATIENCE)

    @property
    def has_running_thread(self) -> bool:  # type: ignore[override]
        """Whether the thread still runs."""
        return self._thread.is_alive()

    def _must_open(self) -> bool:
        return self._n_opened < self._n_requested

    def _work(self) -> None:
        live: LiveReview | None = None
        latest = _Snapshot(None, {}, {})
        while True:
            verdicts = self._todo.get()
            if self._is_closed:
                return
            n_requested = self._n_requested  # a later request may mean a newer model
            if self._n_opened < n_requested:
                # Two live reviews may not fit into memory. Until the new one is open, the stored
                # confidences of the new model apply.
                live = self._doubted = None
                latest = self._latest = _Snapshot(None, {}, {})
                live = self._open()
            # decisions during opening are learned twice, which has no effect
            if live is not None and verdicts is not None:
                live.learn([(c, t, None if v is None else v > 0) for c, t, v in verdicts])
            if live is not None:
                rank = {tag: i for i, tag in enumerate(live.ranking())}
                latest = _Snapshot(live, live.expected(), rank)
            with self._done:  # waiting threads see all or nothing of it
                self._latest, self._n_opened = latest, n_requested
                self._n_done += verdicts is not None
                self._done.notify_all()

    def _open(self) -> LiveReview | None:
        """Open the current model of the catalogue; None if there is none, or it is unusable."""
        try:
            with open_catalogue(self._path) as catalogue:
                if catalogue.model.fingerprint() is None:
                    return None
                return catalogue.live_review()
        except (TagkinError, OSError, MemoryError):
            return None  # the stored confidences apply
