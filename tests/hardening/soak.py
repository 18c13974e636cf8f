"""Four processes at work on one collection: ``python -m tests.hardening.soak --seconds S``.

Each scans, trains, suggests, accepts, rejects, writes, undoes and looks, at random, as people and
their scripts do. A command may be refused because another one is writing; nothing else may go
wrong. At the end

- no command failed, and no process ended by a signal;
- memory and open files of the processes have not grown, and nothing temporary is left;
- the catalogue holds its invariants, and every photograph carries what the history says: what it
  had, and what was written and not undone.

What happened goes to build/soak.json as well.
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from typer.testing import CliRunner

from tagkin.catalogue import open_for_scan
from tagkin.catalogue.sources.written_files import finish_writes
from tagkin.cli import app
from tagkin.collection import read_keywords
from tagkin.collection.sidecars import with_tags

KEEP = Path(__file__).parents[2] / "build" / "soak.json"
N_PROCESSES, N_PHOTOGRAPHS = 4, 40
COLOURS = {"red": (200, 30, 30), "green": (30, 180, 40), "blue": (40, 50, 210)}
# What a second writer is told, and what a command says where there is nothing to do for it.
_PATIENCE = 300  # seconds for the other processes to load, too
_REFUSED = ("is writing", "Another", "nothing", "Nothing", "No ")


def make_collection(folder: Path) -> None:
    """Photographs of three colours, of which half carry the colour as a tag."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for i in range(N_PHOTOGRAPHS):
        name = list(COLOURS)[i % 3]
        pixels = np.clip(rng.normal(COLOURS[name], 25, (48, 64, 3)), 0, 255).astype(np.uint8)
        path = folder / f"{i:03}.jpg"
        Image.fromarray(pixels).save(path, quality=90)
        if i % 2:
            (folder / f"{i:03}.jpg.xmp").write_bytes(with_tags(None, [name])[0])


# --- one process ---


def command(rng: random.Random, root: Path) -> list[str]:
    """A command of a person or a script."""
    name = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    if name == "scan":
        return ["scan", str(root)]
    if name == "export":
        return ["export", "-"]
    if name in ("accept", "reject"):
        tag = rng.choice(list(COLOURS))
        return [name, "--tag", tag, "--at-least", f"{rng.random():.2f}"]
    return [name]


def run(*args: str) -> tuple[int, str]:
    """Run a command in this process; its exit code, and what it said."""
    result = CliRunner().invoke(app, list(args))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return 1, "".join(traceback.format_exception(result.exception))
    return result.exit_code, result.stderr


# how often each is chosen, over the sum of all
WEIGHTS = {
    "scan": 3,
    "train": 1,
    "suggest": 2,
    "accept": 5,
    "reject": 2,
    "write": 5,
    "undo": 4,
    "status": 3,
    "history": 2,
    "export": 2,
}


def used() -> dict[str, int]:
    """Memory in KB and open files of this process."""
    memory = int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0])
    return {"memory": memory, "files": len(os.listdir("/proc/self/fd"))}


def work(root: Path, seed: int, seconds: float, out: Path) -> None:
    """Run commands at random for some time; what happened goes to a file.

    Whatever is loaded at first use is loaded before, by a command that needs all of it.
    """
    patience = time.time() + _PATIENCE
    while run("train")[0] and time.time() < patience:
        time.sleep(0.5)
    end = time.time() + seconds
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    failures: list[str] = []
    uses: list[dict[str, int]] = []
    while time.time() < end:
        args = command(rng, root)
        code, result = run(*args)
        if code == 0:
            counts[args[0]] += 1
        elif "internal error" not in result and any(words in result for words in _REFUSED):
            counts[f"{args[0]}, refused"] += 1
        else:
            failures.append(f"{' '.join(args)}: {result}")
        uses.append(used())
    out.write_text(json.dumps({"counts": counts, "failures": failures, "uses": uses}))


# --- the end ---


def most(uses: list[dict[str, int]], what: str) -> tuple[int, int]:
    """The most in the second quarter of the time and in the last one: the first is a warm-up."""
    values = [use[what] for use in uses] or [0]
    quarter = len(values) // 4
    return max(values[quarter : 2 * quarter] or values), max(values[-quarter:])


def grown(uses: list[dict[str, int]], what: str) -> float:
    """By how much the last quarter is above the second one; 0 where there are few commands."""
    if len(uses) < 40:
        return 0.0
    before, after = most(uses, what)
    return after / before - 1


def check_end(root: Path, outcomes: list[dict[str, Any]]) -> list[str]:
    """What does not hold at the end."""
    from tests.catalogue.photographs import check_invariants

    wrong = [failure for outcome in outcomes for failure in outcome["failures"]]
    for what, allowed in (("memory", 0.25), ("files", 0.25)):
        more = max((grown(outcome["uses"], what) for outcome in outcomes), default=0)
        if more > allowed:
            wrong.append(f"{what} grew by {100 * more:.0f} %")
    with open_for_scan(root) as catalogue:
        finish_writes(catalogue.database)
        catalogue.scan()
        try:
            check_invariants(catalogue)
        except AssertionError as error:
            wrong.append(f"an invariant of the catalogue does not hold: {error}")
        tags_of = _tags_by_history(catalogue)
    for path in sorted(root.glob("*.jpg")):
        expected, tags = tags_of[path.name], set(read_keywords(path))
        if tags != expected:
            wrong.append(f"{path.name} carries {sorted(tags)}; history says {sorted(expected)}")
    known = {f"{p.name}{end}" for p in root.glob("*.jpg") for end in ("", ".xmp")}
    left = sorted({p.name for p in root.iterdir()} - known)
    return wrong + [f"left in the folder: {name}" for name in left]


def _tags_by_history(catalogue: Any) -> dict[str, set[str]]:
    """What each photograph had, and what was written to it and stands."""
    tags = {f"{i:03}.jpg": {list(COLOURS)[i % 3]} if i % 2 else set() for i in range(N_PHOTOGRAPHS)}
    for path, written in catalogue.database.rows(
        "SELECT p.path, w.tags FROM writes w JOIN photographs p ON p.id = w.photograph "
        "WHERE w.state = 'done'"
    ):
        tags[Path(path).name] |= set(json.loads(written))
    return tags


class Outcome(NamedTuple):
    """How it went.

    Attributes
    ----------
    counts : Counter
        How often each command ran, or was refused.
    wrong : list of str
        What went wrong, one sentence each.
    uses : dict
        For ``memory`` (KB) and ``files``: the most that any process used in the second and in the
        last quarter of the time.
    """

    counts: Counter[str]
    wrong: list[str]
    uses: dict[str, tuple[int, int]]


def soak(seconds: float, seed: int, top: Path) -> Outcome:
    """Let the processes work on a new collection, in a folder that is there."""
    os.environ["TAGKIN_CATALOGUES"] = str(top / "data")
    os.environ["TAGKIN_CACHE"] = str(top / "cache")
    os.environ["TMPDIR"] = str(top / "tmp")
    (top / "tmp").mkdir()
    root = top / "photos"
    make_collection(root)
    for args in (["scan", str(root)], ["train"], ["suggest"]):
        code, result = run(*args)
        if code:
            return Outcome(Counter(), [f"{args[0]}: {result}"], {})
    start = multiprocessing.get_context("spawn")
    outs = [top / f"{k}.json" for k in range(N_PROCESSES)]
    processes = [
        start.Process(target=work, args=(root, seed + k, seconds, out))
        for k, out in enumerate(outs)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    ended = [f"a process ended with {p.exitcode}" for p in processes if p.exitcode]
    outcomes = [json.loads(out.read_text()) for out in outs if out.exists()]
    counts: Counter[str] = sum((Counter(outcome["counts"]) for outcome in outcomes), Counter())
    left = [f"left among temporary files: {path.name}" for path in (top / "tmp").iterdir()]
    uses = {
        what: tuple(
            max(k) for k in zip(*(most(outcome["uses"], what) for outcome in outcomes), strict=True)
        )
        for what in ("memory", "files")
        if outcomes
    }
    return Outcome(counts, ended + left + check_end(root, outcomes), uses)


def main() -> int:
    """Soak, and say how it went; 1 where anything went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.hardening.soak")
    parser.add_argument("--seconds", type=float, default=7200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    top = Path(tempfile.mkdtemp(prefix="tagkin-soak-"))
    try:
        result = soak(asked.seconds, asked.seed, top)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    KEEP.parent.mkdir(exist_ok=True)
    KEEP.write_text(json.dumps({"seconds": asked.seconds, "seed": asked.seed} | result._asdict()))
    for name, n in sorted(result.counts.items()):
        print(f"{name:<20} {n:>8,}")
    for what, (before, after) in result.uses.items():
        print(f"{what}: at most {before:,} in the second quarter, {after:,} in the last")
    print(f"{sum(result.counts.values()):,} commands, {len(result.wrong)} failures")
    for fault in result.wrong[:20]:
        print(fault)
    return int(bool(result.wrong))


if __name__ == "__main__":
    sys.exit(main())
