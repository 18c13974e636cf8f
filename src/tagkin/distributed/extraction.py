"""Features of photographs, looked at by many machines."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tagkin.distributed.blocks import key
from tagkin.distributed.cluster import client_or_current, result, submitting, wait
from tagkin.errors import ClusterLost, InvalidInput
from tagkin.features import Backbone, Extraction, FeatureCache, get_backbone
from tagkin.features import extract as extract_here
from tagkin.features.runs import ExtractionRun, same_state, status_of
from tagkin.images import Failure
from tagkin.progress import Progress, silent

__all__ = ["extract", "opened_backbone", "see"]

_AHEAD = 4  # tasks that wait for each thread of the cluster


def extract(
    files: Sequence[str | os.PathLike[str]],
    backbone: Backbone | str = "efficientnet-lite0-whole",
    *,
    client: Any = None,
    cache: FeatureCache | None = None,
    progress: Progress | None = None,
    n_per_task: int = 32,
) -> Extraction:
    """Features of photographs that workers can read, as `tagkin.features.extract` gives them.

    Workers must see the files under the same paths. What comes back is in the cache of this
    machine at once, so that nothing is lost with the cluster: a second run goes on where the
    first one was. A photograph that ends every process that reads it is a failure like others.

    Parameters
    ----------
    files : sequence of paths
    backbone : Backbone or str
        Itself, its name, or the path of its file. Workers load it themselves, by its name: they
        must see the file as well.
    client : distributed.Client, optional
        By default the one that is in use.
    cache : FeatureCache, optional
        On this machine; workers need none.
    progress : callable or None
        Called with what is done, the number of files done and the number of all.
    n_per_task : int
        Files that a worker looks at in one go, and that are looked at again where it is lost.
    """
    if isinstance(files, (str, bytes, os.PathLike)):
        raise InvalidInput(f"files is a list of paths; found one path, {os.fspath(files)!r}.")
    if isinstance(backbone, str):
        backbone = get_backbone(backbone)
    client = client_or_current(client)
    run = ExtractionRun([os.path.abspath(file) for file in files], backbone, cache)
    report = progress or silent
    unknown = run.take_from_cache()
    done, total = len(run.files) - len(unknown), len(run.files)
    report("Looking at photographs", done, total)
    try:
        batches = [unknown[i : i + n_per_task] for i in range(0, len(unknown), n_per_task)]
        for batch, found in _seen(run.files, batches, backbone.name, backbone.fingerprint, client):
            _keep(run, batch, found)
            done += len(batch)
            report("Looking at photographs", done, total)
    except ClusterLost as error:
        where = "in the cache" if cache is not None else "lost, since there is no cache"
        raise ClusterLost(
            f"{error} {done:,} of {total:,} photographs were looked at; their features are {where}."
        ) from None
    return run.result([os.fspath(file) for file in files])


def _seen(
    files: list[str], batches: list[list[int]], name: str, fingerprint: str, client: Any
) -> Iterator[tuple[list[int], Extraction]]:
    """Batches of files and what workers found, as they come; a few at a time are under way."""
    batches.reverse()
    suspects: list[list[int]] = []  # one file each, looked at alone so that no other is blamed
    with submitting(client):
        ahead = _AHEAD * max(1, sum(client.nthreads().values()))
    under_way: dict[Any, list[int]] = {}
    while batches or suspects or under_way:
        while (batches and len(under_way) < ahead) or (suspects and not under_way):
            batch = (batches or suspects).pop()
            paths = [files[i] for i in batch]
            with submitting(client):
                future = client.submit(see, paths, name, fingerprint, key=key("see"), pure=False)
            under_way[future] = batch
        wait(list(under_way), client, for_one=True)
        for future in [f for f in under_way if f.done()]:
            batch = under_way.pop(future)
            found = _outcome(future, [files[i] for i in batch], client)
            future.release()
            if found is None:
                suspects += [[i] for i in batch]
            else:
                yield batch, found


def _outcome(future: Any, files: list[str], client: Any) -> Extraction | None:
    """What a worker found; None where the files, which are several, ended several workers."""
    killed = future.status == "error" and type(future.exception()).__name__ == "KilledWorker"
    if not killed:
        return result(future, client)
    if len(files) > 1:
        return None
    reason = "every process that read it ended at once; the file may be made to do that"
    return Extraction([], np.empty((0, 0), np.float32), [], [Failure(files[0], reason)], 0, 0)


@functools.lru_cache(maxsize=2)
def opened_backbone(name: str) -> Backbone:
    """Loaded once in each process."""
    return get_backbone(name)


def see(files: Sequence[str], name: str, fingerprint: str | None = None) -> Extraction:
    """Features of some files, on a worker, in the one thread that the task has."""
    backbone = opened_backbone(name)
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


def _keep(run: ExtractionRun, batch: list[int], found: Extraction) -> None:
    """Take in what a worker found."""
    numbers_of: dict[str, list[int]] = {}
    for i in batch:
        numbers_of.setdefault(run.files[i], []).append(i)
    for failure in found.failures:
        for i in numbers_of[failure.file]:
            run.fail(i, failure.reason)
    rows: dict[int, int] = {}  # of the first files with their content
    same: dict[int, os.stat_result] = {}
    for row, (file, digest) in enumerate(zip(found.files, found.digests, strict=True)):
        rows |= {i: row for i in numbers_of[file] if run.is_first(i, digest)}
        i = numbers_of[file][0]
        before = run.statuses[i]
        # remembered as it was before a worker read it, if it still is
        if before is not None and same_state(before, status_of(file)):
            same[i] = before
    run.store(list(rows), found.features[list(rows.values())])
    run.remember(list(same), list(same.values()))
