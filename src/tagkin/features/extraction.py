"""Extract features from files; read and process every photograph once."""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext

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

__all__ = ["extract"]

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
