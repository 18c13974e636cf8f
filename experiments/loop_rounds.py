"""Rounds as totals, beside the same rounds of complete photographs alone; and what must hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from experiments.bootstrap import compare, resample_weights
from experiments.loop import ASKED, RESAMPLES, SETS, Cell
from experiments.store import Arrays
from tagkin.wording import count

__all__ = ["NAMES", "Results", "Round", "compare_totals", "list_promises", "list_rounds", "percent"]

ENOUGH = 200  # suggestions; of fewer, a precision tells little
NAMES = {
    "bulk": "accepts all at 80 %",
    "pages": "answers pages",
    "photographs": "answers photographs",
    "hasty": "hasty pages",
}

Promise = tuple[str, str, bool]
"""What must hold, what was measured, and whether it holds."""


class Results(NamedTuple):
    """Everything that was played."""

    rounds: dict[Cell, Arrays]
    known_all: dict[str, float]
    """MAP of a model of all true tags, at MAIN_SHARE."""
    new_tags: dict[tuple[str, int], Arrays]
    review: np.ndarray | None = None
    """A review of COCO without and with full fits (2×2): actions per right tag, and how many tags
    were said to be right as a share of those that were."""


class Round(NamedTuple):
    """One round of a cell, as totals over photographs."""

    cell: Cell
    number: int
    map: float
    map_gain: tuple[float, float, float]
    """Against complete photographs alone, with its 95 % interval."""
    kept: tuple[float, float, float]
    """Right tags accepted and pending, as a share of those of complete photographs alone."""
    pending: int
    pending_right: int
    pending_said: float
    accepted: int
    accepted_right: int
    accepted_said: float
    asked: tuple[tuple[int, int], ...]
    """Suggestions at each asked precision, and the right ones."""
    n_actions: int
    reached: float
    """Share of the missing tags that were accepted."""

    @property
    def off(self) -> float:
        """How many pending tags were said to be right, as a share of those that are."""
        return self.pending_said / max(self.pending_right, 1)


def list_rounds(results: Results) -> list[Round]:
    """Summarise all rounds, each beside the same round of complete photographs alone."""
    rounds = []
    for cell, arrays in results.rounds.items():
        alone = results.rounds[cell._replace(way="alone")]
        for number in range(len(arrays["map"])):
            now, then = ({k: v[number] for k, v in a.items()} for a in (arrays, alone))
            rounds.append(_summarise(cell, number, now, then))
    return rounds


def _summarise(cell: Cell, number: int, now: Arrays, alone: Arrays) -> Round:
    resampled = now["resampled_map"], alone["resampled_map"]
    gain = compare(*resampled, float(now["map"]), float(alone["map"]))
    asked = zip(now["asked"].sum(axis=-1), now["asked_right"].sum(axis=-1), strict=True)
    return Round(
        cell,
        number,
        map=100 * float(now["map"]),
        map_gain=(100 * gain.value, 100 * gain.low, 100 * gain.high),
        kept=compare_totals(_right(now), _right(alone)),
        pending=int(now["pending"].sum()),
        pending_right=int(now["pending_right"].sum()),
        pending_said=float(now["pending_said"].sum()),
        accepted=int(now["accepted"].sum()),
        accepted_right=int(now["accepted_right"].sum()),
        accepted_said=float(now["accepted_said"].sum()),
        asked=tuple((int(n), int(right)) for n, right in asked),
        n_actions=int(now["n_actions"]),
        reached=float(now["accepted_right"].sum() / now["n_missing"]),
    )


def _right(arrays: Arrays) -> np.ndarray:
    return arrays["accepted_right"] + arrays["pending_right"]


def compare_totals(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float, float]:
    """Return the ratio of two totals over the same photographs (n,), with its 95 % interval."""
    weights = resample_weights(len(ours), RESAMPLES, 0).astype(float)
    ratios = (weights @ ours) / np.maximum(weights @ theirs, 1)
    low, high = np.percentile(ratios, [2.5, 97.5])
    return float(ours.sum() / max(theirs.sum(), 1)), float(low), float(high)


# --- promises -------------------------------------------------------------------------------


def list_promises(results: Results, rounds: list[Round]) -> list[list[str]]:
    """List what must hold, what was measured, and whether it holds."""
    ours = [r for r in rounds if r.cell.way == "answers" and r.number]
    # what is accepted in bulk changes nothing, so later rounds are the first one again
    first = {(r.cell, r.accepted, r.pending, r.pending_said): r for r in reversed(ours)}
    distinct = list(first.values())[::-1]
    promises = [*_better_order(ours), _kept_tags(ours), *_honest_counts(distinct)]
    promises += [*_asked_precisions(distinct), *_again_and_again(ours)]
    if results.review is not None:
        text = "a review of 3,000 COCO photographs until 80 %: .58 actions per right tag"
        actions, promised = results.review.T
        value = "{:.2f}, and {:.2f} with full fits (one draw)"
        promises.append((text, value.format(*actions), bool(min(actions) <= 0.58)))
        text = "“about N right” of the pages of that review, summed, within 10 %"
        is_fine = bool((abs(promised - 1) <= 0.1).all())
        promises.append((text, value.format(*promised), is_fine))
    return [[text, value, "yes" if holds else "**no**"] for text, value, holds in promises]


def _better_order(ours: list[Round]) -> Iterator[Promise]:
    for name, least in (("coco", 0.8), ("flickr8k", 0.6)):
        pages = [r for r in ours if (r.cell.set, r.cell.person, r.number) == (name, "pages", 3)]
        if pages:
            worst = min(pages, key=lambda r: r.map_gain[0])
            gain = "{:+.1f} ({:+.1f} to {:+.1f})".format(*worst.map_gain)
            text = f"MAP after three rounds of pages: +{least} on {SETS[name].title}"
            yield text, f"{gain} at {percent(worst.cell.share)}", worst.map_gain[0] >= least


def _kept_tags(ours: list[Round]) -> Promise:
    worst, n_fine = min(ours, key=lambda r: r.kept[0]), sum(r.kept[0] >= 0.97 for r in ours)
    value = f"{n_fine} of {len(ours)} rounds; {worst.kept[0]:.3f} ({worst.kept[1]:.3f} to "
    value += f"{worst.kept[2]:.3f}) at least: {_place(worst)}"
    text = "right tags accepted and pending: .97 of those of complete photographs alone"
    return text, value, n_fine == len(ours)


def _honest_counts(ours: list[Round]) -> Iterator[Promise]:
    for person, title in NAMES.items():
        said = [(r.off, r) for r in ours if r.cell.person == person and r.pending >= ENOUGH]
        if said:
            n_fine = sum(abs(off - 1) <= 0.1 for off, _ in said)
            text = f"“about N right”, pending, within 10 %: {title}"
            yield text, f"{n_fine} of {len(said)} rounds; {_range(said)}", n_fine == len(said)
    bulk = [r for r in ours if r.cell.person == "bulk" and r.accepted >= ENOUGH]
    said = [(r.accepted_said / r.accepted_right, r) for r in bulk]
    if said:
        is_fine = all(abs(off - 1) <= 0.1 for off, _ in said)
        yield "“about N right”, accepted in bulk, within 10 %", _range(said), is_fine


def _asked_precisions(ours: list[Round]) -> Iterator[Promise]:
    for person, title in NAMES.items():
        for p, at in zip(ASKED, range(len(ASKED)), strict=True):
            some = [r for r in ours if r.cell.person == person and r.asked[at][0] >= ENOUGH]
            reached = [(r.asked[at][1] / r.asked[at][0], r) for r in some]
            if reached:
                n_fine = sum(abs(value - p) <= 0.04 for value, _ in reached)
                text = f"asked precision of {p} on what is pending, within .04: {title}"
                value = f"{n_fine} of {len(reached)} rounds; {_range(reached)}"
                yield text, value, n_fine == len(reached)


def _again_and_again(ours: list[Round]) -> Iterator[Promise]:
    accepted = {r: r.accepted_right / r.accepted for r in ours if r.accepted}
    bulk = [r for r in accepted if r.cell.person == "bulk"]
    pairs = [
        (a, b) for a in bulk for b in bulk if a.cell == b.cell and (a.number, b.number) == (1, 5)
    ]
    if pairs:
        first, last = max(pairs, key=lambda pair: accepted[pair[0]] - accepted[pair[1]])
        fall = max(accepted[first] - accepted[last], 0)
        text = "accept at 80 %, train, suggest, five times: precision falls by .03 at most"
        yield text, f"{fall:.3f} at most, {count(len(pairs), 'collection')}", fall <= 0.03


def _range(values: list[tuple[float, Round]]) -> str:
    low, high = (choose(values, key=lambda pair: pair[0]) for choose in (min, max))
    if low == high:
        return f"{low[0]:.2f}: {_place(low[1])}"
    return f"{low[0]:.2f} ({_place(low[1])}) to {high[0]:.2f} ({_place(high[1])})"


def percent(share: float) -> str:
    """Write a share as a percentage."""
    return f"{100 * share:.0f} %"


def _place(r: Round) -> str:
    return f"{SETS[r.cell.set].title}, {percent(r.cell.share)}, round {r.number}"
