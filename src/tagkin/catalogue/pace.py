"""How fast a person answers on the review page."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Sequence

from tagkin.catalogue.database import Part

__all__ = ["Pace"]

_N_RUNS = 200  # last runs that are considered
_LONGEST = 180.0  # seconds between two steps; after a longer time, the person was away
_SHORTEST = 0.25  # seconds; nobody sees and answers faster, so a script or a held key did
_FEWEST, _BRIEFEST = 20, 30.0  # answers, and seconds of answering, from which a pace is known


class Pace(Part):
    """The pace of a review: ``catalogue.pace``."""

    def seconds_per_answer(self) -> float | None:
        """Return the median seconds per answer in a person's last steps; None after too few.

        A step takes the time since the step before it. Each of its answers takes an equal part.
        Steps that are faster than a person do not count.
        """
        rows = self._db.rows(
            "SELECT started_at, what, json_extract(outcome, '$.decisions') FROM runs "
            "WHERE what IN ('review', 'finish', 'undo') OR what LIKE 'tags %' "
            "ORDER BY id DESC LIMIT ?",
            (_N_RUNS,),
        )
        steps: list[tuple[float, int]] = []  # seconds per answer, answers
        moments = [datetime.datetime.fromisoformat(row[0]).timestamp() for row in rows]
        for (_, what, n), moment, before in zip(rows, moments, moments[1:], strict=False):
            if what == "review" and n and _SHORTEST <= moment - before <= _LONGEST:
                steps.append(((moment - before) / n, n))
        return _weighted_median(steps)


def _weighted_median(steps: Sequence[tuple[float, int]]) -> float | None:
    n = sum(weight for _, weight in steps)
    if n < _FEWEST or sum(seconds * weight for seconds, weight in steps) < _BRIEFEST:
        return None
    steps = sorted(steps)
    seen = itertools.accumulate(weight for _, weight in steps)
    return next(value for (value, _), so_far in zip(steps, seen, strict=True) if 2 * so_far >= n)
