"""Extract features from files; read and process every photograph once."""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from tagkin.errors import InvalidInput, UnreadableImage
from tagkin.features.backbone import Backbone
from tagkin.features.backbone_names import get_backbone
from tagkin.features.cache import FeatureCache
from tagkin.features.onnx_sessions import batch_on_device
from tagkin.images import Failure
from tagkin.images.image_files import content_digest, read_bytes
from tagkin.images.memory import decoding_memory
from tagkin.progress import Progress, silent

__all__ = ["Extraction", "ExtractionRun", "extract", "same_state", "status_of"]

_LARGE_FILE = 64 << 20  # bytes
_large_files = threading.Lock()


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


def extract(
    files: Sequence[str | os.PathLike[str]],
    backbone: Backbone | str,
    *,
    cache: FeatureCache | None = None,
    progress: Progress | None = None,
) -> Extraction:
    """Extract features of photographs, on all cores.

    An unreadable file becomes a failure in the result, and the run continues. Features are
    cached immediately, so an interrupted run can continue later. The result does not depend on
    the number of cores or on the cache.

    Parameters
    ----------
    files : sequence of paths
    backbone : Backbone or its name
    cache : FeatureCache or None
    progress : callable or None
        Called with the name of the step, the number of files done and the total.
    """
    if isinstance(files, (str, bytes, os.PathLike)):
        raise InvalidInput(f"files must be a list of paths; found one path, {os.fspath(files)!r}.")
    if isinstance(backbone, str):
        backbone = get_backbone(backbone)
    run = ExtractionRun([os.fspath(file) for file in files], backbone, cache)
    report = progress or silent
    total, done = len(run.files), 0
    unknown = run.take_from_cache()
    if len(unknown) < total:
        done = total - len(unknown)
        report("Reading photographs", done, total)
    if unknown:
        with closing(_process_files(run, unknown)) as batches:
            for n_done in batches:
                done += n_done
                report("Reading photographs", done, total)
    return run.result()


# --- batches -----------------------------------------------------------------------------


def _process_files(run: ExtractionRun, numbers: list[int]) -> Generator[int, None, None]:
    """Extract the features of files in as many threads as cores; yield the lengths of batches.

    A thread reads its batch, decodes it and runs the network. So all cores are busy whichever
    step takes longest, and each thread has only its own batch in memory.
    """
    size = batch_on_device(max(1, run.backbone.batch_size))
    batches = [numbers[start : start + size] for start in range(0, len(numbers), size)]
    stop = threading.Event()
    work = functools.partial(_process, run, stop)
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
        # also when interrupted: every thread stops after its current photograph
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _n_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _process(run: ExtractionRun, stop: threading.Event, batch: list[int]) -> int:
    """Extract the features of a batch of files, or note their failures; return its length."""
    contents, squares = [], []
    statuses: dict[int, os.stat_result] = {}  # of files whose digest the cache can keep
    for i in batch:
        if stop.is_set():
            return 0
        try:
            square, statuses[i] = _prepare(run, i)
        except UnreadableImage as error:
            run.fail(i, str(error))
        except MemoryError:
            run.fail(i, "not enough memory for it")
        else:
            if square is not None:
                squares.append(square)
                contents.append(i)
    if contents:
        run.store(contents, run.backbone(np.stack(squares)))
    run.remember(list(statuses), list(statuses.values()))
    return len(batch)


def _prepare(run: ExtractionRun, i: int) -> tuple[np.ndarray | None, os.stat_result]:
    """Return the network's input for a file, or None if its features are known; and its status."""
    from tagkin.images import decode  # not needed if all features are cached

    with _limit_large_files(run.files[i]):
        data, status = _read(run.files[i])
        digest = content_digest(data)
        if not run.is_first(i, digest) or run.take_content_from_cache(i, digest):
            return None, status
        pixels = decode(data, min_side=run.backbone.min_side)
        with decoding_memory.reserve(4 * pixels[..., 0].size):  # Pillow's copy of them
            return run.backbone.prepare(pixels), status


def _limit_large_files(file: str) -> AbstractContextManager[object]:
    """Return a context that keeps two very large files from being in memory at once."""
    status = status_of(file)
    return nullcontext() if status is None or status.st_size < _LARGE_FILE else _large_files


def _read(file: str) -> tuple[bytes, os.stat_result]:
    """Return the bytes and the status of a file; reject a file that changes during the read."""
    before = status_of(file)
    data = read_bytes(file)
    if before is None or not same_state(before, status_of(file)):
        raise UnreadableImage("it changed while it was read")
    return data, before


def status_of(file: str) -> os.stat_result | None:
    """Return the status of a file, or None if it does not exist."""
    with suppress(OSError, ValueError):
        return os.stat(file)
    return None


def same_state(before: os.stat_result, after: os.stat_result | None) -> bool:
    """Whether a file is unchanged, by its size, time of change and inode."""
    state = attrgetter("st_size", "st_mtime_ns", "st_ino")
    return after is not None and state(before) == state(after)
