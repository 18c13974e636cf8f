"""Read, decode and process the photographs whose features the cache does not have."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any

import numpy as np

from tagkin.features.extraction_run import ExtractionRun, same_state, status_of
from tagkin.features.onnx_sessions import batch_on_device
from tagkin.features.preview_use import PreviewUse
from tagkin.images import UnreadableImage, content_digest, read_bytes
from tagkin.images.memory import decoding_memory

__all__ = ["process_files"]

_LARGE_FILE = 64 << 20  # bytes
_large_files = threading.Lock()


def process_files(run: ExtractionRun, numbers: list[int]) -> Generator[tuple[int, int], None, None]:
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


def _process_batches(
    run: ExtractionRun, previews: PreviewUse, numbers: list[int]
) -> Generator[int, None, None]:
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


def _limit_large_files(file: str) -> AbstractContextManager[Any]:
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
