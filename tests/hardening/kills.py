"""Commands killed at their n-th write, fsync or rename: ``python -m tests.hardening.kills``.

A small collection is scanned, trained, suggested, accepted, written, undone and added to. Each of
these is done over and over from the same state, killed at its n-th system call that changes a
file, for every n (or ``--some K``: K of them at equal steps). After each

- the catalogue holds its invariants, and every photograph is as it was;
- every sidecar is as before the command, or as after it;
- at the model's place a whole model stands;
- the same command, given again, ends without an error, and leaves what it leaves when nobody
  kills it.
"""

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from tagkin import Annotator, load
from tagkin.catalogue import open_for_scan
from tagkin.collection import read_collection, read_keywords
from tagkin.collection.sidecars import remove_scratch, with_tags
from tests.catalogue.photographs import check_invariants
from tests.hardening.soak import COLOURS, run
from tests.tracing import can_trace, traced

N_PHOTOGRAPHS = 12


@dataclass(frozen=True)
class World:
    """One collection, with its catalogue and its cache, and a model in a folder."""

    top: Path

    @property
    def photos(self) -> Path:
        """The photographs and their sidecars."""
        return self.top / "photos"

    @property
    def model(self) -> Path:
        """A model outside of the catalogue."""
        return self.top / "model"

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Within, commands keep everything here."""
        here = {"TAGKIN_CATALOGUES": "data", "TAGKIN_CACHE": "cache", "TMPDIR": "tmp"}
        before = {name: os.environ.get(name) for name in here}
        os.environ |= {name: str(self.top / folder) for name, folder in here.items()}
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})

    def succeed(self, *args: str) -> None:
        """Give a command, which must succeed."""
        with self.entered():
            code, result = run(*args)
        assert code == 0, f"{args[0]}: {result}"


def make_world(top: Path) -> World:
    """Photographs of three colours, of which most carry the colour as a tag."""
    world = World(top)
    world.photos.mkdir(parents=True)
    (top / "tmp").mkdir()
    rng = np.random.default_rng(0)
    for i in range(N_PHOTOGRAPHS):
        name = list(COLOURS)[i % 3]
        pixels = np.clip(rng.normal(COLOURS[name], 25, (32, 32, 3)), 0, 255).astype(np.uint8)
        path = world.photos / f"{i:02}.jpg"
        Image.fromarray(pixels).save(path)
        if i < N_PHOTOGRAPHS - 3:
            path.with_name(f"{path.name}.xmp").write_bytes(with_tags(None, [name])[0])
    return world


class Battery(NamedTuple):
    """A command, and what comes before it."""

    before: list[list[str]]
    work: Callable[[World], None]


def _command(*args: str) -> Callable[[World], None]:
    return lambda world: world.succeed(*args)


def _scan(world: World) -> None:
    world.succeed("scan", str(world.photos))


def _save_model(world: World) -> None:
    with world.entered():
        Annotator().fit(read_collection(world.photos)).save(world.model, overwrite=True)


def _add(world: World) -> None:
    """Photographs are added to a model, which is saved in its own place."""
    with world.entered():
        annotator = load(world.model)
        last = sorted(world.photos.glob("*.jpg"))[-3:]
        annotator.partial_fit([str(path) for path in last], [["new"], ["new"], ["red"]])
        annotator.save(world.model, overwrite=True)


_SUGGESTED = [["scan"], ["train"], ["suggest"]]
_ACCEPTED = [*_SUGGESTED, ["accept", "--at-least", "0.05"]]
BATTERIES = {
    "scan": Battery([], _scan),
    "train": Battery([["scan"]], _command("train")),
    "suggest": Battery([["scan"], ["train"]], _command("suggest")),
    "accept": Battery(_SUGGESTED, _command("accept", "--at-least", "0.05")),
    "write": Battery(_ACCEPTED, _command("write")),
    "undo": Battery([*_ACCEPTED, ["write"]], _command("undo")),
    "save": Battery([["model"]], _save_model),
    "add": Battery([["model"]], _add),
}


def prepared(battery: Battery, top: Path) -> World:
    """A collection as it is before the command."""
    world = make_world(top)
    for args in battery.before:
        if args == ["scan"]:
            _scan(world)
        elif args == ["model"]:
            _save_model(world)
        else:
            world.succeed(*args)
    return world


# --- what must hold ----------------------------------------------------------------------


def files_of(world: World) -> dict[str, bytes]:
    """Photographs and sidecars, byte for byte; the remains of killed writes are no part of it."""
    remove_scratch(world.photos)
    return {path.name: path.read_bytes() for path in sorted(world.photos.iterdir())}


def tags_of(world: World) -> dict[str, tuple[str, ...]]:
    """What every photograph carries."""
    return {path.name: tuple(read_keywords(path)) for path in sorted(world.photos.glob("*.jpg"))}


def check_killed(world: World, before: dict[str, bytes], after: dict[str, bytes]) -> None:
    """What a killed command left is whole."""
    for name, data in files_of(world).items():
        assert data in (before.get(name), after.get(name)), f"{name} is half-written"
    assert {name for name in before if name.endswith(".jpg")} <= set(files_of(world))
    if world.model.exists():
        assert load(world.model).method_.labels.shape[0] > 0
    if any((world.top / "data").glob("**/*.sqlite")):
        with world.entered(), open_for_scan(world.photos) as catalogue:
            check_invariants(catalogue)


def check_again(world: World, work: Callable[[World], None], expected: dict) -> None:
    """The same command ends, or says that there is nothing left to do; the end is the same."""
    try:
        work(world)
    except AssertionError as error:  # what was done already is not done twice
        if not any(word in str(error) for word in ("othing", "No ")):
            raise
    assert tags_of(world) == expected
    left = {path.name for path in (world.top / "tmp").iterdir()}
    assert not left, f"left among temporary files: {left}"
    if world.model.exists():
        names = sorted(path.name for path in world.model.iterdir())
        assert names == ["README.md", "model.safetensors"], names


class Kills(NamedTuple):
    """How a command fared."""

    name: str
    n_steps: int
    """Calls that change a file, where nobody kills."""
    n_killed: int
    failures: list[str]


def kill(name: str, top: Path, some: int | None = None) -> Kills:
    """Kill a command at each of its steps, or at some of them."""
    battery = BATTERIES[name]
    start = prepared(battery, top / "start")
    before = files_of(start)

    def fresh() -> World:
        """The same collection in the same place: catalogues know it by that."""
        here = top / "start"
        shutil.rmtree(here)
        shutil.copytree(top / "kept", here, symlinks=True)
        return World(here)

    shutil.copytree(top / "start", top / "kept", symlinks=True)
    world = fresh()
    n_steps = len(traced(lambda: battery.work(world)).steps)
    after, expected = files_of(world), tags_of(world)
    numbers = np.arange(n_steps)
    if some is not None:
        numbers = np.unique(np.linspace(0, n_steps - 1, min(some, n_steps)).astype(int))
    n_killed, failures = 0, []
    for n in numbers:
        world = fresh()
        try:
            n_killed += traced(lambda: battery.work(world), int(n)).killed  # noqa: B023
            check_killed(world, before, after)
            check_again(world, battery.work, expected)
        except Exception:
            failures.append(f"{name}, at step {n}: {traceback.format_exc()}")
    return Kills(name, n_steps, n_killed, failures)


def kill_apart(name: str, some: int | None) -> Kills:
    """Kill a command in a folder that is removed afterwards."""
    top = Path(tempfile.mkdtemp(prefix="tagkin-kills-"))
    try:
        return kill(name, top, some)
    finally:
        shutil.rmtree(top, ignore_errors=True)


def kill_all(some: int | None = None) -> list[Kills]:
    """Every command; as many at a time as there are processors, in processes of their own."""
    start = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=start) as pool:
        return list(pool.map(kill_apart, BATTERIES, [some] * len(BATTERIES)))


def main() -> int:
    """Kill, and say how it went; 1 where anything was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.hardening.kills", description=__doc__)
    parser.add_argument("--some", type=int, help="kills of each command, at equal steps")
    asked = parser.parse_args()
    if not can_trace():
        print("A process may not trace its child here.")
        return 0
    outcomes = kill_all(asked.some)
    for outcome in outcomes:
        print(f"{outcome.name:<14} {outcome.n_steps:>6} steps {outcome.n_killed:>6} kills", end=" ")
        print(f"{len(outcome.failures):>4} failures")
        for failure in outcome.failures[:5]:
            print(failure)
    return int(any(outcome.failures for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
