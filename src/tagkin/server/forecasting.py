"""How long the rest of a review takes, and what its next minutes bring."""

from __future__ import annotations

import threading
import time

from tagkin.server.order import Reading

__all__ = ["Forecast", "duration"]

_SOON = 600  # seconds that a forecast looks ahead
_KEPT = 15.0  # seconds for which a forecast is kept


class Forecast:
    """A sentence about the rest of a review, for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made_at = float("-inf")
        self._seconds: float | None = None
        self._right = 0.0

    def text(self, reading: Reading, n_left: int) -> str:
        """Say how many minutes are left and what the next ten bring; empty without a pace."""
        minutes = self.minutes(reading, n_left)
        return "" if minutes is None else _write(minutes, self._right)

    def minutes(self, reading: Reading, n_left: int) -> float | None:
        """Return how many minutes so many answers take; None without answers or a pace."""
        with self._lock:
            if time.monotonic() > self._made_at + _KEPT:
                self._seconds = reading.catalogue.runs.seconds_per_answer()
                if self._seconds is not None:
                    self._right = reading.forecast(round(_SOON / max(self._seconds, 0.01)))
                self._made_at = time.monotonic()
            seconds = self._seconds
        return None if seconds is None or not n_left else n_left * seconds / 60


def duration(minutes: float) -> str:
    """Write how long something takes, such as "about 20 minutes"."""
    if minutes < 1.5:
        return "about a minute"
    return f"about {minutes:.0f} minutes" if minutes < 100 else f"about {minutes / 60:,.0f} hours"


def _write(minutes: float, right: float) -> str:
    left = duration(minutes).capitalize()
    soon = f"; the next ten minutes bring about {right:,.0f} correct tags" if minutes > 10 else ""
    return f"{left} left at your pace{soon}"
