"""Events: photographs taken one after the other, without a pause of three hours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tagkin.catalogue.database import LISTED, Database, as_list

__all__ = ["Moment", "read_moments", "split_events"]

PAUSE = np.timedelta64(3, "h")


class Moment(NamedTuple):
    """When a photograph was taken, and in which folder it is."""

    time: np.datetime64
    """By the camera's clock; NaT if it is unknown."""
    folder: str
    """From the root; empty for the top folder."""


def read_moments(database: Database, contents: Iterable[int] | None = None) -> dict[int, Moment]:
    """Return the moments of existing contents, or of some of them; of copies, the earliest."""
    condition, values = (
        ("", ()) if contents is None else (f"AND content {LISTED} ", (as_list(contents),))
    )
    rows = database.rows(
        "SELECT content, min(taken), min(path) FROM photographs "
        f"WHERE gone IS NULL AND content IS NOT NULL {condition}GROUP BY content",
        values,
    )
    times = np.array([taken or "NaT" for _, taken, _ in rows], dtype="datetime64[ms]")
    return {
        content: Moment(time, path.rpartition("/")[0])
        for (content, _, path), time in zip(rows, times, strict=True)
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
