"""Series: photographs that belong together, by time, by name and by what they look like.

The shots of a burst or of one event carry the same tags. Where some are learned from and others
held out, held-out figures and confidences are too good for photographs of other events. So a
series is held out as a whole.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tagkin.arrays import Array
from tagkin.collection import Capture, read_capture
from tagkin.model_selection import Links, linked_groups
from tagkin.model_selection.groups import NearImages

__all__ = ["find_series"]

_EVENT = 300.0  # seconds between two shots of one event, at most
_BURST = 60  # shots in one second, at most: with more of them the clock was never set
_STEPS = 3  # from one number in a file's name to the next of a series
_NAMED_CLOSENESS = 0.36  # of photographs whose names follow each other; others: groups.CLOSENESS
_NUMBER = re.compile(r"(.*?)(\d{3,})\D*\d{0,2}\D*$", re.DOTALL)


def find_series(files: Sequence[str], features: Array, n_folds: int) -> np.ndarray:
    """The series that each photograph belongs to, by number, shape (N,).

    Two photographs are linked where the same camera took them within five minutes, where their
    features hardly differ, and where the numbers in their names follow each other and their
    features differ little. A series is no larger than one of the folds: a chain through a whole
    collection breaks at its weakest links.

    Parameters
    ----------
    files : list of N paths
        Those that are not there have no time of capture, unless it is in their name.
    features : array of shape (N, d)
    n_folds : int
    """
    n, near = len(files), NearImages(features)
    links = [
        _links_by_time([read_capture(file) for file in files]),
        near.duplicates(),
        near.pairs(*_following(files), closeness=_NAMED_CLOSENESS),
    ]
    return linked_groups(n, links, max_size=max(1, n // n_folds))


def _links_by_time(taken: Sequence[Capture | None]) -> Links:
    """Photographs that one camera took one after the other."""
    known = [(one.camera, one.time, i) for i, one in enumerate(taken) if one is not None]
    in_one_second = Counter(moment[:2] for moment in known)
    shots = sorted(moment for moment in known if in_one_second[moment[:2]] <= _BURST)
    found = [
        (i, j, (after - before).total_seconds() / _EVENT)
        for (camera, before, i), (same, after, j) in pairwise(shots)
        if camera == same and (after - before).total_seconds() <= _EVENT
    ]
    return Links(*map(np.array, zip(*found, strict=True))) if found else Links.none()


def _following(files: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of photographs of one folder whose names differ by the next number, or not at all."""
    numbered = defaultdict(list)
    for i, file in enumerate(files):
        folder, name = os.path.split(file)
        found = _NUMBER.match(os.path.splitext(name)[0])
        if found is not None:
            numbered[folder, found[1].casefold()].append((int(found[2]), i))
    pairs = [
        (i, j)
        for members in numbered.values()
        for (one, i), (following, j) in pairwise(sorted(members))
        if following - one <= _STEPS
    ]
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return first, second
