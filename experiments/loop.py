"""What an evening of answers brings, and whether the page keeps its word meanwhile.

    python -m experiments loop                  # about an hour
    python -m experiments loop traveller        # one set again; the others stay
    python -m experiments loop --quick          # a small collection, a minute

Photographs are drawn from each set, and some of them are tagged; pages are answered as
`experiments.evening` says. Other evenings start with few tagged photographs, or with half of them.
What was measured is kept in the folder of results, by set.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from experiments.evening import Way, open_collection, play
from experiments.loop_page import Measured, write_page
from experiments.loop_sets import PERSONAL, SEEDS, SETS, draw
from experiments.loop_targets import (
    SHARE,
    Played,
    actions_until,
    answer_photographs,
    list_half_tagged,
    list_personal,
    list_rows,
    span,
    type_tags,
)
from experiments.problem import data_folder, is_available

__all__ = ["run"]


class Sizes(NamedTuple):
    """How many photographs are drawn and tagged, how many are new, and pages of answers."""

    n: int
    n_tagged: int
    n_new: int
    n_pages: int


SIZES = {
    "evening": Sizes(600, 119, 600, 260),
    "few": Sizes(300, 25, 400, 100),
    "half": Sizes(600, 300, 0, 100),
}
PERSONAL_SIZES = {"evening": Sizes(0, 100, 0, 160), "half": Sizes(0, 249, 0, 100)}
QUICK = Sizes(150, 60, 100, 12)
ASKED = {"as on the page": Way()}
PERSONAL_WAYS = ASKED | {"answers do not count for their moment": Way(knows_moments=False)}
PARTS = ("evening", "few", "half")


def run(results: Path, target: Path, names: Sequence[str] = (), *, quick: bool = False) -> None:
    """Play the evenings of some sets, default: those that are not kept yet; write loop.md."""
    sets = [name for name in SETS if _is_there(name)]
    if not sets:
        raise SystemExit("No dataset was found. Set TAGKIN_DATA to the folder that has them.")
    if unknown := set(names) - set(sets):
        raise SystemExit(f"No set is called {', '.join(unknown)}. There are {', '.join(sets)}.")
    if quick:
        sets, results = sets[1:2], target
    measured = {}
    for name in sets:
        parts: dict[str, list[list[Any]]] = {}
        for part in PARTS:
            kept = results / "loop" / f"{name}-{part}.json"
            if name in names or quick or not kept.exists():
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(json.dumps(measure(name, part, quick=quick)), encoding="utf-8")
            parts[part] = json.loads(kept.read_text(encoding="utf-8"))
        (evening, ways), (few,), (half,) = (parts[part] for part in PARTS)
        measured[name] = Measured(evening, few, half, ways)
        print(
            name, *(f"{text}: {value}" for text, value, _ in evening + half), sep="\n", flush=True
        )
    target.mkdir(parents=True, exist_ok=True)
    write_page(measured, target / "loop.md")


def _is_there(name: str) -> bool:
    return is_available(name) or (name == PERSONAL and (data_folder() / "personal").is_dir())


def measure(name: str, part: str, *, quick: bool = False) -> list[list[Any]]:
    """Play the evenings of a part of a set; return its rows and, of whole evenings, the ways."""
    seeds = SEEDS[:1] if quick else SEEDS
    is_personal = name == PERSONAL
    if is_personal and part == "few":
        return [[]]
    sizes = PERSONAL_SIZES[part] if is_personal else SIZES[part]
    ways = PERSONAL_WAYS if is_personal and part == "evening" else ASKED
    draws = [_play(name, seed, QUICK if quick else sizes, ways) for seed in seeds]
    if part == "half":
        return [list_half_tagged(draws)]
    if is_personal:
        return [list_personal(draws), _list_personal_ways(draws)]
    rows = list_rows(draws, sizes.n_pages)
    return [rows] if part == "few" else [rows, _list_ways(draws)]


def _play(name: str, seed: int, sizes: Sizes, ways: dict[str, Way]) -> Played:
    opened = open_collection(draw(name, seed, *sizes[:3]))
    evenings = {way: play(opened, sizes.n_pages, does) for way, does in ways.items()}
    print(name, seed, *sizes, flush=True)
    return Played(opened, evenings)


def _list_ways(draws: Sequence[Played]) -> list[list[str]]:
    """Return ways to work, each with the actions per right tag until SHARE."""
    measures: dict[str, Callable[[Played], float | None]] = {
        way: partial(actions_until, share=SHARE, way=way) for way in ASKED
    }
    measures |= {"a list per photograph": answer_photographs, "typing every tag": type_tags}
    return [[way, _mean(draws, of_draw)] for way, of_draw in measures.items()]


def _list_personal_ways(draws: Sequence[Played]) -> list[list[str]]:
    """The same until half and 80 % of the missing tags are there."""
    shares = (0.5, 0.8)
    rows = [
        [way, *(_mean(draws, partial(actions_until, share=share, way=way)) for share in shares)]
        for way in PERSONAL_WAYS
    ]
    alone = [partial(actions_until, share=share, has_headings=False) for share in shares]
    rows.append(["no clicks on headings", *(_mean(draws, of_draw) for of_draw in alone)])
    return rows


def _mean(draws: Sequence[Played], of_draw: Callable[[Played], float | None]) -> str:
    values = [value for one in draws if (value := of_draw(one)) is not None]
    return span(values, ".3f") if len(values) == len(draws) else "not reached"
