import os
import signal
import threading

import numpy as np
import pytest
from PIL import Image

from tagkin.distributed import extract
from tagkin.errors import ClusterLost, InvalidInput
from tagkin.features import FeatureCache, get_backbone
from tagkin.features import extract as extract_here

from .conftest import cluster_of_threads, local_cluster

da = pytest.importorskip("dask.array", reason="Dask is not installed")
distributed = pytest.importorskip("distributed")

NAME = "efficientnet-lite0"


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Photographs, one of them twice, and two files that are none."""
    folder = tmp_path_factory.mktemp("photographs")
    rng = np.random.default_rng(0)
    for i in range(10):
        pixels = np.kron(rng.integers(0, 255, (8, 8, 3)), np.ones((8, 8, 1)))
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i}.png")
    (folder / "copy.png").write_bytes((folder / "3.png").read_bytes())
    (folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    for path in folder.iterdir():
        os.utime(path, (10**9, 10**9))  # not a moment ago
    return [str(path) for path in sorted(folder.iterdir())] + [str(folder / "absent.png")]


@pytest.fixture(scope="module")
def expected(photographs):
    return extract_here(photographs, get_backbone(NAME))


def assert_same(actual, expected):
    assert actual.files == expected.files
    assert actual.digests == expected.digests
    assert actual.failures == expected.failures
    np.testing.assert_allclose(actual.features, expected.features, atol=1e-4)


def test_workers_send_no_telemetry(processes, photographs):
    """They import onnxruntime through the same door, whatever their environment was."""
    from tagkin.distributed.extraction import load_backbone, see

    processes.run(lambda: os.environ.pop("ORT_DISABLE_TELEMETRY", None))
    processes.run(load_backbone.cache_clear)
    processes.run(see, photographs[:1], NAME)
    assert set(processes.run(lambda: os.environ.get("ORT_DISABLE_TELEMETRY")).values()) == {"1"}


def test_features_are_those_of_one_machine(client, photographs, expected, tmp_path):
    steps = []

    def progress(what, done, total):
        steps.append((done, total))

    with FeatureCache(tmp_path) as cache:
        extraction = extract(photographs, NAME, cache=cache, progress=progress, n_per_task=4)
    assert_same(extraction, expected)
    assert (extraction.n_cached, extraction.n_computed) == (0, 10)
    assert steps[0] == (0, 13)
    assert steps[-1] == (13, 13)
    np.testing.assert_array_equal(
        extraction.features[extraction.files.index(photographs[3])],
        extraction.features[
            extraction.digests.index(extraction.digests[extraction.files.index(photographs[3])])
        ],
    )
    with FeatureCache(tmp_path) as cache:
        again = extract(photographs, NAME, cache=cache)
        here = extract_here(photographs, get_backbone(NAME), cache=cache)
    assert_same(again, expected)
    assert (again.n_cached, again.n_computed) == (11, 0)
    assert here.n_cached == 11  # what workers found serves this machine


def test_a_worker_killed_while_it_looks(processes, photographs, expected):
    killed = []

    def kill_one(what, done, total):
        if done and not killed:
            killed.append(sorted(processes.run(os.getpid).values())[0])
            os.kill(killed[0], signal.SIGKILL)

    assert_same(extract(photographs, NAME, progress=kill_one, n_per_task=1), expected)
    assert killed


class Killer:
    """Puts a network into workers that ends the process at the sight of one file."""

    def setup(self, worker):
        from tagkin.distributed import extraction

        real = extraction.extract_here

        def look_at(files, backbone):
            if any(file.endswith("/5.png") for file in files):
                os.kill(os.getpid(), signal.SIGKILL)
            return real(files, backbone)

        extraction.extract_here = look_at


def test_a_photograph_that_ends_processes_is_a_failure(
    processes, cluster, photographs, expected, monkeypatch
):
    from distributed import WorkerPlugin

    class Plugin(Killer, WorkerPlugin):
        pass

    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    processes.register_plugin(Plugin(), name="killer")
    try:
        damaged = [p for p in photographs if p.endswith(("/4.png", "/5.png", "/6.png"))]
        extraction = extract(damaged, NAME, client=processes)
    finally:
        processes.unregister_worker_plugin("killer")
        processes.restart_workers(list(processes.nthreads()))
    assert [os.path.basename(file) for file in extraction.files] == ["4.png", "6.png"]
    assert [os.path.basename(failure.file) for failure in extraction.failures] == ["5.png"]
    assert "ended" in extraction.failures[0].reason


def test_what_was_found_is_kept_when_the_cluster_goes(client, photographs, expected, tmp_path):
    with local_cluster(1) as mortal, distributed.Client(mortal, set_as_default=False) as lost:
        lost.wait_for_workers(1, timeout=60)
        closing = threading.Thread(target=mortal.close)

        def close(what, done, total):
            if done == 3:
                closing.start()
            elif done == 6:  # the rest does not overtake it
                closing.join()

        with FeatureCache(tmp_path) as cache, pytest.raises(ClusterLost, match="in the cache"):
            extract(photographs, NAME, client=lost, cache=cache, progress=close, n_per_task=1)
    with FeatureCache(tmp_path) as cache:
        extraction = extract(photographs, NAME, client=client, cache=cache)
    assert_same(extraction, expected)
    assert extraction.n_cached >= 2


def test_a_cluster_that_goes_before_the_next_task_is_sent(settings, photographs, tmp_path):
    with (
        cluster_of_threads(1) as mortal,
        distributed.Client(mortal, set_as_default=False) as lost,
        FeatureCache(tmp_path) as cache,
    ):

        def close(what, done, total):
            if done == 3:
                mortal.close()

        with pytest.raises(ClusterLost, match=r"was lost before.* 3 of 13 .* in the cache"):
            extract(photographs, NAME, client=lost, cache=cache, progress=close, n_per_task=1)


def test_a_backbone_itself_stands_for_its_name(client, photographs, expected):
    assert_same(extract(photographs, get_backbone(NAME)), expected)


def test_what_cannot_be_used_is_refused(client, photographs):
    with pytest.raises(InvalidInput, match="found one path"):
        extract(photographs[0], NAME)
    with pytest.raises(InvalidInput, match="no backbone 'x'"):
        extract(photographs, "x")
    from tagkin.distributed.extraction import see

    with pytest.raises(InvalidInput, match="another efficientnet-lite0"):
        see(photographs, NAME, "of another")
    assert extract([], NAME).files == []
