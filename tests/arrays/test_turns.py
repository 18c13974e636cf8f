"""Threads that take turns."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tagkin.arrays import Turns

N, TURNS = 3, 4


@pytest.mark.parametrize("last", range(N))
def test_turns_come_in_their_order_whoever_is_ready_first(last):
    """The last one begins when the others have nothing left to do but to wait for it."""
    turns, order, begun = Turns(N), [], [threading.Event() for _ in range(N)]

    def take(thread):
        with turns.taken_by(thread):
            begun[thread].set()
            if thread == last:
                for event in begun:
                    event.wait()
            for number in range(TURNS):
                with turns.next_of(thread):
                    order.append((number, thread))

    with ThreadPoolExecutor(N) as pool:
        list(pool.map(take, range(N)))
    assert order == [(number, thread) for number in range(TURNS) for thread in range(N)]


@pytest.mark.parametrize("leaves", range(N))
@pytest.mark.parametrize("within", [False, True], ids=["before", "within"])
def test_nobody_waits_for_one_that_fails(leaves, within):
    turns, order = Turns(N), []

    def take(thread):
        with turns.taken_by(thread):
            for number in range(TURNS):
                if thread == leaves and number == 1 and not within:
                    raise ArithmeticError
                with turns.next_of(thread):
                    if thread == leaves and number == 1:
                        raise ArithmeticError
                    order.append((number, thread))

    with ThreadPoolExecutor(N) as pool:
        done = [pool.submit(take, thread) for thread in range(N)]
        assert [isinstance(one.exception(), ArithmeticError) for one in done] == [
            thread == leaves for thread in range(N)
        ]
    expected = [(number, thread) for number in range(TURNS) for thread in range(N)]
    assert order == [(n, thread) for n, thread in expected if thread != leaves or n == 0]
