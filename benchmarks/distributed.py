"""Cost and speed-up of a Dask cluster: ``python -m benchmarks.distributed [PHOTOS]`` prints JSON.

The same work runs in one thread without a cluster, on one worker, and on two workers; each worker
is a process with one thread. Wall-clock time is unreliable on a shared machine, so the CPU time of
all processes is reported as well. PHOTOS is a folder of photographs; without it, synthetic ones
are used.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse
from distributed import Client, LocalCluster
from PIL import Image
from threadpoolctl import threadpool_limits

import tagkin.distributed as many
from benchmarks.process import environment, say
from tagkin import SemanticSpace
from tagkin.features import extract, get_backbone
from tagkin.neighbors import nearest

N, D, R, LABELS = 196_608, 256, 1024, 80  # the space
LARGE_N, LARGE_D, LARGE_R = 8_192, 1280, 4096  # one block of a large one
CHUNK = 16_384
POINTS, QUERIES, DIMENSIONS, K = 131_072, 4096, 80, 50
PHOTOS = 192
REPEATS = 1


def collection(n: int, d: int) -> tuple[np.ndarray, Any]:
    """Features of labelled images, and their labels."""
    rng = np.random.default_rng(0)
    Y = scipy.sparse.random_array((n, LABELS), density=0.04, rng=rng, format="csr")
    Y.data[:] = 1
    directions = rng.standard_normal((LABELS, d)).astype(np.float32)
    X = np.maximum(Y @ directions + rng.standard_normal((n, d), dtype=np.float32), 0)
    return X.astype(np.float32), Y


def photographs(folder: str | None) -> list[str]:
    """Photographs from a folder, or synthetic ones."""
    if folder is not None:
        return [str(path) for path in sorted(Path(folder).rglob("*.jpg"))[:PHOTOS]]
    target = Path(tempfile.mkdtemp())
    rng = np.random.default_rng(0)
    for i in range(PHOTOS):
        pixels = np.kron(rng.integers(0, 255, (16, 16, 3)), np.ones((16, 16, 1)))
        Image.fromarray(pixels.astype(np.uint8)).save(target / f"{i}.jpg")
    return sorted(map(str, target.iterdir()))


def stored(array: np.ndarray, rows: int) -> Any:
    """An array on disk, one file per chunk, read by the workers."""
    folder = tempfile.mkdtemp()
    da.to_npy_stack(folder, da.from_array(array, chunks=(rows, -1)), axis=0)
    return da.from_npy_stack(folder)


def cpu_seconds(client: Client | None) -> float:
    """CPU time so far, of this process and all workers."""
    own = time.process_time()
    return own if client is None else own + sum(client.run(time.process_time).values())


def measured(work: Callable[[], Any], client: Client | None = None) -> tuple[dict[str, float], Any]:
    """Wall-clock and CPU seconds, and the result."""
    cpu, wall = cpu_seconds(client), time.perf_counter()
    found = work()
    wall = time.perf_counter() - wall
    return {"wall": wall, "cpu": cpu_seconds(client) - cpu}, found


def jobs(files: list[str]) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Every job, without a cluster and on a cluster."""
    X, Y = collection(N, D)
    rng = np.random.default_rng(1)
    points = rng.standard_normal((POINTS, DIMENSIONS)).astype(np.float32)
    queries = points[:QUERIES]
    chunked = {"X": stored(X, CHUNK), "points": stored(points, POINTS // 4)}

    def space() -> SemanticSpace:
        return SemanticSpace(selection=X[:: N // R][:R])

    fitted, backbone = space().fit(X[: 8 * R], Y[: 8 * R]), get_backbone()
    return {
        "sums": (
            lambda: space().fit(X, Y),
            lambda: many.fit_space(space(), chunked["X"], Y),
        ),
        "projection": (
            lambda: fitted.transform(X),
            lambda: many.compute(many.transform(fitted, chunked["X"])),
        ),
        "search": (
            lambda: nearest(queries, points, K),
            lambda: many.compute(many.nearest(queries, chunked["points"], K)),
        ),
        "features": (
            lambda: [extract(files[i : i + 4], backbone) for i in range(0, len(files), 4)],
            lambda: many.extract(files),
        ),
    }


def constants() -> dict[str, float]:
    """CPU seconds per image, in one thread, for a large space; and those of the solution."""
    X, Y = collection(LARGE_N, LARGE_D)
    half = LARGE_N // 2
    space = SemanticSpace(selection=X[:LARGE_R]).partial_fit(X[:half], Y[:half])
    sums, _ = measured(lambda: space.partial_fit(X[half:], Y[half:]))
    solving, _ = measured(lambda: space.correlations_)
    projection, embeddings = measured(lambda: space.transform(X))
    return {
        "sums": sums["cpu"] / half,
        "solving": solving["cpu"],
        "projection": projection["cpu"] / LARGE_N,
        "dimensions": embeddings.shape[1],
    }


def noop(i: int) -> int:
    """A task that does nothing."""
    return i


def on_cluster(n_workers: int, work: dict[str, Any]) -> dict[str, Any]:
    """All jobs on a cluster with n_workers workers, which are warmed up first."""
    row: dict[str, Any] = {}
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(n_workers)
        client.run(warm_up)
        for name, (_, there) in work.items():
            runs = [measured(there, client)[0] for _ in range(REPEATS)]
            row[name] = min(runs, key=lambda run: run["wall"])
            say(f"{n_workers} workers, {name}: {row[name]}")
        tasks, _ = measured(lambda: client.gather(client.map(noop, range(3000))), client)
        row["task"] = {kind: seconds / 3000 for kind, seconds in tasks.items()}
        state = client.run(resident)
        row["worker_bytes"] = max(state.values())
    return row


def warm_up() -> None:
    """Import everything and load a backbone on a worker."""
    get_backbone()


def resident() -> int:
    """Peak memory of this process, in bytes."""
    import resource

    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(folder: str | None = None) -> dict[str, Any]:
    """Measure everything."""
    files = photographs(folder)
    work = jobs(files)
    results: dict[str, Any] = {"environment": environment(), "here": {}, "photographs": len(files)}
    with threadpool_limits(1):
        for name, (here, _) in work.items():
            runs = [measured(here)[0] for _ in range(REPEATS)]
            results["here"][name] = min(runs, key=lambda run: run["wall"])
            say(f"here, {name}: {results['here'][name]}")
        results["constants"] = constants()
        say(f"constants: {results['constants']}")
    for n_workers in (1, 2):
        results[f"{n_workers} workers"] = on_cluster(n_workers, work)
    return results


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:2]), indent=1))
