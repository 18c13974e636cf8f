"""Events: photographs taken one after the other, without a pause of three hours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tagkin.catalogue.database import LISTED, Database, Row, as_list
from tagkin.collection.times import leave_out_unset, to_seconds

__all__ = ["EventIndex", "Moment", "read_moments", "split_events"]

PAUSE = np.timedelta64(3, "h")
MOST = 200  # photographs on a page


class Moment(NamedTuple):
    """When a photograph was taken, and in which folder it is."""

    time: np.datetime64
    """By the camera's clock; NaT if it is unknown."""
    folder: str
    """From the root; empty for the top folder."""


def read_moments(database: Database, contents: Iterable[int] | None = None) -> dict[int, Moment]:
    """Return the moments of existing contents, or of some of them; of copies, the earliest.

    Clocks that were never set and dates without a time are unknown times.
    """
    condition, values = (
        ("", ()) if contents is None else (f"AND content {LISTED} ", (as_list(contents),))
    )
    rows = database.rows(
        "SELECT content, min(taken), coalesce(camera, ''), min(path) FROM photographs "
        f"WHERE gone IS NULL AND content IS NOT NULL {condition}GROUP BY content",
        values,
    )
    seconds = leave_out_unset(to_seconds([row[1] for row in rows]), [row[2] for row in rows])
    times = np.full(len(rows), np.datetime64("NaT"), "datetime64[ms]")
    is_known = ~np.isnan(seconds)
    times[is_known] = np.round(1000 * seconds[is_known]).astype(np.int64)
    return {
        content: Moment(time, path.rpartition("/")[0])
        for (content, _, _, path), time in zip(rows, times, strict=True)
    }


def split_events(times: np.ndarray) -> np.ndarray:
    """Return the number (N,) of each photograph's event, from 0 in the order of time.

    `times` (N,) are known, in any order. A pause of three hours or more ends an event.
    """
    order = np.argsort(times, kind="stable")
    starts = np.diff(times[order], prepend=times[order][:1]) >= PAUSE
    numbers = np.empty(len(times), np.int64)
    numbers[order] = np.cumsum(starts)
    return numbers


class EventIndex:
    """The events of all existing photographs, in the order of time.

    Photographs of a folder without a time are one event. More than `MOST` photographs are several
    events, because a page shows one.
    """

    def __init__(self, database: Database):
        self._key = _last_change(database)
        moments = read_moments(database)
        times = np.array([moment.time for moment in moments.values()], dtype="datetime64[ms]")
        folders = np.array([moment.folder for moment in moments.values()], dtype=object)
        contents = np.fromiter(moments, np.int64, len(moments))
        unknown = np.isnat(times)
        numbers = np.zeros(len(times), np.int64)
        numbers[~unknown] = split_events(times[~unknown])
        _, of_folder = np.unique(folders[unknown].astype(str), return_inverse=True)
        numbers[unknown] = len(times) + of_folder
        order = np.lexsort((contents, times.astype(np.int64), numbers))
        numbers = numbers[order]
        rank = np.arange(len(order)) - np.searchsorted(numbers, numbers)
        starts = np.diff(numbers, prepend=-1) > 0
        starts |= rank % MOST == 0
        self._in_order = contents[order]
        self._starts = np.append(np.flatnonzero(starts), len(order))
        self.firsts = self._in_order[self._starts[:-1]]
        """The first content of each event, which names it."""
        self._events = np.full(
            int(contents.max(initial=0)) + 2, -1
        )  # by content; the last: unknown
        self._events[contents[order]] = np.cumsum(starts) - 1

    def is_current(self, database: Database) -> bool:
        """Whether it knows all photographs."""
        return self._key == _last_change(database)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def of(self, contents: np.ndarray) -> np.ndarray:
        """Return the event (n,) of each content, or −1 if it is unknown."""
        return np.asarray(self._events[np.minimum(contents, len(self._events) - 1)])

    def members(self, event: int) -> list[int]:
        """Return the contents of an event, in the order in which they were taken."""
        return self._in_order[self._starts[event] : self._starts[event + 1]].tolist()


def _last_change(database: Database) -> Row | None:
    return database.row(
        "SELECT (SELECT max(id) FROM runs WHERE what = 'scan' AND ended_at IS NOT NULL), "
        "(SELECT max(id) FROM photographs), (SELECT max(id) FROM contents)"
    )
