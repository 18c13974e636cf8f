"""One small cluster for all tests: two processes of one thread, which nannies restart."""

import os
import signal
import time

import pytest


def local_cluster(n_workers=2):
    import distributed

    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=50,
    )


@pytest.fixture(scope="session")
def cluster():
    with local_cluster() as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    """A client of the cluster, with all its workers there."""
    import distributed

    with distributed.Client(cluster, set_as_default=True) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


def pids(client):
    """The processes of the workers."""
    return sorted(client.run(os.getpid).values())


def kill_one_when_busy(client, prefix, timeout=30.0):
    """Kill, for real, the worker that has tasks of this name in its memory; its process."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        for address, tasks in client.has_what().items():
            if any(str(task).startswith(prefix) for task in tasks):
                pid = client.run(os.getpid, workers=[address])[address]
                os.kill(pid, signal.SIGKILL)
                return pid
        time.sleep(0.02)
    raise AssertionError(f"no worker ever held a task {prefix!r}")
