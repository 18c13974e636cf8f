"""How long the rest of a review takes at a person's own pace."""

from __future__ import annotations

import threading
import time

from tagkin.catalogue import Catalogue
from tagkin.server.order import Order

_TEN_MINUTES = 600
_CHEAP = 0.02  # seconds; a forecast that takes longer is kept for a while
_KEPT = 15.0  # seconds


class Forecast:
    """A sentence about the rest of a review, for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = -1
        self._made_at = self._cost = 0.0
        self._seconds: float | None = None
        self._right = 0.0

    def text(self, catalogue: Catalogue, n_left: int, order: Order, version: int) -> str:
        """Say how many minutes are left and what the next ten bring; empty without a pace.

        `version` changes with every decision.
        """
        with self._lock:
            now = time.monotonic()
            is_old = self._cost < _CHEAP or now - self._made_at > _KEPT
            if version != self._version and is_old:
                self._update(catalogue, order)
                self._version, self._made_at = version, now
                self._cost = time.monotonic() - now
            seconds, right = self._seconds, self._right
        return "" if seconds is None or not n_left else _write(n_left * seconds / 60, right)

    def _update(self, catalogue: Catalogue, order: Order) -> None:
        self._seconds = catalogue.runs.seconds_per_answer()
        if self._seconds is not None:
            n_soon = round(_TEN_MINUTES / max(self._seconds, 0.01))
            self._right = order.forecast(catalogue, n_soon)


def _write(minutes: float, right: float) -> str:
    if minutes < 1.5:
        left = "About a minute"
    elif minutes < 100:
        left = f"About {minutes:.0f} minutes"
    else:
        left = f"About {minutes / 60:,.0f} hours"
    soon = f"; the next ten minutes bring about {right:,.0f} correct tags" if minutes > 10 else ""
    return f"{left} left at your pace{soon}"
