"""When, where and in which folder the photographs of a catalogue were taken, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import numpy as np

from tagkin.catalogue.database import Database
from tagkin.catalogue.known_catalogues import server_name
from tagkin.collection.times import Moments, tidy_times, to_seconds

__all__ = ["MomentIndex"]


class MomentIndex:
    """The moments of all contents of a catalogue.

    It is read once, because the clock of a camera is known from all of its photographs;
    `is_current` tells whether a scan ended since. Copies of a photograph have the moment of one.
    """

    def __init__(self, database: Database):
        self._key = _last_scan(database)
        rows = database.rows(
            "SELECT content, gone IS NOT NULL, path, taken, latitude, longitude, "
            "trim(coalesce(camera, '') || ' ' || coalesce(serial, '')) "
            "FROM photographs WHERE content IS NOT NULL"
        )
        rows.sort(key=itemgetter(0, 1, 2))  # copies: the first existing path
        columns = list(zip(*rows, strict=True)) if rows else [()] * 7
        self._contents, first = np.unique(np.array(columns[0], np.int64), return_index=True)
        _, _, paths, taken, north, east, cameras = (
            [column[i] for i in first.tolist()] for column in columns
        )
        has_folders = not server_name(database.root)  # a server's paths only repeat the time
        self._moments = Moments(  # the last row is that of unknown contents
            np.append(tidy_times(to_seconds(taken), cameras), np.nan),
            np.array([[*north, None], [*east, None]], np.float64).T,
            np.array([*(p.rpartition("/")[0] * has_folders for p in paths), ""], dtype=object),
        )

    def is_current(self, database: Database) -> bool:
        """Whether no scan ended since this was read."""
        return self._key == _last_scan(database)

    def of(self, contents: Sequence[int] | np.ndarray) -> Moments:
        """Return the moments of contents, in their order; those of other contents are unknown."""
        wanted = np.asarray(contents, np.int64)
        rows = np.searchsorted(self._contents, wanted)
        padded = np.append(self._contents, -1)
        return self._moments.take(np.where(padded[rows] == wanted, rows, len(self._contents)))

    def near(self, content: int, seconds: float) -> list[int]:
        """Return the other contents that were taken at most some seconds before or after one."""
        (time,) = self.of([content]).times
        is_near = np.abs(self._moments.times[:-1] - time) <= seconds
        return self._contents[is_near & (self._contents != content)].tolist()


def _last_scan(database: Database) -> int | None:
    query = "SELECT max(id) FROM runs WHERE what = 'scan' AND ended_at IS NOT NULL"
    number: int | None = database.value(query)
    return number
