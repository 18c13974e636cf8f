"""Two small clusters for all tests: one of threads, and one of processes, which may be lost."""

import os

import pytest


def local_cluster(n_workers=2):
    import distributed

    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=":0",
        silence_logs=50,
    )


@pytest.fixture(scope="package")
def settings():
    """Workers that start fast, and nannies that are not given up when the machine is busy."""
    import dask
    from distributed.utils import get_mp_context

    method = "spawn" if os.name == "nt" else "forkserver"
    with dask.config.set(
        {
            # what looks at the clock and at the machine, many times a second in every worker
            "distributed.admin.system-monitor.interval": "10 s",
            "distributed.admin.tick.interval": "1 s",
            "distributed.deploy.lost-worker-timeout": "10 minutes",
            "distributed.worker.multiprocessing-method": method,
            "distributed.worker.profile.enabled": False,
        }
    ):
        if method == "forkserver":
            wanted = ["dask.array", "distributed", "tagkin.distributed"]
            get_mp_context().set_forkserver_preload(wanted)
        yield


def connected(cluster):
    """A client, once all workers are there."""
    import distributed

    with distributed.Client(cluster, set_as_default=True) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


def cluster_of_threads(n_workers=2):
    """Workers in this process, which start at once.

    All that they are sent goes through a socket, as bytes, like between machines.
    """
    import distributed

    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=False,
        protocol="tcp://",
        memory_limit=0,
        host="127.0.0.1",
        dashboard_address=":0",
        silence_logs=50,
    )


@pytest.fixture(scope="package")
def threads(settings):
    """Two workers in this process."""
    with cluster_of_threads() as cluster:
        yield cluster


@pytest.fixture
def client(threads):
    """A client of the workers in this process, with all of them there."""
    yield from connected(threads)


@pytest.fixture(scope="module")
def cluster(settings):
    """Two processes of one thread, which nannies restart.

    Not for longer than it is needed: one that has nothing to do takes a tenth of a core.
    """
    with local_cluster() as cluster:
        yield cluster


@pytest.fixture
def processes(cluster):
    """A client of the cluster of processes, with all of them there."""
    yield from connected(cluster)
