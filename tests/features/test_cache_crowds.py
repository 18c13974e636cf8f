"""A feature cache that many use at once, killed at random moments."""

import functools
import os
import shutil
import signal
import threading

import numpy as np

from tagkin.features import FeatureCache
from tests.forking import in_child, needs_fork

from .cache_samples import cached, database, fill, held, is_sound, keep


def write_until_killed(folder, n, mark, pipe):
    """Keep some of what is missing of n contents; note in a file and tell what is kept for sure."""
    with FeatureCache(folder) as cache, open(mark, "ab", buffering=0) as done:
        missing = sorted(set(range(n)) - held(cache, range(n)))
        for i in missing[: n // 4]:
            keep(cache, [i])
            done.write(i.to_bytes(2, "little"))
            os.write(pipe, b".")
        os.close(pipe)
        signal.pause()  # however late the kill comes, some is left for the next round


@needs_fork
def test_killed_at_random_moments_it_loses_only_what_was_being_stored(tmp_path, lean):
    """24 times two processes write the same contents and are killed."""
    lean(kill_at_random, tmp_path)


def kill_at_random(tmp_path):
    n, rng = 400, np.random.default_rng(0)
    folder, mark = tmp_path / "cache", tmp_path / "mark"
    for k in range(24):
        reading, writing = os.pipe()
        work = functools.partial(write_until_killed, folder, n, mark, writing)
        children = [in_child(work) for _ in range(2)]
        os.close(writing)
        for _ in range(rng.integers(0, 12)):  # that many are kept, others are being stored
            os.read(reading, 1)
        os.close(reading)
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        sure = set(np.frombuffer(mark.read_bytes(), "<u2").tolist()) if mark.exists() else set()
        assert cached(folder, range(n)) >= sure, k
        if database(folder).exists():
            assert is_sound(folder)
        if len(sure) == n:  # begin again
            shutil.rmtree(folder)
            mark.unlink()
    fill(folder, range(n))
    assert cached(folder, range(n)) == set(range(n))


@needs_fork
def test_four_processes_write_the_same_and_different_contents_at_once(tmp_path):
    def work(k):
        with FeatureCache(tmp_path) as cache:
            for i in range(60):
                keep(cache, [i])
                keep(cache, [1000 * (k + 1) + i])
                assert held(cache, [i]) == {i}

    children = [in_child(functools.partial(work, k)) for k in range(4)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    everything = {*range(60), *(1000 * (k + 1) + i for k in range(4) for i in range(60))}
    assert cached(tmp_path, range(5000)) == everything
    assert is_sound(tmp_path)


@needs_fork
def test_a_fork_opens_the_database_for_itself(tmp_path):
    with FeatureCache(tmp_path) as cache:
        keep(cache, [0])

        def work():
            for i in range(2, 200, 2):
                keep(cache, [i])
            cache.close()

        child = in_child(work)
        for i in range(1, 200, 2):
            keep(cache, [i])
        assert os.waitpid(child, 0)[1] == 0
        assert held(cache, range(200)) == set(range(200))
    assert is_sound(tmp_path)


def test_threads_share_a_cache(tmp_path):
    with FeatureCache(tmp_path) as cache:

        def work(k):
            for i in range(k, 200, 5):
                keep(cache, [i])
                held(cache, [i])

        threads = [threading.Thread(target=work, args=(k,)) for k in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert held(cache, range(200)) == set(range(200))
