"""What a review holds while it runs: the catalogue, its readers, thumbnails, the fit."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tagkin.catalogue import Batch, Catalogue, Decided, Pair, Shown
from tagkin.server.background import BackgroundFit
from tagkin.server.mapping import CollectionMap
from tagkin.server.order import Order, StoredOrder
from tagkin.server.prefetch import ThumbnailPrefetcher
from tagkin.server.readers import Readers
from tagkin.server.thumbnails import Thumbnails

__all__ = ["Review"]

_N_STEPS = 100  # whose answers are kept, as some may have got lost
_LOOKED_AT_EVERY = 20.0  # seconds between two looks at whether a new fit pays


class Review:
    """A review of one collection, by any number of windows.

    Parameters
    ----------
    catalogue : Catalogue
        Open for writing: as long as the review runs, nobody else writes to it.
    cache : Path
        The folder of caches.
    order : Order, optional
        By default that of the stored confidences.
    fits : bool, default True
        Whether a new fit is started in the background when it pays.
    ahead : bool, default False
        Whether thumbnails of all photographs are made in the background.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        cache: Path,
        *,
        order: Order | None = None,
        fits: bool = True,
        ahead: bool = False,
    ):
        self._writer, self._fits = catalogue, fits
        self._writing = threading.Lock()
        self.readers = Readers(catalogue.path)
        self.order = order or StoredOrder()
        self.thumbnails = Thumbnails(cache)
        self._prefetcher = ThumbnailPrefetcher(self.readers, self.thumbnails) if ahead else None
        self.map = CollectionMap(catalogue.path)
        self.fit = BackgroundFit(catalogue.path, self._fitted)
        self._steps: OrderedDict[str, list[Batch | Decided]] = OrderedDict()
        self._looked_at = 0.0
        # another number after every change, and after a new start
        self.version = time.time_ns() // 1000

    @property
    def is_at_work(self) -> bool:
        """Whether a thread goes on after `close`: one in a library cannot be ended."""
        return self.order.is_at_work

    def close(self) -> None:
        """End what goes on in the background, and let the next writer in."""
        self.fit.stop()
        self.order.close()
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
        step: str | None = None,
    ) -> Batch:
        """Decide in one step, as `Decisions.decide_pairs`; it is on the disk when this returns.

        A window that got no answer sends the same `step` again: its own decisions may change.
        """
        with self._writing:
            before = self._steps.get(step or "", [])
            batch = self._writer.decisions.decide_pairs(
                accepted,
                rejected,
                only_open=only_open,
                together=together,
                repeats={one.run for one in before},
            )
            if batch.run is not None:
                self._keep_answer(step, batch)
                self.order.learn(self._writer.decisions.verdicts_after(batch.run))
                self._changed()
        self.order.catch_up()
        self._fit_if_due()
        return batch

    def undo(self, run: int | None = None, *, step: str | None = None) -> Decided:
        """Undo a run, by default the last one; the same `step` again changes nothing."""
        if run is None:
            return self._undo(self._writer.decisions.undo_last, step)
        return self._undo(lambda: self._writer.decisions.undo(run), step)

    def redo(self, *, step: str | None = None) -> Decided:
        """Redo what was undone last; the same `step` again changes nothing."""
        return self._undo(self._writer.decisions.redo_last, step)

    def _undo(self, change: Callable[[], Decided], step: str | None) -> Decided:
        with self._writing:
            for before in self._steps.get(step or "", []):
                if isinstance(before, Decided):
                    return before
            done = change()
            if done.run is not None:
                self._keep_answer(step, done)
                self.order.learn(self._writer.decisions.verdicts_after(done.run))
                self._changed()
        self.order.catch_up()
        return done

    def _keep_answer(self, step: str | None, answer: Batch | Decided) -> None:
        if step is not None:
            self._steps.setdefault(step, []).append(answer)
            while len(self._steps) > _N_STEPS:
                self._steps.popitem(last=False)

    def _changed(self) -> None:
        self.version += 1

    # --- how it stands ----------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The progress line, what can be undone, and what the background is at."""
        self._fit_if_due()
        with self.readers.one() as catalogue:
            now, live = catalogue.suggestions.progress(), self.order.expected()
            return {
                "version": self.version,
                "photographs": now.n_photographs,
                "suggestions": now.n_suggestions,
                "to_review": now.n_to_review,
                "expected": round(sum(live.values()) if live else now.expected, 1),
                "accepted": now.n_accepted,
                "rejected": now.n_rejected,
                "can_undo": catalogue.decisions.last_run() is not None,
                "can_redo": catalogue.decisions.last_undo() is not None,
                "is_live": self.order.is_live,
                "is_opening": self.order.is_opening,
                "fit": self.fit.state(),
            }

    def file_of(self, content: int) -> tuple[str, str] | None:
        """Where a photograph is and its digest; None where there is none of that number."""
        with self.readers.one() as catalogue:
            found = catalogue.photographs.files_of([content]).get(content)
            return None if found is None else (catalogue.absolute(found.path), found.digest)

    def wish_for(self, contents: Sequence[int], size: int) -> None:
        """Let thumbnails be made that the next page will ask for."""
        with self.readers.one() as catalogue:
            found = catalogue.photographs.files_of(contents)
            wishes = [
                (catalogue.absolute(found[c].path), found[c].digest, size)
                for c in contents
                if c in found
            ]
        self.thumbnails.wish(wishes)

    # --- the fit ----------------------------------------------------------------------------

    def _fit_if_due(self) -> None:
        now = time.monotonic()
        if not self._fits or now - self._looked_at < _LOOKED_AT_EVERY or self.fit.is_running:
            return
        self._looked_at = now
        with self.readers.one() as catalogue:
            needs, model = catalogue.model.needs(), catalogue.model.fingerprint()
        if self.fit.failed_at(needs):
            return
        if needs.is_due and not needs.tags:
            self.fit.start(needs)
        elif model is not None and needs.n_new:
            self.fit.start(needs, "suggest")
        elif model is not None and self.map.model != model:
            self.fit.start(needs, "map")

    def start_fit(self) -> bool:
        """Start a fit now; False where one is running, or there is nothing to learn from."""
        with self.readers.one() as catalogue:
            needs = catalogue.model.needs()
        return not needs.tags and self.fit.start(needs)

    def _fitted(self) -> None:
        """A fit has ended: there may be another model, and other suggestions."""
        self.order.renew()
        with self._writing:
            self._changed()
