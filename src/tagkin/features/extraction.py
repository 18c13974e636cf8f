"""Extract features from files; read and process every photograph once."""

from __future__ import annotations

import os
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass

import numpy as np

from tagkin.errors import InvalidInput, UnreadableImage
from tagkin.features.backbone import Backbone
from tagkin.features.backbone_names import get_backbone
from tagkin.features.cache import FeatureCache
from tagkin.features.extraction_run import Extraction, ExtractionRun, same_state, status_of
from tagkin.features.onnx_sessions import batch_on_device
from tagkin.images.image_files import content_digest, read_bytes
from tagkin.images.memory import decoding_memory
from tagkin.progress import Progress, silent

__all__ = ["PreviewUse", "extract"]

_LARGE_FILE = 64 << 20  # bytes
_large_files = threading.Lock()


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

    Where a camera has written a preview that is large enough, it is decoded instead of the
    photograph (`tagkin.images.previews` has the rule). Some files are decoded both ways, and if
    their features differ, all files of this camera are decoded in full. ``TAGKIN_PREVIEWS=no``
    switches previews off.

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
        for n_done, n_again in _process_files(run, unknown):
            done, total = done + n_done, total + n_again
            report("Reading photographs", done, total)
    return run.result()


# --- batches -----------------------------------------------------------------------------


def _process_files(run: ExtractionRun, numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Extract the features of files in batches.

    Yield how many files are done, and how many are decoded again because their previews misled.
    """
    previews = PreviewUse()
    for n_done in _process_batches(run, previews, numbers):
        yield n_done, 0
    if mismatches := previews.find_mismatches():
        yield 0, len(mismatches)
        for n_done in _process_batches(run, previews, mismatches):
            yield n_done, 0


def _process_batches(run: ExtractionRun, previews: PreviewUse, numbers: list[int]) -> Iterator[int]:
    """Extract the features of files; yield the lengths of the batches."""
    size = batch_on_device(max(1, run.backbone.batch_size))
    batches = [numbers[start : start + size] for start in range(0, len(numbers), size)]
    stop = threading.Event()

    def work(batch: list[int]) -> int:
        return _process(run, previews, batch, stop)

    with closing(_in_threads(work, batches, stop)) as counts:
        yield from counts


def _in_threads(
    work: Callable[[list[int]], int], batches: list[list[int]], stop: threading.Event
) -> Generator[int, None, None]:
    """Run the work in as many threads as cores; yield its results in order.

    A thread reads its batch, decodes it and runs the network. So all cores are busy whichever
    step takes longest, and each thread has only its own batch in memory.
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
        # also when interrupted: every thread stops after its current photograph
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _n_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _process(
    run: ExtractionRun, previews: PreviewUse, batch: list[int], stop: threading.Event
) -> int:
    """Extract the features of a batch of files, or note their failures; return its length."""
    contents, squares = [], []
    checked: dict[int, np.ndarray] = {}  # squares of full decodes
    statuses: dict[int, os.stat_result] = {}  # of files whose digest the cache can keep
    for i in batch:
        if stop.is_set():
            return 0
        try:
            square, full, statuses[i] = _prepare(run, previews, i)
        except UnreadableImage as error:
            run.fail(i, str(error))
        except MemoryError:
            run.fail(i, "not enough memory for it")
        else:
            if square is not None:
                squares.append(square)
                contents.append(i)
                if full is not None:
                    checked[i] = full
    if contents:
        features = run.backbone(np.stack(squares))
        if checked:
            for i, row in zip(checked, run.backbone(np.stack([*checked.values()])), strict=True):
                at = contents.index(i)
                features[at] = previews.check(i, features[at], row)
        run.store(contents, features)
    run.remember(list(statuses), list(statuses.values()))
    return len(batch)


def _prepare(
    run: ExtractionRun, previews: PreviewUse, i: int
) -> tuple[np.ndarray | None, np.ndarray | None, os.stat_result]:
    """Return the network's input for a file, the input of its full decode, and the file's status.

    The first is None if the features are known. The second is None unless it checks a preview.
    """
    with _limit_large_files(run.files[i]):
        data, status = _read(run.files[i])
        digest = content_digest(data)
        if not run.is_first(i, digest):
            return None, None, status
        # of a misled file, the cache has the features of its preview
        if not previews.is_misled(i) and run.take_content_from_cache(i, digest):
            return None, None, status
        pixels, full = previews.decode(i, data, digest, run.backbone.min_side)
        full_input = None if full is None else _prepare_pixels(run, full)
        return _prepare_pixels(run, pixels), full_input, status


def _prepare_pixels(run: ExtractionRun, pixels: np.ndarray) -> np.ndarray:
    with decoding_memory.reserve(4 * pixels[..., 0].size):  # Pillow's copy of them
        return run.backbone.prepare(pixels)


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


# --- previews ----------------------------------------------------------------------------

# Cosine of the features of a preview and of its photograph. On resampled photographs, previews of
# quality 60 reach .98, and a background blurred by 6 of 1,152 pixels at most .96.
_ALIKE = 0.97
_FIRST = 8  # files of a camera that are decoded both ways before its previews are trusted
_ONE_IN = 50  # one in this many of its other files is also decoded both ways
_MAX_BAD = 0.05  # share of the checked files that may differ; a single file always may
_CHOICES = {"": True, "yes": True, "no": False}


@dataclass
class _Camera:
    """The files of a camera that were decoded both ways."""

    n_begun: int = 0
    n_checked: int = 0
    n_bad: int = 0

    @property
    def is_trusted(self) -> bool:
        return self.n_bad <= 1 + _MAX_BAD * self.n_checked


_lock = threading.Lock()
_cameras: defaultdict[str, _Camera] = defaultdict(_Camera)  # of all runs of this process


class PreviewUse:
    """Decodes previews instead of photographs, and checks a share of them; thread-safe.

    The first 8 files of each camera, and one in 50 of the others, are decoded both ways. If the
    features differ (a cosine below 0.97) for at least two files, and for more than one file in 20,
    the previews of this camera do not match, and its files are decoded in full.
    ``TAGKIN_PREVIEWS=no`` switches previews off.
    """

    def __init__(self) -> None:
        choice = os.environ.get("TAGKIN_PREVIEWS", "")
        if choice not in _CHOICES:
            raise InvalidInput(f"TAGKIN_PREVIEWS must be yes or no; found {choice!r}.")
        self._is_on = _CHOICES[choice]
        self._used: dict[int, str] = {}  # the camera of each file whose preview was decoded

    def decode(
        self, number: int, data: bytes, digest: str, min_side: int
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the pixels of a file, and the pixels of the full decode to check a preview."""
        from tagkin.images import decode, decode_preview  # not needed if all features are cached

        preview = decode_preview(data, min_side=min_side) if self._is_on else None
        if preview is None:
            return decode(data, min_side=min_side), None
        pixels, camera = preview
        with _lock:
            checks = _cameras[camera]
            if not checks.is_trusted:
                self._used.pop(number, None)
                is_checked = None
            else:
                self._used[number] = camera
                checks.n_begun += 1
                # by the content, so the result does not depend on the order of the files
                is_checked = checks.n_begun <= _FIRST or int(digest[:8], 16) % _ONE_IN == 0
        if is_checked is None:
            return decode(data, min_side=min_side), None
        return pixels, decode(data, min_side=min_side) if is_checked else None

    def check(self, number: int, features: np.ndarray, full: np.ndarray) -> np.ndarray:
        """Compare the features of a file's preview and full decode; return the features to use."""
        norms = float(np.linalg.norm(features) * np.linalg.norm(full))
        is_bad = float(features @ full) < _ALIKE * norms
        with _lock:
            checks = _cameras[self._used[number]]
            checks.n_checked += 1
            checks.n_bad += is_bad
            if is_bad:
                del self._used[number]
        return full if is_bad else features

    def is_misled(self, number: int) -> bool:
        """Whether a file has the features of a preview that turned out not to match."""
        with _lock:
            camera = self._used.get(number)
            return camera is not None and not _cameras[camera].is_trusted

    def find_mismatches(self) -> list[int]:
        """Return the files to decode in full, because their previews do not match."""
        return sorted(number for number in list(self._used) if self.is_misled(number))
