"""Workers are killed, for real, in the middle of the work."""

import logging
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import numpy as np
import pytest

from tagkin import SemanticSpace
from tagkin.distributed import compute, connect, fit_space, nearest, transform
from tagkin.distributed.cluster import check, gather, result
from tagkin.errors import ClusterLost, TagkinError
from tagkin.neighbors import nearest as nearest_here
from tagkin.space.moments import Moments
from tests.conftest import make_collection, relative_error
from tests.distributed.conftest import local_cluster
from tests.distributed.waiting import wait_for

dask = pytest.importorskip("dask", reason="Dask is not installed")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array", reason="Dask is not installed")

N = 2600


@pytest.fixture(scope="module")
def collection():
    return make_collection(N, d=10, n_labels=5, seed=3)


def deadly(array, marks, at, rows=200, after=None):
    """A Dask array that ends the process that reads one of its chunks, so many times.

    Where a file `after` is named, it waits for that file first.
    """

    def read(block, block_info=None):
        start = block_info[0]["array-location"][0][0]
        if start <= at < start + len(block):
            if after is not None:
                wait_for(after)
            for mark in marks:
                try:
                    os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
        return block

    chunks = da.from_array(array, chunks=(rows, -1))
    return chunks.map_blocks(read, dtype=array.dtype, meta=np.empty((0, 0), array.dtype))


def test_a_killed_worker_loses_nothing_of_the_sums(processes, collection, tmp_path):
    X, Y, X_new = collection
    mark = tmp_path / "mark"
    space = SemanticSpace(selection=X[::60])
    there = fit_space(space, deadly(X, [mark], at=1500), Y)
    assert mark.exists()
    assert there.n_images_ == N
    here = SemanticSpace(selection=X[::60]).fit(X, Y)
    assert relative_error(there.transform(X_new), here.transform(X_new)) < 1e-7


def test_all_workers_killed_at_once_and_restarted(processes, collection, tmp_path):
    started, killed = tmp_path / "started", tmp_path / "killed"

    def held(block, block_info=None):
        if block_info[0]["array-location"][0][0] == 1000:  # in the middle
            started.touch()
            wait_for(killed)
        return block

    X, Y, _ = collection
    space = SemanticSpace(n_landmarks=40, random_state=0).fit(X, Y)
    expected = space.transform(X)
    read = da.from_array(X, chunks=(200, -1)).map_blocks(held, dtype=X.dtype)
    places = transform(space, read)
    futures = processes.compute(list(nearest(places[:100], places, 10)))
    wait_for(started)
    for pid in processes.run(os.getpid).values():
        os.kill(pid, signal.SIGKILL)
    killed.touch()
    here = nearest_here(expected[:100], expected, 10)
    indices, distances = processes.gather(futures)
    np.testing.assert_array_equal(indices, here.indices)
    np.testing.assert_allclose(distances, here.distances, atol=1e-9)


def test_what_is_lost_on_the_way_here_is_computed_again(processes):
    numbers = processes.map(lambda i: i + 1, range(20), pure=False)
    distributed.wait(numbers)
    for pid in processes.run(os.getpid).values():
        os.kill(pid, signal.SIGKILL)
    assert gather(numbers, processes) == list(range(1, 21))


def test_what_is_being_computed_again_has_not_failed(processes, tmp_path):
    """A worker may go between the news that its work is done and the look at what came of it."""
    seen, again = tmp_path / "seen", tmp_path / "again"

    def work():
        if seen.exists():
            wait_for(again)
        seen.touch()
        return os.getpid()

    future = processes.submit(work, pure=False)
    first = future.result()
    os.kill(first, signal.SIGKILL)
    while future.status == "finished":  # until the news of the loss is here
        time.sleep(0.01)
    with ThreadPoolExecutor(1) as pool:
        checked = pool.submit(check, future)
        again.touch()
        checked.result()
    assert result(future, processes, type(first)) != first


@pytest.fixture
def mortal(settings):
    """A cluster of one worker that nobody restarts, and its client."""
    with local_cluster(1) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(1, timeout=60)
        for nanny in cluster.workers.values():
            nanny.close_gracefully()  # restarts nothing from now on
        yield client


def test_without_any_worker_there_is_an_error_and_the_sums_are_kept(
    client, mortal, collection, tmp_path, monkeypatch
):
    came, add = tmp_path / "came", Moments.add

    def noticed(self, other):
        add(self, other)
        came.touch()

    monkeypatch.setattr(Moments, "add", noticed)  # here, where sums come in; not on the workers
    X, Y, X_new = collection
    space = SemanticSpace(selection=X[::60])
    features = deadly(X, [tmp_path / "mark"], at=1400, rows=65, after=came)  # several sums
    with (
        dask.config.set({"distributed.scheduler.no-workers-timeout": "1s"}),
        pytest.raises(ClusterLost, match=r"no worker for 1 seconds.*first .* of 2,600.*resume"),
    ):
        fit_space(space, features, Y, client=mortal)
    assert 0 < space.n_images_ < N
    learned = space.n_images_
    early = SemanticSpace(selection=X[::60]).fit(X[:learned], Y[:learned])
    np.testing.assert_allclose(space.correlations_, early.correlations_, rtol=1e-7)
    # the other cluster goes on
    fit_space(space, features, Y, client=client, resume=True)
    here = SemanticSpace(selection=X[::60]).fit(X, Y)
    assert relative_error(space.transform(X_new), here.transform(X_new)) < 1e-7
    with (
        dask.config.set({"distributed.scheduler.no-workers-timeout": "1s"}),
        pytest.raises(ClusterLost, match="no worker"),
    ):
        compute(transform(space, features), client=mortal)


def test_what_is_lost_on_the_way_here_with_all_workers_is_an_error(mortal):
    future = mortal.submit(sum, [1, 2])
    assert result(future, mortal, int) == 3  # though this client is nobody's default
    (pid,) = mortal.run(os.getpid).values()
    os.kill(pid, signal.SIGKILL)
    with (
        dask.config.set({"distributed.scheduler.no-workers-timeout": "4s"}),
        pytest.warns(UserWarning, match=r"has no worker.*`dask worker tcp://.*after 4 seconds"),
        pytest.raises(ClusterLost, match="no worker for 4 seconds"),
    ):
        result(future, mortal, int)


CLUSTER = """
import time
from distributed import LocalCluster

cluster = LocalCluster(1, threads_per_worker=1, processes=False, protocol="tcp://",
                       host="127.0.0.1", dashboard_address=None)
print(cluster.scheduler_address, flush=True)
time.sleep(600)
"""


def test_a_scheduler_killed_in_the_middle_is_one_sentence(tmp_path):
    started = tmp_path / "started"

    def work():
        started.touch()
        time.sleep(600)

    log = logging.getLogger("distributed.client")
    shown = StringIO()
    handler = logging.StreamHandler(shown)
    log.addHandler(handler)
    cluster = subprocess.Popen([sys.executable, "-c", CLUSTER], stdout=subprocess.PIPE, text=True)
    try:
        address = cluster.stdout.readline().strip()
        with connect(address) as client, ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(result, client.submit(work), client, int)
            wait_for(started)
            cluster.kill()
            with pytest.raises(ClusterLost) as loss:
                waiting.result()
    finally:
        log.removeHandler(handler)
        cluster.kill()
        cluster.wait()
        cluster.stdout.close()
    assert str(loss.value) == (
        f"The Dask cluster at {address} was lost before the work was done. Start it, and run this "
        "again."
    )
    assert loss.value.__suppress_context__  # Dask's own traceback is not shown
    assert "Traceback" not in shown.getvalue()


def test_an_error_of_the_work_is_raised_as_it_is(client):
    with pytest.raises(ZeroDivisionError):
        result(client.submit(divmod, 1, 0), client, tuple)


def test_time_that_ran_out_on_the_way_here_is_an_error(client, monkeypatch):
    async def late(*args, **kwargs):
        raise TimeoutError("too late")

    monkeypatch.setattr(client, "gather", late)
    with pytest.raises(TimeoutError, match="too late"):
        result(client.submit(sum, [1, 2]), client, int)


def test_a_task_that_ends_every_worker_is_named(
    processes, cluster, collection, tmp_path, monkeypatch
):
    X, Y, _ = collection
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    space = SemanticSpace(selection=X[::60])
    marks = [tmp_path / str(i) for i in range(3)]
    with pytest.raises(ClusterLost, match="ended every worker"):
        fit_space(space, deadly(X, marks, at=10), Y, client=processes)
    assert not hasattr(space, "landmarks_")


def test_no_cluster_at_all(collection):
    X, Y, _ = collection
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "200ms"}),
        pytest.raises(ClusterLost, match=r"No Dask scheduler answers at 'tcp://127\.0\.0\.1:1'"),
    ):
        connect("tcp://127.0.0.1:1")
    with pytest.raises(ClusterLost, match="No Dask scheduler"):
        connect("nonsense://")
    with pytest.raises(ClusterLost, match="no Dask cluster to work on"):
        fit_space(SemanticSpace(), X, Y)
    with pytest.raises(TagkinError, match="connect"):
        fit_space(SemanticSpace(), X, Y, client="tcp://127.0.0.1:1")


def test_a_client_by_its_address_and_the_progress(threads, collection):
    X, Y, _ = collection
    with connect(threads.scheduler_address) as client:
        client.wait_for_workers(2, timeout=60)
        features = da.from_array(X, chunks=(650, -1))
        space = SemanticSpace(n_landmarks=40, random_state=0)
        steps = []
        fit_space(space, features, Y, client=client, progress=lambda *step: steps.append(step))
        places = compute(transform(space, features), client=client)
        first, other = compute(da.ones(3), [da.zeros(2)], client=client)
    assert places.shape == (N, space.n_components_)
    assert steps[-1] == ("Learning the space", len(steps), len(steps))
    assert first.sum() == 3
    assert other[0].sum() == 0
