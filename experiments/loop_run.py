"""Play everything about answers, and write the page."""

from __future__ import annotations

import time
from pathlib import Path

from experiments.loop import QUICK, SHOWN, list_cells, rank_knowing_all, run_cell
from experiments.loop_new_tags import EXAMPLES, run_new_tags
from experiments.loop_page import write_page
from experiments.loop_rounds import Results
from experiments.problem import is_available
from experiments.review import measure_fits
from experiments.store import Store

__all__ = ["run"]

REVIEWED_SHARE = 0.8  # of the missing tags, after which a review ends
NEW_TAG_SETS = {"coco", "flickr8k"}


def run(results: Path, target: Path, *, quick: bool = False) -> None:
    """Play all rounds that are not stored, and write loop.md, loop.csv and loop.svg."""
    plan, store = (QUICK if quick else SHOWN), Store(results / "loop")
    sets = {name: s for name, s in plan.sets.items() if is_available(s.dataset)}
    if not sets:
        raise SystemExit("No dataset was found. Set TAGKIN_DATA to the folder that has them.")
    plan = plan._replace(sets=sets)
    target.mkdir(parents=True, exist_ok=True)
    played = Results({}, {}, {})
    for cell in list_cells(plan):
        start = time.monotonic()
        if cell.set not in played.known_all:
            played.known_all[cell.set] = 100 * rank_knowing_all(plan, cell.set, store)
        played.rounds[cell] = run_cell(plan, cell, store)
        print(*cell, f"{time.monotonic() - start:.0f} s", flush=True)
    for name in sorted(sets.keys() & NEW_TAG_SETS):
        for n in EXAMPLES:
            played.new_tags[name, n] = run_new_tags(plan, name, n, store)
    if "coco" in sets and not quick:
        review = store.get_or_compute("review", lambda: {"reviews": measure_fits(REVIEWED_SHARE)})
        played = played._replace(review=review["reviews"])
    write_page(played, target)
