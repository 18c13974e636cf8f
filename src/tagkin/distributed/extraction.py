"""Extract features of photographs on many machines."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tagkin.distributed.chunks import key
from tagkin.distributed.cluster import client_or_current, detect_loss, result, wait
from tagkin.errors import ClusterLost, InvalidInput
from tagkin.features import Backbone, Extraction, FeatureCache, get_backbone
from tagkin.features import extract as extract_here
from tagkin.features.extraction import ExtractionRun, same_state, status_of
from tagkin.images import Failure
from tagkin.progress import Progress, silent

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["extract", "load_backbone", "see"]

_AHEAD = 4  # tasks per thread of the cluster


def extract(
    files: Sequence[str | os.PathLike[str]],
    backbone: Backbone | str = "efficientnet-lite0-whole",
    *,
    client: Client | None = None,
    cache: FeatureCache | None = None,
    progress: Progress | None = None,
    n_per_task: int = 32,
) -> Extraction:
    """Extract features of photographs on workers, like `tagkin.features.extract`.

    Workers must see the files under the same paths. Results are cached on this machine
    immediately, so a second run continues after the loss of a cluster. A photograph that ends
    every process that reads it becomes a failure.

    Parameters
    ----------
    files : sequence of paths
    backbone : Backbone or str
        Backbone, its name, or the path of its file. Workers load it by its name, so they must see
        the file as well.
    client : distributed.Client, optional
    cache : FeatureCache, optional
        Cache on this machine; workers do not need a cache.
    progress : callable or None
        Called with the name of the step, the number of files done and the total.
    n_per_task : int
        Files per task, which are read again if their worker is lost.
    """
    if isinstance(files, (str, bytes, os.PathLike)):
        raise InvalidInput(f"files must be a list of paths; found one path, {os.fspath(files)!r}.")
    if isinstance(backbone, str):
        backbone = get_backbone(backbone)
    client = client_or_current(client)
    run = ExtractionRun([os.path.abspath(file) for file in files], backbone, cache)
    report = progress or silent
    unknown = run.take_from_cache()
    done, total = len(run.files) - len(unknown), len(run.files)
    report("Reading photographs", done, total)
    try:
        batches = [unknown[i : i + n_per_task] for i in range(0, len(unknown), n_per_task)]
        name, fingerprint = backbone.name, backbone.fingerprint
        for batch, extraction in _run_batches(run.files, batches, name, fingerprint, client):
            _take(run, batch, extraction)
            done += len(batch)
            report("Reading photographs", done, total)
    except ClusterLost as error:
        state = "in the cache" if cache is not None else "lost, because there is no cache"
        raise ClusterLost(
            f"{error} {done:,} of {total:,} photographs were read; their features are {state}."
        ) from None
    return run.result([os.fspath(file) for file in files])


def _run_batches(
    files: list[str], batches: list[list[int]], name: str, fingerprint: str, client: Client
) -> Iterator[tuple[list[int], Extraction]]:
    """Yield batches of files and their results as they finish; keep the workers busy."""
    batches.reverse()
    suspects: list[list[int]] = []  # single files, run alone to find which one ends workers
    with detect_loss(client):
        ahead = _AHEAD * max(1, sum(client.nthreads().values()))
    running: dict[Future, list[int]] = {}
    while batches or suspects or running:
        while (batches and len(running) < ahead) or (suspects and not running):
            batch = (batches or suspects).pop()
            paths = [files[i] for i in batch]
            with detect_loss(client):
                future = client.submit(see, paths, name, fingerprint, key=key("see"), pure=False)
            running[future] = batch
        wait(list(running), client, for_one=True)
        for future in [f for f in running if f.done()]:
            batch = running.pop(future)
            extraction = _outcome(future, [files[i] for i in batch], client)
            future.release()
            if extraction is None:
                suspects += [[i] for i in batch]
            else:
                yield batch, extraction


def _outcome(future: Future, files: list[str], client: Client) -> Extraction | None:
    """Return a worker's result; None if one of several files ended the workers."""
    killed = future.status == "error" and type(future.exception()).__name__ == "KilledWorker"
    if not killed:
        return result(future, client, Extraction)
    if len(files) > 1:
        return None
    reason = "every process that read it ended at once; the file may be malicious"
    return Extraction([], np.empty((0, 0), np.float32), [], [Failure(files[0], reason)], 0, 0)


@functools.lru_cache(maxsize=2)
def load_backbone(name: str) -> Backbone:
    """Load a backbone, once in each process."""
    return get_backbone(name)


def see(files: Sequence[str], name: str, fingerprint: str | None = None) -> Extraction:
    """Extract features of files on a worker, in the task's thread."""
    backbone = load_backbone(name)
    if fingerprint is not None and backbone.fingerprint != fingerprint:
        raise InvalidInput(
            f"A worker has another {name} than this machine: its weights or its preprocessing "
            "differ. Install the same versions everywhere."
        )
    size = max(1, backbone.batch_size)
    parts = [extract_here(files[i : i + size], backbone) for i in range(0, len(files), size)]
    return Extraction(
        [file for part in parts for file in part.files],
        np.concatenate([part.features for part in parts]),
        [digest for part in parts for digest in part.digests],
        [failure for part in parts for failure in part.failures],
        0,
        sum(part.n_computed for part in parts),
    )


def _take(run: ExtractionRun, batch: list[int], extraction: Extraction) -> None:
    """Add a worker's result to the run."""
    numbers_of: dict[str, list[int]] = {}
    for i in batch:
        numbers_of.setdefault(run.files[i], []).append(i)
    for failure in extraction.failures:
        for i in numbers_of[failure.file]:
            run.fail(i, failure.reason)
    rows: dict[int, int] = {}  # of the first files with their content
    unchanged: dict[int, os.stat_result] = {}
    for row, (file, digest) in enumerate(zip(extraction.files, extraction.digests, strict=True)):
        rows |= {i: row for i in numbers_of[file] if run.is_first(i, digest)}
        i = numbers_of[file][0]
        before = run.statuses[i]
        # remember the status from before the worker read the file, if it is unchanged
        if before is not None and same_state(before, status_of(file)):
            unchanged[i] = before
    run.store(list(rows), extraction.features[list(rows.values())])
    run.remember(list(unchanged), list(unchanged.values()))
