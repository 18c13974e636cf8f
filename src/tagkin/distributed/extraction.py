"""Features of photographs, looked at by many machines."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tagkin.distributed.blocks import key
from tagkin.distributed.cluster import client_or_current, result, wait
from tagkin.errors import ClusterLost, InvalidInput
from tagkin.features import Backbone, Extraction, FeatureCache, get_backbone
from tagkin.features import extract as extract_here
from tagkin.images import Failure

__all__ = ["extract", "see"]

_FILES = 32  # a task: long beside what a task costs, short beside what a lost worker costs
_AHEAD = 4  # tasks that wait for each thread of the cluster


def extract(
    files: Sequence[str | os.PathLike[str]],
    backbone: Backbone | str = "efficientnet-lite0",
    *,
    client: Any = None,
    cache: FeatureCache | None = None,
    progress: Callable[[int, int], None] | None = None,
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
        Called with the number of files done and the number of all.
    """
    if isinstance(files, (str, bytes, os.PathLike)):
        raise InvalidInput(f"files is a list of paths; found one path, {os.fspath(files)!r}.")
    if isinstance(backbone, str):
        backbone = get_backbone(backbone)
    client = client_or_current(client)
    run = _Run([os.path.abspath(file) for file in files], backbone, cache)
    report = progress or (lambda done, total: None)
    unknown = run.take_from_cache()
    done, total = len(run.files) - len(unknown), len(run.files)
    report(done, total)
    try:
        for batch, found in _seen(run.files, unknown, backbone.name, backbone.fingerprint, client):
            run.keep(batch, found)
            done += len(batch)
            report(done, total)
    except ClusterLost as error:
        where = "in the cache" if cache is not None else "lost, since there is no cache"
        raise ClusterLost(
            f"{error} {done:,} of {total:,} photographs were looked at; their features are {where}."
        ) from error
    return run.result([os.fspath(file) for file in files])


def _seen(
    files: list[str], unknown: list[int], name: str, fingerprint: str, client: Any
) -> Iterator[tuple[list[int], Extraction]]:
    """Batches of files and what workers found, as they come; a few at a time are under way."""
    batches = [unknown[i : i + _FILES] for i in range(0, len(unknown), _FILES)]
    batches.reverse()
    suspects: list[list[int]] = []  # one file each, looked at alone so that no other is blamed
    ahead = _AHEAD * max(1, sum(client.nthreads().values()))
    under_way: dict[Any, list[int]] = {}
    while batches or suspects or under_way:
        while (batches and len(under_way) < ahead) or (suspects and not under_way):
            batch = (batches or suspects).pop()
            paths = [files[i] for i in batch]
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
def _backbone(name: str) -> Backbone:
    """Loaded once in each process."""
    return get_backbone(name)


def see(files: Sequence[str], name: str, fingerprint: str | None = None) -> Extraction:
    """Features of some files, on a worker, in the one thread that the task has."""
    backbone = _backbone(name)
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


class _Run:
    """What is known of the files so far. Rows are by the number of the file."""

    def __init__(self, files: list[str], backbone: Backbone, cache: FeatureCache | None):
        n = len(files)
        self.files, self.backbone, self.cache = files, backbone, cache
        self.features = np.empty((n, backbone.dimension), dtype=np.float32)
        self.digests: list[str | None] = [None] * n
        self.reasons: list[str | None] = [None] * n
        self.statuses: list[os.stat_result | None] = [None] * n
        self.n_cached = 0
        self.computed: dict[str, int] = {}  # content: the file that speaks for it

    def take_from_cache(self) -> list[int]:
        """Take what the cache knows; the numbers of the files that are left."""
        if self.cache is None:
            return list(range(len(self.files)))
        self.statuses = [_status(file) for file in self.files]
        known = [
            None if status is None else self.cache.contents.digest(file, status)
            for file, status in zip(self.files, self.statuses, strict=True)
        ]
        there = self._shelf().fill(known, self.features)
        for i in np.flatnonzero(there):
            self.digests[i] = known[i]
        self.n_cached = int(there.sum())
        return np.flatnonzero(~there).tolist()

    def _shelf(self) -> Any:
        assert self.cache is not None
        return self.cache.shelf(self.backbone.fingerprint, self.backbone.dimension)

    def keep(self, batch: list[int], found: Extraction) -> None:
        """Take in what a worker found, and put it into the cache."""
        rows_of: dict[str, list[int]] = {}
        for i in batch:
            rows_of.setdefault(self.files[i], []).append(i)
        for failure in found.failures:
            for i in rows_of[failure.file]:
                self.reasons[i] = failure.reason
        fresh = []
        for row, (file, digest) in enumerate(zip(found.files, found.digests, strict=True)):
            for i in rows_of[file]:
                self.digests[i] = digest
                self.features[i] = found.features[row]
            if digest not in self.computed:
                self.computed[digest] = rows_of[file][0]
                fresh.append(row)
        if self.cache is None:
            return
        shelf = self._shelf()
        fresh = [row for row in fresh if found.digests[row] not in shelf]
        if fresh:
            shelf.add([found.digests[row] for row in fresh], found.features[fresh])
        for file, digest in zip(found.files, found.digests, strict=True):
            before = self.statuses[rows_of[file][0]]
            # remembered as it was before a worker read it, if it still is
            if before is not None and _same(before, _status(file)):
                self.cache.contents.remember(file, before, digest)

    def result(self, names: list[str]) -> Extraction:
        """All that was found; copies of one photograph have the features of the first."""
        for i, digest in enumerate(self.digests):
            if digest in self.computed:
                self.features[i] = self.features[self.computed[digest]]
        kept = [i for i, reason in enumerate(self.reasons) if reason is None]
        return Extraction(
            [names[i] for i in kept],
            self.features[kept],
            [str(self.digests[i]) for i in kept],
            [
                Failure(name, reason)
                for name, reason in zip(names, self.reasons, strict=True)
                if reason is not None
            ],
            self.n_cached,
            len(self.computed),
        )


def _status(file: str) -> os.stat_result | None:
    try:
        return os.stat(file)
    except (OSError, ValueError):
        return None


def _same(before: os.stat_result, after: os.stat_result | None) -> bool:
    if after is None:
        return False
    return (before.st_size, before.st_mtime_ns, before.st_ino) == (
        after.st_size,
        after.st_mtime_ns,
        after.st_ino,
    )
