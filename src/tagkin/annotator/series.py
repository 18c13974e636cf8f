"""Series: photographs that belong together by time, name and looks.

The shots of a burst or of one event have the same tags. If some are learned from and others held
out, held-out metrics and confidences are too good for photographs of other events. So a series is
held out as a whole.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tagkin.annotator.problem import n_folds as count_folds
from tagkin.arrays import Array
from tagkin.collection import Capture, read_capture
from tagkin.model_selection import Links, linked_groups
from tagkin.model_selection.groups import NearImages
from tagkin.progress import Progress, silent

__all__ = ["find_bursts", "find_series", "is_burst"]

_EVENT = 300.0  # seconds between two shots of one event, at most
_SUCCESSION = 5.0  # seconds between two shots of one burst, at most
_MAX_BURST = 100  # shots of a burst
_BURST = 60  # shots in one second, at most: with more, the clock was never set
_STEPS = 3  # from one number in a file's name to the next of a series
_NAMED_CLOSENESS = 0.36  # of photographs with consecutive names; model_selection.groups has others
_NUMBER = re.compile(r"(.*?)(\d{3,})\D*\d{0,2}\D*$", re.DOTALL)


def find_series(
    files: Sequence[str],
    features: Array,
    n_folds: int | None = None,
    *,
    progress: Progress = silent,
) -> np.ndarray:
    """Return the number of each photograph's series, shape (N,).

    Two photographs are linked if the same camera took them within five minutes, if their features
    hardly differ, or if the numbers in their names are consecutive and their features differ
    little. A series is not larger than a fold: a chain through a whole collection breaks at its
    weakest links.

    Parameters
    ----------
    files : list of N paths
        A missing file has no time of capture, unless its name has one.
    features : array of shape (N, d)
    n_folds : int, optional
        Number of folds. Default: as in learning.
    """
    progress("Finding series", 0, 1)
    n, near = len(files), NearImages(features)
    links = [
        _links_by_time([read_capture(file) for file in files], _EVENT),
        near.duplicates(),
        near.pairs(*_consecutive_names(files), closeness=_NAMED_CLOSENESS),
    ]
    n_parts = count_folds(n) if n_folds is None else n_folds
    return linked_groups(n, links, max_size=max(1, n // n_parts))


def find_bursts(captures: Sequence[Capture | None], features: Array) -> np.ndarray:
    """Return the number of each photograph's burst, shape (N,).

    Two photographs of a burst were taken by the same camera within five seconds, and look alike as
    photographs of a series with consecutive names do. So one decision can hold for all of them.

    Parameters
    ----------
    captures : list of N captures or None
    features : array of shape (N, d)
    """
    in_succession = _links_by_time(captures, _SUCCESSION)
    pairs = in_succession.first.astype(np.int64), in_succession.second.astype(np.int64)
    alike = NearImages(features).pairs(*pairs, closeness=_NAMED_CLOSENESS)
    return linked_groups(len(captures), [alike], max_size=_MAX_BURST)


def is_burst(before: Capture, after: Capture) -> bool:
    """Whether one camera took two photographs in succession, so they may be of one burst."""
    return (
        before.camera == after.camera and (after.time - before.time).total_seconds() <= _SUCCESSION
    )


def _links_by_time(captures: Sequence[Capture | None], longest: float) -> Links:
    """Link photographs that one camera took in succession, at most `longest` seconds apart."""
    known = [(c.camera, c.time, i) for i, c in enumerate(captures) if c is not None]
    in_one_second = Counter(moment[:2] for moment in known)
    shots = sorted(moment for moment in known if in_one_second[moment[:2]] <= _BURST)
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
        if following - number <= _STEPS
    ]
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return first, second
