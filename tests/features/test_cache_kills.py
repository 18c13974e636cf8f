"""A feature cache killed at step after step: what ended is there, and the rest can be done again.

Its steps are the instructions of SQLite's machine: writes to files happen between them.
"""

import os
import shutil
import signal
import sqlite3
from unittest import mock

import numpy as np

from tagkin.features import FeatureCache
from tests.forking import in_child, needs_fork
from tests.killing import kill_everywhere

from .cache_samples import NUMBERS, D, content, keep

pytestmark = needs_fork
N_KILLS = 40


def work(folder, noted=None, kill_at=None):
    """Keep, clear and keep again; how many instructions that took. What ended is told."""
    n = 0

    def count():
        nonlocal n
        n += 1
        if n == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    def counted(*args, **settings):
        connection = connect(*args, **settings)
        connection.set_progress_handler(count, 1)
        return connection

    connect = sqlite3.connect
    with mock.patch("sqlite3.connect", counted), FeatureCache(folder) as cache:
        for part in (range(4), range(4, 8)):
            keep(cache, part)
            if noted is not None:
                noted.write_text(f"{part.stop}")
        cache.clear()
        if noted is not None:
            noted.write_text("0")
        keep(cache, range(8, 12))
    return n


def check(folder, noted):
    """What a killed process left."""
    out = np.full((12, D), np.nan, dtype=np.float32)
    with FeatureCache(folder) as cache:
        hits = cache.load(NUMBERS, [content(i)[0] for i in range(12)], out)
        for i in np.flatnonzero(hits):
            np.testing.assert_array_equal(out[i], content(i)[1])
        n_told = int(noted.read_text()) if noted.exists() else 0
        # what was told is there; unless the clearing was under way, which leaves all or nothing
        assert hits[:n_told].all() or (n_told == 8 and not hits.any())
        keep(cache, range(12))
        assert cache.load(NUMBERS, [content(i)[0] for i in range(12)], out).all()


def test_killed_at_step_after_step(tmp_path, lean):
    assert lean(n_survived, tmp_path) >= N_KILLS - 5  # another process's instructions can be less


def n_survived(tmp_path):
    n = work(tmp_path / "counted")
    assert n > 10 * N_KILLS
    n_killed = 0
    for kill_at in np.linspace(1, n, N_KILLS).astype(int):
        folder, noted = tmp_path / f"{kill_at}", tmp_path / f"{kill_at}.txt"
        child = in_child(lambda: work(folder, noted, kill_at))  # noqa: B023 (done in this round)
        n_killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
        check(folder, noted)
        shutil.rmtree(folder)
    return n_killed


def test_a_damaged_database_is_set_aside_at_every_step(tmp_path, recwarn):
    """Killed while it is moved out of the way, it is moved by the next run."""
    folder = tmp_path / "cache"
    with FeatureCache(folder) as cache:
        keep(cache, range(4))
    whole = (folder / "features.sqlite").read_bytes()

    def prepare():
        shutil.rmtree(folder)
        folder.mkdir()
        (folder / "features.sqlite").write_bytes(whole[:100] + b"damaged" * 2000)

    def use():
        with FeatureCache(folder) as cache:
            keep(cache, range(4))

    def used(n):
        use()
        out = np.zeros((4, D), dtype=np.float32)
        with FeatureCache(folder) as cache:
            assert cache.load(NUMBERS, [content(i)[0] for i in range(4)], out).all()

    assert kill_everywhere(use, prepare, used) >= 2
