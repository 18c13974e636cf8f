"""The state of an extraction, local or distributed."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from tagkin.features.backbone import Backbone
from tagkin.features.cache import FeatureCache
from tagkin.images import Failure

__all__ = ["Extraction", "ExtractionRun", "same_state", "status_of"]


@dataclass(frozen=True)
class Extraction:
    """Features of the readable photographs, and the failures of the others."""

    files: list[str]
    """The readable files, in the order of the input."""
    features: np.ndarray
    """(n_files, dimension), float32."""
    digests: list[str]
    """SHA-256 of each file's content."""
    failures: list[Failure]
    """The unreadable files, in the order of the input."""
    n_cached: int
    """Number of files with features from the cache."""
    n_computed: int
    """Number of contents that the backbone processed. Copies of a photograph count once."""


class ExtractionRun:
    """Files and their results so far. Methods take file numbers; threads may share the object.

    Rows of `features` are set as they become known. `statuses` are the status of each file at the
    start of the run, or None.
    """

    def __init__(self, files: list[str], backbone: Backbone, cache: FeatureCache | None):
        n = len(files)
        self.files, self.backbone, self.cache = files, backbone, cache
        self.features = np.empty((n, backbone.dimension), dtype=np.float32)
        self.statuses: list[os.stat_result | None] = [None] * n
        self._digests: list[str | None] = [None] * n
        self._reasons: list[str | None] = [None] * n
        self._first: dict[str, int] = {}  # the first file with each content
        self._n_cached = self._n_computed = 0
        self._lock = threading.Lock()

    def take_from_cache(self) -> list[int]:
        """Take known features from the cache without reading files; return the other files."""
        if self.cache is None:
            return list(range(len(self.files)))
        self.statuses = [status_of(file) for file in self.files]
        known = self.cache.digests(self.files, self.statuses)
        is_cached = self.cache.load(self.backbone, known, self.features)
        for i in np.flatnonzero(is_cached):
            self._digests[i] = known[i]
        self._n_cached = int(is_cached.sum())
        return np.flatnonzero(~is_cached).tolist()

    def fail(self, i: int, reason: str) -> None:
        """Mark a file, and all files with its content, as failed."""
        self._reasons[i] = reason

    def is_first(self, i: int, digest: str) -> bool:
        """Record the content of a file; whether the file is the first with this content.

        The other files get the features or the failure of the first file.
        """
        self._digests[i] = digest
        with self._lock:
            return self._first.setdefault(digest, i) == i

    def take_content_from_cache(self, i: int, digest: str) -> bool:
        """Take the features of a content from the cache; whether they were there."""
        if self.cache is None:
            return False
        is_cached = bool(self.cache.load(self.backbone, [digest], self.features[i : i + 1])[0])
        with self._lock:
            self._n_cached += is_cached
        return is_cached

    def store(self, numbers: Sequence[int], features: np.ndarray) -> None:
        """Set features (len(numbers), dimension) of first files, and store them in the cache.

        Features that are not finite become failures.
        """
        if not len(numbers):
            return
        with self._lock:
            self._n_computed += len(numbers)
        finite = np.isfinite(features).all(axis=1)
        for i in np.asarray(numbers)[~finite]:
            self.fail(int(i), f"{self.backbone.name} gives features that are not finite")
        usable = np.asarray(numbers)[finite]
        self.features[usable] = features[finite]
        if self.cache is not None and len(usable):
            digests = [str(self._digests[i]) for i in usable]
            self.cache.store(self.backbone, digests, features[finite])

    def remember(self, numbers: Sequence[int], statuses: Sequence[os.stat_result]) -> None:
        """Store the digests of files in the cache, to avoid reading unchanged files again."""
        if self.cache is not None:
            files = [self.files[i] for i in numbers]
            self.cache.remember(files, statuses, [str(self._digests[i]) for i in numbers])

    def result(self, names: Sequence[str] | None = None) -> Extraction:
        """Return the results, with `names` in place of the files' paths if given."""
        names = self.files if names is None else names
        for i, digest in enumerate(self._digests):
            first = self._first.get(digest, i) if digest is not None else i
            if first != i:
                self.features[i] = self.features[first]
                self._reasons[i] = self._reasons[first]
        readable = [i for i, reason in enumerate(self._reasons) if reason is None]
        for to, i in enumerate(readable):  # move readable rows up, without a second array
            if to != i:
                self.features[to] = self.features[i]
        return Extraction(
            [names[i] for i in readable],
            self.features[: len(readable)],
            [str(self._digests[i]) for i in readable],
            [Failure(n, r) for n, r in zip(names, self._reasons, strict=True) if r is not None],
            self._n_cached,
            self._n_computed,
        )


def status_of(file: str) -> os.stat_result | None:
    """Return the status of a file, or None if it does not exist."""
    with suppress(OSError, ValueError):
        return os.stat(file)
    return None


def same_state(before: os.stat_result, after: os.stat_result | None) -> bool:
    """Whether a file is unchanged, by its size, time of change and inode."""
    state = attrgetter("st_size", "st_mtime_ns", "st_ino")
    return after is not None and state(before) == state(after)
