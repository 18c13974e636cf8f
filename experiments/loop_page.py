"""The page about answers: promises, tables and one figure, from stored rounds."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from experiments.loop import ASKED, MAIN_SHARE, PENDING, SETS, SHARES, Cell
from experiments.loop_new_tags import TITLES
from experiments.loop_rounds import (
    NAMES,
    Results,
    Round,
    list_promises,
    list_rounds,
    percent,
)

__all__ = ["write_page"]

COLORS = {"bulk": "#BBBBBB", "pages": "#4477AA", "photographs": "#228833", "hasty": "#EE6677"}

# --- tables ---------------------------------------------------------------------------------


def _map_rows(results: Results, rounds: list[Round]) -> list[list[str]]:
    rows = []
    for name in SETS:
        for share in sorted(SHARES):
            cells = {(r.cell.person, r.cell.way, r.number): r for r in _of(rounds, name, share)}
            pages = cells.get(("pages", "answers", 3))
            if pages is None:
                continue
            before = cells.get(("pages", "as complete", 3))
            rows.append(
                [
                    SETS[name].title,
                    percent(share),
                    f"{cells['pages', 'alone', 3].map:.1f}",
                    *(
                        "{:.1f} ({:+.1f}, {:+.1f} to {:+.1f})".format(r.map, *r.map_gain)
                        if (r := cells.get((person, "answers", 3)))
                        else ""
                        for person in ("pages", "photographs", "hasty")
                    ),
                    "" if before is None else f"{before.map:.1f}",
                    f"{results.known_all[name]:.1f}"
                    if share == MAIN_SHARE and name in results.known_all
                    else "",
                ]
            )
    return rows


def _kept_rows(rounds: list[Round]) -> list[list[str]]:
    rows = []
    for name in SETS:
        for share in sorted(SHARES):
            for person in NAMES:
                some = [r for r in _of(rounds, name, share, person) if r.number]
                ours = [r for r in some if r.cell.way == "answers"]
                if not ours:
                    continue
                before = [r.kept[0] for r in some if r.cell.way == "as complete"]
                last, cells = ours[-1], [f"{r.kept[0]:.3f}" for r in ours]
                low, high = last.kept[1:]
                rows.append(
                    [
                        SETS[name].title,
                        percent(share),
                        NAMES[person],
                        ", ".join(dict.fromkeys(cells) if person == "bulk" else cells),
                        f"{low:.3f} to {high:.3f}",
                        f"{before[-1]:.3f}" if before else "",
                        percent(last.reached),
                        f"{last.n_actions / max(last.accepted_right, 1):.2f}"
                        if person != "bulk"
                        else "",
                    ]
                )
    return rows


def _count_rows(rounds: list[Round]) -> list[list[str]]:
    rows = []
    for r in sorted(rounds, key=_order):
        is_last = r.number == (1 if r.cell.person == "bulk" else 3)
        if r.cell.way == "answers" and is_last:
            asked = [f"{right / n:.2f} ({n:,})" if n else "none" for n, right in r.asked]
            rows.append(
                [
                    SETS[r.cell.set].title,
                    percent(r.cell.share),
                    NAMES[r.cell.person],
                    f"{r.pending:,}",
                    f"{r.pending_right:,}",
                    f"{r.pending_said:,.0f}",
                    *asked,
                ]
            )
    return rows


def _bulk_rows(rounds: list[Round]) -> list[list[str]]:
    rows = []
    for r in sorted(rounds, key=_order):
        if r.cell.person == "bulk" and r.cell.way != "alone" and r.number in (1, 5) and r.accepted:
            way = "tagkin" if r.cell.way == "answers" else "as if complete"
            cells = [SETS[r.cell.set].title, percent(r.cell.share), way, str(r.number)]
            cells += [f"{r.accepted:,}", f"{r.accepted_right / r.accepted:.3f}"]
            rows.append([*cells, f"{r.accepted_said / r.accepted:.3f}"])
    return rows


def _new_tag_rows(results: Results) -> list[list[str]]:
    rows = []
    for (name, n), arrays in results.new_tags.items():
        for way, title in TITLES.items():
            counts = arrays[way]
            total = counts.sum(axis=0)
            widest = (counts[:, 2] / counts[:, 0]).max()
            cells = [SETS[name].title, str(n), title, f"{100 * total[1] / total[0]:.1f} %"]
            for at in (2, 5):
                shown, right, said = total[at : at + 3]
                cells.append(f"{shown / len(counts):.0f}")
                cells += [f"{said / shown:.2f}", f"{right / shown:.2f}"] if shown else ["", ""]
            rows.append([*cells, percent(widest)])
    return rows


def _order(r: Round) -> tuple[Any, ...]:
    return list(SETS).index(r.cell.set), r.cell.share, list(NAMES).index(r.cell.person), r.cell.way


def _of(rounds: list[Round], name: str, share: float, person: str | None = None) -> list[Round]:
    return [
        r
        for r in rounds
        if (r.cell.set, r.cell.share) == (name, share) and person in (None, r.cell.person)
    ]


# --- the page -------------------------------------------------------------------------------


def _table(header: str, rows: list[list[str]]) -> list[str]:
    names = header.split(", ")
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def write_page(results: Results, target: Path) -> None:
    """Write loop.md, loop.csv and loop.svg."""
    rounds = list_rounds(results)
    write_csv(rounds, target / "loop.csv")
    draw_figure(results, rounds).savefig(target / "loop.svg", metadata={"Date": None})
    lines = [
        "# Do answers improve suggestions?",
        "",
        *_summary(rounds),
        "",
        "```sh",
        "python -m experiments loop",
        "```",
        "",
        "## Result",
        "",
        "What must hold, and the worst that was measured. Shares are of photographs that are "
        "tagged completely at the start.",
        "",
        *_table("promise, measured, holds", list_promises(results, rounds)),
        "![MAP and right tags after each round, for four persons and four sets: with answers both "
        "rise; accepting in bulk changes nothing.](loop.svg)",
        "",
        f"{percent(MAIN_SHARE)} of the photographs are complete. Right tags are accepted, or "
        "pending with a confidence of 50 % or more. Dashed: complete photographs alone. Dotted: "
        "every photograph with an accepted tag counts as complete.",
        "",
        *SETUP,
        "## How good is the order of new photographs?",
        "",
        "MAP on new photographs after three rounds, in percent, with the gain over complete "
        "photographs alone and its 95 % interval (paired bootstrap over new photographs). “As if "
        "complete” is what tagkin did before, with pages. “Knows all” learned all true tags.",
        "",
        *_table(
            "set, complete, complete alone, pages, photographs, hasty pages, as if complete, "
            "knows all",
            _map_rows(results, rounds),
        ),
        "## How many right tags are there?",
        "",
        "Right tags accepted and pending after each round, divided by those of complete "
        "photographs alone. Every way to learn has rounds of its own: its suggestions are what "
        "the person answers. The interval (95 %, bootstrap over photographs) is of the last "
        "round; the last columns tell how many of the missing tags were accepted by then, and "
        "with how many actions each.",
        "",
        *_table(
            "set, complete, person, after each round, interval, as if complete, reached, "
            "actions per tag",
            _kept_rows(rounds),
        ),
        "## Are confidences honest?",
        "",
        "Pending suggestions at 50 % and more after the last round, how many of them are right, "
        "and how many tagkin says are right; then the precision that is reached for each asked "
        "precision, and the number of suggestions.",
        "",
        *_table(
            "set, complete, person, pending, right, said, asked .5, asked .8, asked .9",
            _count_rows(rounds),
        ),
        *HONEST,
        "## What if everything at 80 % is accepted, again and again?",
        "",
        "What was accepted in bulk teaches nothing, so nothing new is sure in the next round, and "
        "the precision stays. If accepted photographs count as complete, it falls.",
        "",
        *_table(
            "set, complete, way, round, accepted, precision, said",
            _bulk_rows(rounds),
        ),
        "## What about a new tag?",
        "",
        "A person types a new tag on 3, 5 or 10 photographs. Numbers are means of ten tags: "
        "suggestions of a review (5 % and more) and at 50 % and more, their mean confidence, and "
        "their precision. “Widest” is the largest share of photographs that a tag is suggested "
        "for at 5 %. At once, one tag is new at a time; in the full fit, all ten are.",
        "",
        *_table(
            "set, examples, learned, show it, at 5 %, confidence, precision, at 50 %, confidence, "
            "precision, widest",
            _new_tag_rows(results),
        ),
        "All rounds: [loop.csv](loop.csv).",
        "",
    ]
    (target / "loop.md").write_text("\n".join(lines), encoding="utf-8")


def _summary(rounds: list[Round]) -> list[str]:
    """Return the result in two sentences."""
    last = {
        r.cell.set: r
        for r in rounds
        if r.cell._replace(set="") == Cell("", MAIN_SHARE, "pages", "answers") and r.number == 3
    }
    gains = [f"{r.map_gain[0]:+.1f} ({SETS[name].title})" for name, r in last.items()]
    kept = [r.kept[0] for r in last.values()]
    return [
        f"Yes. Three rounds of pages change the MAP on new photographs by {', '.join(gains)}, "
        f"if {percent(MAIN_SHARE)} of the photographs are tagged completely at the start. The "
        f"person has {min(kept):.2f} to {max(kept):.2f} times as many right tags as without "
        "learning from answers. Accepting in bulk changes nothing, as it should."
    ]


SETUP = [
    "## Setup",
    "",
    "- **Sets**: 3,000 photographs of COCO (80 tags), 2,000 of Flickr8k (179 tags), 2,000 of COCO "
    "whose complete photographs have only the nouns of one caption (56 tags; the person knows the "
    "expert labels), and 1,000 of the folder of photographs. Tags count if two complete "
    "photographs have them. New photographs: 2,000, 1,000, 2,000 and 200.",
    "- **Start**: 5, 20 or 50 % of the photographs are tagged completely, the others not at all.",
    "- **Rounds**: the person answers, tagkin trains and suggests. Three rounds, five in bulk.",
    "- **Accepts all at 80 %**: one command, and nobody looks.",
    "- **Answers pages**: a page of 60 photographs for each of the 30 most promising tags (40 on "
    "Flickr8k, 20 in the folder). All answers are right.",
    "- **Answers photographs**: all suggestions of the next tenth of the photographs.",
    "- **Hasty pages**: the same pages, but she overlooks 5 % of the wrong photographs that need "
    "their own click, and leaves half of the wrong tags with a confidence of 50 % or more open.",
    "- **Shares**: all four persons at 20 %; at 5 and 50 %, the first two. What tagkin did before "
    "is played on COCO and the folder, at 20 %.",
    "- **Draws**: one of each, of COCO's test photographs, and of one half of the training "
    "photographs of Flickr8k and of those with captions. Everything was chosen on other "
    "photographs; those of the folder differ by their seed only.",
    "- **Changed after a first look**: how rare a new tag is. The first run on COCO showed that "
    "new tags were suggested for most photographs; the cure was checked on other photographs.",
    "- **Not simulated**: near-duplicates are not grouped.",
    "",
]

HONEST = [
    "Where a promise does not hold, these are the likely causes; we did not test them one by one.",
    "",
    "- **Right tags**: pending tags of answered photographs are scored by models that have not "
    "seen the photograph, and so have learned from fewer complete ones.",
    "- **Asked precision, too high**: a tag that would be right less often than the asked "
    "precision less .1 is not suggested, even if all suggestions together would reach it. After "
    "some pages, few tags near .5 are left.",
    "- **Asked precision, too low**: pages take the surest suggestions away, and the rest shows "
    "every error of the confidences. With 5 % complete photographs (100 of Flickr8k), they are "
    "learned from few examples.",
    "- **Noisy tags**: nobody can know how much captions leave out. Confidences begin too low, "
    "and answers raise them with care, because answers are about tags that a model found likely.",
    "- **Hasty pages**: the person leaves wrong tags open on purpose, and tagkin cannot see that "
    "she has looked at them. Missing rejections also make it believe that people forget more tags.",
    "",
]


def write_csv(rounds: list[Round], path: Path) -> None:
    """Write all rounds."""
    header = ["set", "share", "person", "way", "round", "MAP", "MAP gain", "low", "high"]
    header += ["right tags against alone", "low", "high", "pending", "right", "said"]
    header += ["accepted", "right", "said"]
    for p in ASKED:
        header += [f"suggestions at {p}", "right"]
    rows: list[list[Any]] = [[*header, "actions", "reached"]]
    for r in rounds:
        numbers = [r.map, *r.map_gain, *r.kept, r.pending, r.pending_right, r.pending_said]
        numbers += [r.accepted, r.accepted_right, r.accepted_said]
        numbers += [n for pair in r.asked for n in pair]
        numbers += [r.n_actions, r.reached]
        rows.append([*r.cell, r.number, *(f"{n:.6g}" for n in numbers)])
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def draw_figure(results: Results, rounds: list[Round]) -> Figure:
    """Draw MAP and right tags over rounds, a column for each set."""
    sets = [name for name in SETS if any(r.cell.set == name for r in rounds)]
    figure = Figure(figsize=(2.6 * len(sets) + 0.6, 5), layout="constrained")
    panels = figure.subplots(2, len(sets), squeeze=False, sharex=True)
    for column, name in enumerate(sets):
        above, below = panels[:, column]
        above.set_title(SETS[name].title, fontsize=10)
        for cell in dict.fromkeys(r.cell for r in rounds):
            if (cell.set, cell.share) != (name, MAIN_SHARE):
                continue
            points = [r for r in rounds if r.cell == cell and r.number <= 3]
            style = {"alone": "--", "answers": "-", "as complete": ":"}[cell.way]
            label = NAMES[cell.person] if cell.way == "answers" else None
            options = {"color": COLORS[cell.person], "linestyle": style}
            numbers = [r.number for r in points]
            above.plot(numbers, [r.map for r in points], label=label, **options)
            right = [r.accepted_right + r.pending_right for r in points]
            below.plot(numbers, right, **options)
        if name in results.known_all:
            above.axhline(results.known_all[name], color="#222222", linewidth=0.8)
        below.set(xlabel="round", xticks=range(4))
        below.set_ylim(bottom=0)
    panels[0, 0].set_ylabel("MAP on new photographs, %")
    panels[1, 0].set_ylabel(f"right tags, accepted or ≥ {percent(PENDING)}")
    panels[0, 0].legend(fontsize=7)
    return figure
