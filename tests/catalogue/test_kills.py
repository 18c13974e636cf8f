"""Killed at any moment, a catalogue is sound: nothing is half done, nothing that ended is lost."""

import contextlib
import os
import random
import signal
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from tagkin.catalogue import ACCEPTED, REJECTED, Catalogue, Filters, open_catalogue
from tests.forking import in_child, needs_fork

from .photographs import check_invariants
from .suggested import content, offer

pytestmark = needs_fork
# The disk need not be waited for: what a killed process has written, the system keeps.
UNHURRIED = "PRAGMA synchronous = OFF"
N_STEPS, N_MOMENTS = 120, 80  # kills at a step of SQLite's, and at a moment
DECIDING = ("accept", "reject", "undo", "tags merge")  # runs that are one transaction each


def bits(catalogue: Catalogue, folder, rng: random.Random) -> list:
    """A bit of everything that changes a catalogue."""
    names = ["a.jpg", "b.jpg", "2024/c.jpg", "2024/d.jpg"]
    return [
        lambda: offer(catalogue, {n: {"new": 0.5, f"tag {rng.random():.1f}": 0.9} for n in names}),
        lambda: catalogue.decisions.decide(rng.choice([ACCEPTED, REJECTED]), Filters(at_least=0.6)),
        lambda: catalogue.decisions.decide(ACCEPTED, Filters(photographs=["a.jpg"], tags=["own"])),
        lambda: (run := catalogue.runs.last_undoable()) and catalogue.decisions.undo(run.id),
        lambda: catalogue.tags.change("merge", ["sea"], f"sea {rng.random()}"),
        lambda: (folder.tag("b.jpg", [f"found {rng.random():.1f}"]), catalogue.scan()),
        lambda: (folder.put("2024/d.jpg", str(rng.random())), catalogue.scan()),
    ]


def work(catalogue: Catalogue, folder, seed: int, begin) -> None:
    """These, in an order of its own; what ended is told in a file.

    A function is called when each of them begins.
    """
    rng = random.Random(seed)
    steps = bits(catalogue, folder, rng)
    while True:
        begin()
        rng.choice(steps)()
        last = catalogue.runs.history(1)[0]
        if last.ended_at is not None:  # else it was killed before
            with open(folder.root.parent / "told", "w") as file:
                file.write(str(last.id))


def survived(path, folder) -> None:
    """Whether all is sound after a kill; and the next command works."""
    with open_catalogue(path, write=True) as catalogue:
        catalogue.database.row(UNHURRIED)
        check_invariants(catalogue)
        noted = folder.root.parent / "told"
        text = noted.read_text() if noted.exists() else ""
        ended = "SELECT count(*) FROM runs WHERE id = ? AND ended_at IS NOT NULL"
        assert not text or catalogue.database.value(ended, (int(text),)), "an ended run is lost"
        half_done = f"SELECT * FROM runs WHERE what IN {DECIDING} AND ended_at IS NULL"
        assert catalogue.database.rows(half_done) == [], "half a decision"
        assert content(catalogue, "a.jpg")


def killed_at_step(path, folder, seed, n) -> int:
    """Work in a child that is killed in the middle of a statement; its exit status."""

    def working():
        with every_ten_steps() as do, open_catalogue(path, write=True) as catalogue:
            catalogue.database.row(UNHURRIED)
            do.append(by_step(n))
            work(catalogue, folder, seed, begin=lambda: None)

    return os.waitpid(in_child(working), 0)[1]


def killed_at_moment(path, folder, seed, n) -> int:
    """Work in a child that is killed some time after it has begun its n-th bit; its exit status."""
    reading, writing = os.pipe()

    def working():
        with open_catalogue(path, write=True) as catalogue:
            catalogue.database.row(UNHURRIED)
            work(catalogue, folder, seed, begin=lambda: os.write(writing, b"."))

    child = in_child(working)
    os.close(writing)
    for _ in range(n):
        os.read(reading, 1)
    os.kill(child, signal.SIGKILL)
    os.close(reading)
    return os.waitpid(child, 0)[1]


@contextlib.contextmanager
def every_ten_steps() -> Iterator[list[Callable[[], None]]]:
    """Do what is in the list after each ten instructions of SQLite's machine."""
    do: list[Callable[[], None]] = []
    connect = sqlite3.connect

    def step() -> int:
        for each in do:
            each()
        return 0

    def connect_with_steps(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_progress_handler(step, 10)
        return connection

    with mock.patch.object(sqlite3, "connect", connect_with_steps):
        yield do


def by_step(n: int) -> Callable[[], None]:
    """Kill at the n-th call: in the middle of a statement."""
    left = n

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return count


def test_a_catalogue_survives_two_hundred_kills(catalogue, folder, lean):
    offer(catalogue)
    catalogue.close()
    lean(survives, catalogue.path, folder)


def survives(path, folder):
    rng = random.Random(0)
    with open_catalogue(path, write=True) as catalogue:
        for bit in bits(catalogue, folder, rng):  # what they import, no child has to
            bit()
    for seed in range(N_STEPS):
        assert os.WIFSIGNALED(killed_at_step(path, folder, seed, rng.randint(1, 500)))
        survived(path, folder)
    for seed in range(N_MOMENTS):
        assert os.WIFSIGNALED(killed_at_moment(path, folder, 1000 + seed, rng.randint(0, 3)))
        survived(path, folder)
