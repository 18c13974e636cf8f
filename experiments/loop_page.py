"""The page about evenings of answers, loop.md."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from experiments import made
from experiments.evening import PER_ACTION, PER_PAGE, PER_TILE
from experiments.loop_sets import PERSONAL, SEEDS, SETS
from experiments.loop_targets import SHARE, Row, percent

__all__ = ["Measured", "write_page"]


class Measured(NamedTuple):
    """The rows of a set."""

    evening: list[Row]
    few: list[Row]
    """With few tagged photographs."""
    half: list[Row]
    """With half of the photographs tagged."""
    ways: list[list[str]]
    """Ways to work, each with its actions per right tag."""


def write_page(measured: dict[str, Measured], path: Path) -> None:
    """Write the page."""
    plain = {name: one for name, one in measured.items() if name != PERSONAL}
    rows = {name: one.evening for name, one in plain.items()}
    few = {
        name: [row for row in one.few if row[0].startswith(START)] for name, one in plain.items()
    }
    lines = ["# What does an evening of answers bring?", "", *_sum_up(rows), ""]
    lines += ["```sh", "python -m experiments loop  # about an hour", "```", ""]
    lines += ["## Targets", "", TARGETS_TEXT, "", *_target_table(rows), *_explain(rows)]
    if PERSONAL in measured:
        own = measured[PERSONAL]
        lines += ["## What if times are known?", "", PERSONAL_TEXT, ""]
        lines += _target_table({PERSONAL: own.evening})
        lines += _table(["way", "until 50 %", "until 80 %"], own.ways)
    lines += ["## What if few photographs are tagged?", "", START_TEXT, "", *_target_table(few)]
    lines += ["## What if half of them are tagged?", "", HALF_TEXT, ""]
    lines += _target_table({name: one.half for name, one in measured.items()})
    lines += ["## How many actions does a right tag take?", "", WAYS_TEXT, ""]
    ways = zip(*(one.ways for one in plain.values()), strict=True)
    cells = [[same[0][0], *(row[1] for row in same)] for same in ways]
    lines += _table(["way", *(SETS[name] for name in plain)], cells)
    lines += SETUP
    path.write_text("\n".join(lines), encoding="utf-8")
    made.note(path, SEEDS)


def _target_table(rows: dict[str, list[Row]]) -> list[str]:
    titles = [SETS[name] for name in rows]
    header = ["target", *(cell for title in titles for cell in (title, "met"))]
    cells = [
        [texts[0][0], *(cell for _, value, ok in texts for cell in (value, MET[ok]))]
        for texts in zip(*rows.values(), strict=True)
    ]
    return _table(header, cells)


def _sum_up(rows: dict[str, list[Row]]) -> list[str]:
    """Say how many targets are met, and which."""
    sentences = [
        f"On {SETS[name]}, simulated evenings meet {sum(measured)} of {len(measured)} targets."
        for name, texts in rows.items()
        if (measured := [ok for *_, ok in texts if ok is not None])
    ]
    lines = [" ".join(sentences), ""]
    groups: dict[str, list[str]] = {}
    for texts in zip(*rows.values(), strict=True):
        if all(ok is None for *_, ok in texts):
            continue
        met = [SETS[name] for name, (_, _, ok) in zip(rows, texts, strict=True) if ok]
        only = " only" if len(met) < len(rows) else ""
        heading = f"Met on {' and '.join(met)}{only}" if met else "Not met"
        groups.setdefault(heading, []).append(texts[0][0].split(":")[0])
    order = sorted(groups, key=lambda heading: (heading == "Not met", -len(heading)))
    return [*lines, *(f"- **{heading}**: {'; '.join(groups[heading])}." for heading in order)]


def _explain(rows: dict[str, list[Row]]) -> list[str]:
    """Say why targets are missed, if any is."""
    missed = [title for texts in rows.values() for title, _, ok in texts if ok is False]
    reasons = [
        f"- **{start.capitalize()}**: {reason}"
        for start, reason in REASONS.items()
        if any(title.startswith(start) for title in missed)
    ]
    return ["## Why are targets missed?", "", *reasons, ""] if reasons else []


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return [*(f"| {' | '.join(line)} |" for line in lines), ""]


MET = {True: "yes", False: "**no**", None: "–"}
TARGETS_TEXT = (
    "A tile is a photograph on a page, with the percentage that the page shows for the tag. A fit "
    "is a new model, learned from the answers so far. Numbers are shares: 0.77 is 77 %. Each "
    "is the mean over the draws, with its range; the mean decides whether a target is met. A gap "
    "is the share of right ones less the mean percentage, in one draw. By name, by kin and picture "
    "or by moment says what contributes most to a suggestion."
)
PERSONAL_TEXT = (
    "These are the photographs of one person over two years, with the person's own tags: places, "
    "trips, people, genres. 100 of 498 are tagged. A tag's page groups its tiles by event, and a "
    "click on the heading of an event marks all of its tiles. The last table has the actions per "
    "right tag, and those of other ways to work."
)
START = ("tiles at 50 %", "open right", "right suggestions", "missing tags")
START_TEXT = (
    "Then answers matter most. These are draws of 300 photographs, of which 25 are tagged, and 100 "
    "pages of answers. Answered photographs are incomplete: an answer about one tag says nothing "
    "of others. When they counted as complete, and the first fit came after 200 answers, 35 % of "
    "the missing tags were found on photographs and 28 % on Flickr8k, and that fit lost 110 and "
    "17 right suggestions."
)
HALF_TEXT = (
    "People forget tags, so the page asks about tagged photographs, too. This person never forgot "
    "one: no such tile is right. Of each set, half of the photographs are tagged completely, and "
    "100 pages are answered."
)
REASONS = {
    "tiles": "the page asks first about tags whose percentages look best. These are too high more "
    "often than too low, until answers correct them.",
    "actions per right tag": "a right tag below 50 % takes its own click, and three quarters of "
    "the right tags of Flickr8k are below.",
    "pages all below the line": "they are the pages whose tiles are all below 50 %, as three "
    "quarters of the right tags of Flickr8k are.",
}
"""Why a target is missed, by the start of its row."""
WAYS_TEXT = (
    f"Actions per right tag until {percent(SHARE)} of the missing tags are there. An action is a "
    "key or a click: one ends a page, one corrects a mark, two mark several tiles in a row, and "
    "one on a heading marks all tiles below it."
)
SETUP = [
    "Before names counted, percentages without corrections by answers and evenings without new "
    "fits took as many actions until 70 % (.63 and .64 on photographs), but they kept their word "
    "less often. Two other pages were tried with the first model of each set. Asking by "
    "photograph, with its ten likeliest words, never had more right tags per action than the best "
    "page of one tag. Sure suggestions of eight tags on one page saved 0 to 11 % of the actions "
    "until half of the tags were there, but 1 to 2 % until 70 %. So the page asks about one tag. A "
    "right tag with a probability below one half takes its own click in any order, and most late "
    "tags are of this kind.",
    "",
    "## Setup",
    "",
    "- **Sets**: 600 photographs each of the folder of photographs and of Flickr8k, 119 of them "
    "tagged completely, the others not at all; 600 new ones; other draws chose what the page does. "
    "All draws of the folder are of its 1,200 photographs, so those that chose have photographs in "
    "common with these. All dated photographs of the traveller, with the tags on five or more.",
    f"- **Draws**: {len(SEEDS)} each.",
    "- **The person** knows all tags and answers every page, tiles of tagged photographs included. "
    "The page's own code chooses the page, corrects percentages by answers, decides when to fit, "
    "and keeps open suggestions. Names of tags count.",
    f"- **Time**: a page takes {PER_PAGE:.0f} s, an action {PER_ACTION:.0f} s, a photograph "
    f"{PER_TILE} s.",
    "- **Not simulated**: bursts as stacks, mistakes, tags that the person types.",
    "",
]
