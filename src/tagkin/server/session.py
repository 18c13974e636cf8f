"""The state of a running review: the catalogue, its readers, thumbnails and the fit."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tagkin.catalogue import Batch, Catalogue, Decided, Pair, Shown, TagsChanged
from tagkin.catalogue.completeness import Declared
from tagkin.server.background import BackgroundFit, FolderWatcher
from tagkin.server.forecasting import Forecast, duration
from tagkin.server.mapping import CollectionMap
from tagkin.server.order import Order, Reading
from tagkin.server.readers import Readers, Views
from tagkin.server.searching import CollectionSearch
from tagkin.server.thumbnail_cache import ThumbnailPrefetcher, Thumbnails
from tagkin.server.writing import FileWriter
from tagkin.wording import count

_N_STEPS = 100  # steps whose answers are kept, because answers can get lost
_CHECK_INTERVAL = 20.0  # seconds between two checks whether a new fit is due


_Stored = Batch | Decided | Declared | TagsChanged
Once = TypeVar("Once", Decided, Declared, TagsChanged)
"""The answer to a step that a repetition does not change."""


class Review:
    """A review of one collection, by any number of windows.

    The catalogue is open for writing, so no other process writes to it during the review. `cache`
    is the cache folder. `fits` starts a new fit in the background when it is due, and `ahead` makes
    thumbnails of all photographs there; `watches` notices new and changed photographs. `words` are
    tags to suggest by name if there is nothing to learn from.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        cache: Path,
        *,
        fits: bool = True,
        ahead: bool = False,
        watches: bool = False,
        words: Sequence[str] = (),
    ):
        self._writer, self._fits = catalogue, fits
        self.root = catalogue.root
        """The folder of the collection."""
        self._writing = threading.Lock()
        self.readers = Readers(catalogue.path)
        self.thumbnails = Thumbnails(cache)
        self._prefetcher = ThumbnailPrefetcher(self.readers, self.thumbnails) if ahead else None
        self.views = Views(self.readers)
        self.order = Order(self.views.moments)
        self.map = CollectionMap(catalogue.path)
        self.words = CollectionSearch(self.readers, cache)
        self.fit = BackgroundFit(catalogue.path, self._renew, words)
        self.writer = FileWriter(catalogue, self.readers)
        self._is_behind = False  # whether the folder changed while a job was running
        self._watcher = FolderWatcher(catalogue.root, self.catch_up) if watches else None
        self._steps: OrderedDict[str, list[_Stored]] = OrderedDict()
        self._checked_at = 0.0
        self._forecast = Forecast()
        # changes with every decision and every restart
        self.version = time.time_ns() // 1000

    def close(self) -> None:
        """Stop background work and release the catalogue."""
        if self._watcher is not None:
            self._watcher.close()
        self.writer.close()
        self.fit.stop()
        self.words.close()
        if self._prefetcher is not None:
            self._prefetcher.close()
        self.thumbnails.close()
        self.readers.close()
        self._writer.close()

    # --- deciding ---------------------------------------------------------------------------

    def decide(
        self,
        accepted: Sequence[Pair | Shown],
        rejected: Sequence[Pair | Shown],
        *,
        only_open: bool,
        together: bool = False,
        left: Sequence[tuple[int, int]] = (),
        step: str | None = None,
    ) -> Batch:
        """Store decisions as one step, as `Decisions.decide_pairs`, on the disk at the end.

        `left` are contents and tags that the page showed and the person left open.
        A window that got no answer sends the same `step` again and may change its decisions.
        """
        with self._writing:
            answers = self._steps.get(step or "", [])
            batch = self._writer.decisions.decide_pairs(
                accepted,
                rejected,
                only_open=only_open,
                together=together,
                repeats={answer.run for answer in answers},
            )
            self._note(step, batch)
        self.order.leave(left)
        self._fit_if_due()
        return batch

    def change(self, change: Callable[[Catalogue], Once], step: str | None = None) -> Once:
        """Change the catalogue as one step: finish photographs or tags, edit tags, undo, redo.

        The same `step` again changes nothing, and gets the same answer.
        """
        with self._writing:
            for answer in self._steps.get(step or "", []):
                if not isinstance(answer, Batch):
                    return answer  # type: ignore[return-value]  # a step has one kind of answer
            done = change(self._writer)
            self._note(step, done)
        if isinstance(done, TagsChanged) or (isinstance(done, Decided) and done.edited):
            self.order.renew()
        self._fit_if_due()
        return done

    def _note(self, step: str | None, answer: _Stored) -> None:
        """Keep the answer to a step, and learn from its decisions."""
        if answer.run is None:
            return
        if step is not None:
            self._steps.setdefault(step, []).append(answer)
            while len(self._steps) > _N_STEPS:
                self._steps.popitem(last=False)
        verdicts = self._writer.decisions.verdicts_after(answer.run)
        self.order.learn(tag for _, tag, _ in verdicts)
        self.version += 1

    # --- state ------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the progress, what can be undone, and the state of background work."""
        self._fit_if_due()
        with self.readers.connection() as catalogue:
            now = catalogue.suggestions.progress()
            expected = self.order.expected(catalogue, now.expected)
            lent = Reading(catalogue, self.order)
            pace = self._forecast.text(lent, now.n_suggestions)
            return {
                "version": self.version,
                "photographs": now.n_photographs,
                "suggestions": now.n_suggestions,
                "to_review": now.n_to_review,
                "expected": round(expected, 1),
                "tagged": now.is_tagged,
                "accepted": now.n_accepted,
                "rejected": now.n_rejected,
                "progress": f"{count(now.n_suggestions, 'suggestion')} left for "
                f"{count(now.n_to_review, 'photograph')}, about {expected:,.0f} correct"
                if now.n_suggestions
                else "No suggestions left"
                if now.n_accepted or now.n_rejected
                else "",
                "by_name": bool(self.fit.words),
                "pace": pace,
                "can_undo": catalogue.decisions.last_run() is not None,
                "can_redo": catalogue.decisions.last_undo() is not None,
                "fit": self._background_state(),
                "write": self.writer.state(),
            }

    def rest(self) -> str:
        """Say what the suggestions that are left bring, and how long they take."""
        with self.readers.connection() as catalogue:
            now = catalogue.suggestions.progress()
            lent = Reading(catalogue, self.order)
            minutes = self._forecast.minutes(lent, now.n_suggestions)
            expected = self.order.expected(catalogue, now.expected)
        among = count(now.n_suggestions, "suggestion")
        text = f"About {count(round(expected), 'correct tag')} among {among}"
        return text if minutes is None else f"{text}, in {duration(minutes)} at your pace"

    def _background_state(self) -> dict[str, Any]:
        """Return the state of background work, or that the folder is no longer watched."""
        state = self.fit.state()
        error = None if self._watcher is None else self._watcher.error
        if error is None or state["state"] == "running":
            return state
        message = f"New photographs are no longer noticed: {error}. Start the review again."
        return {**state, "state": "failed", "text": message}

    def file_of(self, content: int) -> tuple[str, str] | None:
        """Return the path and the digest of a photograph, or None if it is unknown."""
        with self.readers.connection() as catalogue:
            file = catalogue.photographs.files_of([content]).get(content)
            return None if file is None else (catalogue.absolute(file.path), file.digest)

    # --- the fit ----------------------------------------------------------------------------

    def _fit_if_due(self) -> None:
        now = time.monotonic()
        if not self._fits or now - self._checked_at < _CHECK_INTERVAL or self.fit.is_running:
            return
        self._checked_at = now
        with self.readers.connection() as catalogue:
            needs = catalogue.model.needs()
        if needs.is_due and not needs.tags and not self.fit.failed_at(needs):
            self.fit.start(needs)

    def catch_up(self) -> bool:
        """Scan the folder, learn and suggest in the background; after the job that runs, if any."""
        with self.readers.connection() as catalogue:
            needs = catalogue.model.needs()
        is_started = self.fit.start(needs, "catch-up")
        self._is_behind = not is_started
        return is_started

    def suggest_common_tags(self) -> bool:
        """Suggest common tags by name, if there is nothing to learn from; as `catch_up`."""
        with self.readers.connection() as catalogue:
            self.fit.words = catalogue.model.common_tags()
        return self.catch_up()

    def start_fit(self) -> bool:
        """Start a fit, and return whether it started."""
        with self.readers.connection() as catalogue:
            needs = catalogue.model.needs()
        return not needs.tags and self.fit.start(needs)

    def _renew(self, has_ended: bool) -> None:
        """Use new suggestions, and tell the pages when a job has ended."""
        self.order.renew()
        self.words.renew()
        if has_ended:
            with self._writing:
                self.version += 1
            if self._is_behind:
                self.catch_up()
