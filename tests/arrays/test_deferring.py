"""Attributes that are read at first use, by one thread or several."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from tagkin.arrays.deferring import Deferred, Deferring


class Sums(Deferring):
    pass


def deferring(read):
    sums = Sums()
    sums.__dict__["_deferred"] = Deferred(("total",), read)
    return sums


def test_what_is_deferred_is_read_once_and_goes_with_copies():
    reads = []
    sums = deferring(lambda: {"total": reads.append(1) or [3.0]})
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        _ = sums.other
    assert not reads
    assert sums.total is sums.total
    assert reads == [1]
    assert pickle.loads(pickle.dumps(deferring(lambda: {"total": [3.0]}))).total == [3.0]


def test_threads_that_ask_at_once_get_the_same():
    """A second reading would take what was added to the first one away again."""
    reads, another = [], Event()

    def read():
        reads.append(1)
        if len(reads) > 1:
            another.set()
        another.wait(0.2)  # time enough for the other thread to come in, if it may
        return {"total": [3.0]}

    sums = deferring(read)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: sums.total, range(2))
    assert first is second is sums.total
    assert reads == [1]
