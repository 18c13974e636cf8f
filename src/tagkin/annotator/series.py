"""Series: photographs that are nearly the same picture, or seem to be taken together.

They have the same tags. If some are learned from and others held out, held-out metrics and
confidences are too good for other photographs. So a series is held out as a whole. Photographs
with a known time are held out with their event or trip, too; see `tagkin.model_selection.kinds`.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tagkin.arrays import Array
from tagkin.collection import Capture
from tagkin.model_selection.groups import Links, join_links, link_alike, link_copies
from tagkin.progress import Progress, silent

__all__ = ["TOGETHER", "Together", "find_bursts", "find_series", "is_burst"]


@dataclass(frozen=True)
class Together:
    """Numbers that say which photographs were taken together."""

    succession: float = 5.0
    """Seconds between two shots of one burst, at most."""
    most_shots: int = 100
    """Shots of a burst."""
    most_per_second: int = 60
    """Shots: with more, the clock was never set."""
    steps: int = 3
    """Steps from one number in a file's name to the next of a series, at most."""
    alike: float = 0.8
    """Least cosine of two shots of a burst, if their times or names say that they may be one. With
    features of EfficientNet-Lite0, 98 of 100 frames that were cut from one photograph (70 to 95 %
    of its side, turned by up to 4°, half a stop darker or brighter) are this near to another."""


TOGETHER = Together()
_NUMBER = re.compile(r"(.*?)(\d{3,})\D*\d{0,2}\D*$", re.DOTALL)


def find_series(
    files: Sequence[str],
    features: Array,
    times: np.ndarray | None = None,
    n_folds: int = 3,
    *,
    progress: Progress = silent,
) -> np.ndarray:
    """Return the number of each photograph's series, shape (N,).

    Two photographs are linked if they are nearly the same picture. If the time of one is unknown,
    they also are if the numbers in their names are consecutive and they look alike. A chain through
    a whole collection breaks at its weakest links.

    Parameters
    ----------
    files : list of N paths
        A missing file has no time of capture.
    features : array of shape (N, d)
    n_folds : int, default 3
        A series has at most N / n_folds photographs. With 10, and 6 series of 8 shots each, a
        series was in two folds, and suggestions at 80 % were right in 34 %.
    """
    progress("Finding copies", 0, 1)
    n = len(files)
    untimed = np.ones(n, bool) if times is None else np.isnan(times)
    first, second = _consecutive_names(files)
    by_name = untimed[first] | untimed[second]
    links = [
        link_alike(features, first[by_name], second[by_name], TOGETHER.alike),
        link_copies(features),
    ]
    return join_links(n, links, max_size=max(1, n // n_folds))


def find_bursts(captures: Sequence[Capture | None], features: Array) -> np.ndarray:
    """Return the number of each photograph's burst, shape (N,).

    Two photographs of a burst were taken by the same camera within five seconds, and look alike. So
    one decision can hold for all of them.

    Parameters
    ----------
    captures : list of N captures or None
    features : array of shape (N, d)
    """
    first, second, _ = _links_by_time(_leave_out_unset_clocks(captures), TOGETHER.succession)
    alike = link_alike(features, first, second, TOGETHER.alike)
    return join_links(len(captures), [alike], max_size=TOGETHER.most_shots)


def is_burst(before: Capture, after: Capture) -> bool:
    """Whether one camera took two photographs in succession, so they may be of one burst."""
    seconds = (after.time - before.time).total_seconds()
    return before.camera == after.camera and seconds <= TOGETHER.succession


def _leave_out_unset_clocks(captures: Sequence[Capture | None]) -> list[Capture | None]:
    """Return the captures, with None for a time that too many photographs share."""
    counts, most = Counter(captures), TOGETHER.most_per_second
    return [capture if counts[capture] <= most else None for capture in captures]


def _links_by_time(captures: Sequence[Capture | None], longest: float) -> Links:
    """Link photographs that one camera took in succession, at most `longest` seconds apart."""
    shots = sorted((c.camera, c.time, i) for i, c in enumerate(captures) if c is not None)
    links = [
        (i, j, (after - before).total_seconds() / longest)
        for (camera, before, i), (same, after, j) in pairwise(shots)
        if camera == same and (after - before).total_seconds() <= longest
    ]
    return Links(*map(np.array, zip(*links, strict=True))) if links else Links.none()


def _consecutive_names(files: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of photographs of one folder with consecutive or equal numbers."""
    numbered = defaultdict(list)
    for i, file in enumerate(files):
        folder, name = os.path.split(file)
        match = _NUMBER.match(os.path.splitext(name)[0])
        if match is not None:
            numbered[folder, match[1].casefold()].append((int(match[2]), i))
    pairs = [
        (i, j)
        for members in numbered.values()
        for (number, i), (following, j) in pairwise(sorted(members))
        if following - number <= TOGETHER.steps
    ]
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return first, second
