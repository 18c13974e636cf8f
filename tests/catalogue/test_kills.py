"""Killed at any moment, a catalogue is sound: nothing is half done, nothing that ended is lost."""

import os
import random
import signal
import time

from tagkin.catalogue import (
    ACCEPTED,
    REJECTED,
    Catalogue,
    Filters,
    change_tags,
    decide,
    history,
    last_undoable,
    scan,
    take_back,
)
from tests.forking import in_child, needs_fork

from .photographs import check_invariants
from .suggested import content, offer

pytestmark = needs_fork
# The disk need not be waited for: what a killed process has written, the system keeps.
UNHURRIED = "PRAGMA synchronous = OFF"
N_STEPS, N_MOMENTS = 120, 80  # kills at a step of SQLite's, and at a moment


def work(catalogue: Catalogue, folder, seed: int) -> None:
    """A bit of everything, in an order of its own; what ended is told in a file."""
    rng = random.Random(seed)
    names = ["a.jpg", "b.jpg", "2024/c.jpg", "2024/d.jpg"]
    steps = [
        lambda: offer(catalogue, {n: {"new": 0.5, f"tag {rng.random():.1f}": 0.9} for n in names}),
        lambda: decide(catalogue, rng.choice([ACCEPTED, REJECTED]), Filters(at_least=0.6)),
        lambda: decide(catalogue, ACCEPTED, Filters(photographs=["a.jpg"], tags=["own"])),
        lambda: (run := last_undoable(catalogue)) and take_back(catalogue, run.id),
        lambda: change_tags(catalogue, "merge", ["sea"], f"sea {rng.random()}"),
        lambda: (folder.tag("b.jpg", [f"found {rng.random():.1f}"]), scan(catalogue)),
        lambda: (folder.put("2024/d.jpg", str(rng.random())), scan(catalogue)),
    ]
    while True:
        rng.choice(steps)()
        last = history(catalogue, 1)[0]
        if last.ended_at is not None:  # else it was killed before
            with open(folder.root.parent / "told", "w") as file:
                file.write(str(last.id))


def survived(path, folder) -> None:
    """Whether all is sound after a kill; and the next command works."""
    with Catalogue(path, write=True) as catalogue:
        catalogue.row(UNHURRIED)
        check_invariants(catalogue)
        noted = folder.root.parent / "told"
        told = noted.read_text() if noted.exists() else ""
        runs = {run.id: run for run in history(catalogue)}
        assert not told or runs[int(told)].ended_at is not None, "an ended run is lost"
        for run in runs.values():
            if run.what in ("accept", "reject", "undo", "tags merge"):
                assert run.ended_at is not None, "half a decision"
        assert content(catalogue, "a.jpg")


def killed(path, folder, seed, kill) -> int:
    """Work in a child until it is killed; its exit status."""

    def working():
        with Catalogue(path, write=True) as catalogue:
            catalogue.row(UNHURRIED)
            kill(catalogue)
            work(catalogue, folder, seed)

    child = in_child(working)
    if kill is by_moment:
        time.sleep(random.Random(seed).uniform(0, 0.02))
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def by_moment(catalogue: Catalogue) -> None:
    """The parent kills."""


def by_step(n: int):
    """Kill after 10n instructions of SQLite's machine: in the middle of a statement."""

    def arm(catalogue: Catalogue) -> None:
        left = n

        def count() -> int:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return 0

        with catalogue.transaction() as connection:
            connection.set_progress_handler(count, 10)

    return arm


def test_a_catalogue_survives_two_hundred_kills(catalogue, folder):
    offer(catalogue)
    path = catalogue.path
    catalogue.close()
    rng = random.Random(0)
    for seed in range(N_STEPS):
        status = killed(path, folder, seed, by_step(rng.randint(1, 500)))
        assert os.WIFSIGNALED(status)
        survived(path, folder)
    for seed in range(N_MOMENTS):
        assert os.WIFSIGNALED(killed(path, folder, 1000 + seed, by_moment))
        survived(path, folder)
