"""What is known of the files of one extraction, wherever their features are computed."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tagkin.features.base import Backbone
from tagkin.features.cache import FeatureCache
from tagkin.images import Failure

__all__ = ["Extraction", "ExtractionRun", "same_state", "status_of"]


@dataclass(frozen=True)
class Extraction:
    """Features of the photographs that could be read, and what happened to the others.

    Attributes
    ----------
    files : list of str
        The readable ones, in the order given.
    features : array (n_files, dimension), float32
    digests : list of str
        SHA-256 of the content of each.
    failures : list of Failure
        The unreadable ones, in the order given.
    n_cached : int
        How many of the files have their features from the cache.
    n_computed : int
        How many contents went through the backbone. Copies of one photograph count once.
    """

    files: list[str]
    features: np.ndarray
    digests: list[str]
    failures: list[Failure]
    n_cached: int
    n_computed: int


class ExtractionRun:
    """Files, and what was found of them so far. Files go by their numbers; threads may share it.

    Parameters
    ----------
    files : list of n str
    backbone : Backbone
    cache : FeatureCache or None

    Attributes
    ----------
    features : array (n, dimension), float32
        Rows are set as they become known.
    statuses : list of n stat results or None
        Of the files as the run found them.
    """

    def __init__(self, files: list[str], backbone: Backbone, cache: FeatureCache | None):
        n = len(files)
        self.files, self.backbone, self.cache = files, backbone, cache
        self.features = np.empty((n, backbone.dimension), dtype=np.float32)
        self.statuses: list[os.stat_result | None] = [None] * n
        self._digests: list[str | None] = [None] * n
        self._reasons: list[str | None] = [None] * n
        self._first: dict[str, int] = {}  # the file that stands for all with its content
        self._n_cached = self._n_computed = 0
        self._lock = threading.Lock()

    def take_from_cache(self) -> list[int]:
        """Take what the cache knows without reading files; the files that are left."""
        if self.cache is None:
            return list(range(len(self.files)))
        self.statuses = [status_of(file) for file in self.files]
        known = self.cache.digests(self.files, self.statuses)
        there = self.cache.load(self.backbone, known, self.features)
        for i in np.flatnonzero(there):
            self._digests[i] = known[i]
        self._n_cached = int(there.sum())
        return np.flatnonzero(~there).tolist()

    def fail(self, i: int, reason: str) -> None:
        """A file, and all with its content, cannot be used."""
        self._reasons[i] = reason

    def is_first(self, i: int, digest: str) -> bool:
        """Note the content of a file; whether no other file of the run has it.

        The others get the features of the first one, or its failure.
        """
        self._digests[i] = digest
        with self._lock:
            return self._first.setdefault(digest, i) == i

    def take_content_from_cache(self, i: int, digest: str) -> bool:
        """Take the features of a content, which may have been another file's; whether there."""
        if self.cache is None:
            return False
        found = bool(self.cache.load(self.backbone, [digest], self.features[i : i + 1])[0])
        with self._lock:
            self._n_cached += found
        return found

    def store(self, numbers: Sequence[int], features: np.ndarray) -> None:
        """Take features (len(numbers), dimension) of first files, and keep them in the cache.

        Those that are not finite make failures.
        """
        if not len(numbers):
            return
        with self._lock:
            self._n_computed += len(numbers)
        fine = np.isfinite(features).all(axis=1)
        for i in np.asarray(numbers)[~fine]:
            self.fail(int(i), f"{self.backbone.name} gives features that are not finite")
        kept = np.asarray(numbers)[fine]
        self.features[kept] = features[fine]
        if self.cache is not None and len(kept):
            digests = [str(self._digests[i]) for i in kept]
            self.cache.store(self.backbone, digests, features[fine])

    def remember(self, numbers: Sequence[int], statuses: Sequence[os.stat_result]) -> None:
        """Keep in the cache which content files have, so that they need not be read again."""
        if self.cache is not None:
            files = [self.files[i] for i in numbers]
            self.cache.remember(files, statuses, [str(self._digests[i]) for i in numbers])

    def result(self, names: Sequence[str] | None = None) -> Extraction:
        """All that was found, under other names for the files if given."""
        names = self.files if names is None else names
        for i, digest in enumerate(self._digests):
            first = self._first.get(digest, i) if digest is not None else i
            if first != i:
                self.features[i] = self.features[first]
                self._reasons[i] = self._reasons[first]
        kept = [i for i, reason in enumerate(self._reasons) if reason is None]
        for to, i in enumerate(kept):  # the readable ones moved together, without a second array
            if to != i:
                self.features[to] = self.features[i]
        return Extraction(
            [names[i] for i in kept],
            self.features[: len(kept)],
            [str(self._digests[i]) for i in kept],
            [Failure(n, r) for n, r in zip(names, self._reasons, strict=True) if r is not None],
            self._n_cached,
            self._n_computed,
        )


def status_of(file: str) -> os.stat_result | None:
    """Of a file; None where there is none."""
    try:
        return os.stat(file)
    except (OSError, ValueError):
        return None


def same_state(before: os.stat_result, after: os.stat_result | None) -> bool:
    """Whether a file stayed as it was, by its size, time of change and inode."""
    return after is not None and (before.st_size, before.st_mtime_ns, before.st_ino) == (
        after.st_size,
        after.st_mtime_ns,
        after.st_ino,
    )
