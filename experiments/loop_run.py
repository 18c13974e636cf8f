"""Play everything about answers, and write the page after each collection."""

from __future__ import annotations

import time
from pathlib import Path

from experiments.loop import QUICK, SHOWN, Plan, list_cells, rank_knowing_all, run_cell
from experiments.loop_new_tags import EXAMPLES, run_new_tags
from experiments.loop_page import Results, write_page
from experiments.problem import is_available
from experiments.store import Store

__all__ = ["run"]

NEW_TAG_SETS = ("coco", "flickr8k")


def run(results: Path, target: Path, *, quick: bool = False) -> None:
    """Play all rounds that are not stored, and write loop.md, loop.csv and loop.svg."""
    plan, store = (QUICK if quick else SHOWN), Store(results / "loop")
    sets = {name: s for name, s in plan.sets.items() if is_available(s.dataset)}
    if not sets:
        raise SystemExit("No dataset was found. Set TAGKIN_DATA to the folder that has them.")
    plan = plan._replace(sets=sets)
    played, known_all, new_tags, last = {}, {}, {}, None
    target.mkdir(parents=True, exist_ok=True)
    for cell in list_cells(plan):
        if cell[:2] != last and played:
            write_page(Results(played, known_all, new_tags), target)
        last, start = cell[:2], time.monotonic()
        if cell.set not in known_all:
            known_all[cell.set] = 100 * rank_knowing_all(plan, cell.set, store)
            _add_new_tags(plan, cell.set, store, new_tags)
        played[cell] = run_cell(plan, cell, store)
        print(*cell, f"{time.monotonic() - start:.0f} s", flush=True)
    write_page(Results(played, known_all, new_tags), target)


def _add_new_tags(plan: Plan, name: str, store: Store, new_tags: dict) -> None:
    if name in NEW_TAG_SETS:
        for n in EXAMPLES:
            new_tags[name, n] = run_new_tags(plan, name, n, store)
