"""From files to features: every photograph read once, seen once, kept once."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np

from tagkin.errors import InvalidInput
from tagkin.features.base import Backbone
from tagkin.features.cache import FeatureCache, Shelf
from tagkin.images import Failure, UnreadableImage, content_digest, decode, read_bytes

__all__ = ["Extraction", "extract"]


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


def extract(
    files: Sequence[str | os.PathLike[str]],
    backbone: Backbone,
    *,
    cache: FeatureCache | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Extraction:
    """Features of photographs, on all cores.

    A file that cannot be read is a failure in the answer and the run goes on. What was computed
    is in the cache at once, so that an interrupted run goes on where it was. The answer does
    not depend on the number of cores or on the cache.

    Parameters
    ----------
    files : sequence of paths
    backbone : Backbone
    cache : FeatureCache or None
    progress : callable or None
        Called with the number of files done and the number of all.

    Returns
    -------
    extraction : Extraction
    """
    if isinstance(files, (str, bytes, os.PathLike)):
        raise InvalidInput(f"files is a list of paths; found one path, {os.fspath(files)!r}.")
    run = _Run([os.fspath(file) for file in files], backbone, cache)
    report = progress or (lambda done, total: None)
    total, done = len(run.files), 0
    unknown = run.take_from_cache()
    if len(unknown) < total:
        done = total - len(unknown)
        report(done, total)
    size = max(1, backbone.batch_size)
    batches = [unknown[start : start + size] for start in range(0, len(unknown), size)]
    with closing(_in_threads(run.see, batches, run.stop)) as seen:
        for n in seen:
            done += n
            report(done, total)
    return run.result()


def _in_threads(
    work: Callable[[list[int]], int], batches: list[list[int]], stop: threading.Event
) -> Generator[int, None, None]:
    """Do the work in as many threads as cores; yield what it returns, in order.

    A thread reads, decodes and runs the network for its batch, one after the other. So all
    cores are busy whichever of these takes longest, and no more photographs are in memory than
    there are threads.
    """
    n_threads = min(_n_cores(), len(batches))
    if n_threads < 2:
        yield from map(work, batches)
        return
    waiting: deque[Future[int]] = deque()
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="tagkin-features")
    try:
        for batch in batches:
            if len(waiting) == 4 * n_threads:
                yield waiting.popleft().result()
            waiting.append(pool.submit(work, batch))
        while waiting:
            yield waiting.popleft().result()
    finally:
        # also when interrupted: whoever is at work ends after the photograph at hand
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _n_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass
class _Run:
    """The state of one extraction. Rows are by the number of the file."""

    files: list[str]
    backbone: Backbone
    cache: FeatureCache | None
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        n = len(self.files)
        self.features = np.empty((n, self.backbone.dimension), dtype=np.float32)
        self.digests: list[str | None] = [None] * n
        self.reasons: list[str | None] = [None] * n
        self.copies: list[tuple[int, int]] = []  # file, and the one whose row it shares
        self.n_cached = self.n_computed = 0
        self._first: dict[str, int] = {}  # content: the file that speaks for it
        self._lock = threading.Lock()
        self._shelf: Shelf | None = None
        if self.cache is not None:
            self._shelf = self.cache.shelf(self.backbone.fingerprint, self.backbone.dimension)

    def take_from_cache(self) -> list[int]:
        """Take what the cache knows without reading files; the files that are left."""
        if self.cache is None or self._shelf is None:
            return list(range(len(self.files)))
        known: list[str | None] = []
        for file in self.files:
            status = _status(file)
            known.append(None if status is None else self.cache.contents.digest(file, status))
        there = self._shelf.fill(known, self.features)
        for i in np.flatnonzero(there):
            self.digests[i] = known[i]
        self.n_cached = int(there.sum())
        return np.flatnonzero(~there).tolist()

    def see(self, batch: list[int]) -> int:
        """Features of some files, or the reasons why there are none; how many files."""
        rows, squares = [], []
        for i in batch:
            if self.stop.is_set():
                return 0
            try:
                square = self._prepared(i)
            except UnreadableImage as error:
                self.reasons[i] = str(error)
            else:
                if square is not None:
                    rows.append(i)
                    squares.append(square)
        if rows:
            self._compute(rows, np.stack(squares))
        return len(batch)

    def _prepared(self, i: int) -> np.ndarray | None:
        """A photograph as the backbone wants it; None where its features are known already."""
        file = self.files[i]
        before = _status(file)
        data = read_bytes(file)
        digest = content_digest(data)
        after = _status(file)
        if before is None or after is None or _changed(before, after):
            raise UnreadableImage("it changed while it was read")
        self.digests[i] = digest
        if self.cache is not None:
            self.cache.contents.remember(file, after, digest)
        with self._lock:
            first = self._first.setdefault(digest, i)
            if first != i:
                self.copies.append((i, first))
                return None
        row = None if self._shelf is None else self._shelf.get(digest)
        if row is not None:
            self.features[i] = row
            with self._lock:
                self.n_cached += 1
            return None
        return self.backbone.prepare(decode(data, min_side=self.backbone.min_side))

    def _compute(self, rows: list[int], batch: np.ndarray) -> None:
        found = self.backbone(batch)
        fine = np.isfinite(found).all(axis=1)
        for i in np.array(rows)[~fine]:
            self.reasons[i] = f"{self.backbone.name} gives features that are not finite"
        kept = [i for i, good in zip(rows, fine, strict=True) if good]
        self.features[kept] = found[fine]
        with self._lock:
            self.n_computed += len(rows)
        if self._shelf is not None and kept:
            self._shelf.add([str(self.digests[i]) for i in kept], found[fine])

    def result(self) -> Extraction:
        """All that was found, the readable files moved together."""
        for i, first in self.copies:
            self.features[i] = self.features[first]
            self.reasons[i] = self.reasons[first]
        kept = [i for i, reason in enumerate(self.reasons) if reason is None]
        for to, i in enumerate(kept):
            if to != i:
                self.features[to] = self.features[i]
        return Extraction(
            [self.files[i] for i in kept],
            self.features[: len(kept)],
            [str(self.digests[i]) for i in kept],
            [Failure(f, r) for f, r in zip(self.files, self.reasons, strict=True) if r is not None],
            self.n_cached,
            self.n_computed,
        )


def _status(file: str) -> os.stat_result | None:
    try:
        return os.stat(file)
    except (OSError, ValueError):
        return None


def _changed(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_size, before.st_mtime_ns, before.st_ino) != (
        after.st_size,
        after.st_mtime_ns,
        after.st_ino,
    )
