"""Confidence that survives real collections: bursts, leaks, and tags that come later.

    python -m experiments confidence                     # all parts, into docs/results
    python -m experiments confidence reliability         # one part; the page is made of all

Each part is stored as a CSV file; the page is made of those that are there.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from experiments.bursts import burst_rows, event_rows
from experiments.config import find_config
from experiments.leakage import choice_rows, precision_rows
from experiments.problem import Problem, expert_problem, is_available, open_data
from experiments.reliability import draw, reliability_rows

__all__ = ["PARTS", "measure"]

N_NEW = 4000  # test images of COCO, at most

TEXTS = {
    "events": (
        "Events whose tags have nothing to do with their looks",
        "Cross-validation without groups knows each event from its other shots. With groups it "
        "says what photographs of new events get. Tags are independent of looks, so that nothing "
        "can be suggested at 80 %, and nothing should be.",
    ),
    "bursts": (
        "COCO with near-duplicates",
        "4,000 photographs to learn from, some of them jittered (1 − cosine about .05) and added "
        "again; test photographs as they are. λ is the decay of TagProp's weights. Precision is "
        "asked for, and what test photographs reach is in the table.",
    ),
    "precision": (
        "Flickr8k: calibrated with a space that has seen the answers, and with one that has not",
        "Votes of 50 neighbours, 2,048 landmarks, 3 folds. Precision is asked for, and what test "
        "photographs reach is in the table. A space behind another step of a pipeline is fitted "
        "anew in each fold.",
    ),
    "choice": (
        "Flickr8k: what `grid_search` says of κ",
        "1,024 landmarks, 50 neighbours: MAP by cross-validation both ways, and on test "
        "photographs.",
    ),
    "reliability": (
        "Calibration of tags that were learned, and of tags that came later",
        "Expected calibration error over all pairs of a photograph and a tag, and over those with "
        "a probability of .1 and more; precision asked for → reached (suggestions). All "
        "photographs are shuffled anew for each of sixteen draws, near-duplicates together: 5,000 "
        "at most to learn from, 4,000 at most to ask about, which are counted together; intervals "
        "(95 %) are by how draws differ. For tags that come later, a quarter of the tags is "
        "unknown to the fit on half of the photographs; the other half is added with all tags. "
        "Bars in the diagrams are 95 % intervals of shares estimated from so many pairs; bins with "
        "fewer than 20 are left out. Tags that came later have votes of kin alone until the next "
        "fit; their "
        "confidences are learned from the photographs that bring them.",
    ),
}


def _problem(name: str, cache: Path, n_new: int = N_NEW) -> Problem:
    config = find_config(name)
    problem = expert_problem(open_data(config, cache), config)
    return problem.small(n_new, config.seed)[0]


def _reliability(cache: Path) -> Iterable[dict[str, Any]]:
    for name in ("coco", "flickr8k", "photos"):
        if is_available(name):
            yield from reliability_rows(_problem(name, cache, n_new=0), name)


PARTS: dict[str, Callable[[Path], Iterable[dict[str, Any]]]] = {
    "events": lambda cache: event_rows(),
    "bursts": lambda cache: burst_rows(_problem("coco", cache)),
    "precision": lambda cache: precision_rows(_problem("flickr8k", cache)),
    "choice": lambda cache: choice_rows(_problem("flickr8k", cache)),
    "reliability": _reliability,
}


def measure(parts: list[str], results: Path, cache: Path) -> None:
    """Measure the parts (all, where none is named), and write the page of all that is stored."""
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise SystemExit(f"Unknown: {', '.join(unknown)}. There are {', '.join(PARTS)}.")
    results.mkdir(parents=True, exist_ok=True)
    for name in parts or PARTS:
        print(f"{name} …", flush=True)
        rows = list(PARTS[name](cache))
        with (results / f"confidence-{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows([{k: _written(v) for k, v in row.items()} for row in rows])
    if (results / "confidence-reliability.csv").exists():
        draw(results / "confidence-reliability.csv", results / "confidence-reliability.svg")
    (results / "confidence.md").write_text(_page(results), encoding="utf-8")


def _written(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.1f}"


def _page(results: Path) -> str:
    lines = [
        "# Confidence",
        "",
        "What figures and confidences are worth on collections with bursts, and with tags that "
        "come later.",
        "",
        "```sh",
        "python -m experiments confidence",
        "```",
        "",
    ]
    for name, (title, text) in TEXTS.items():
        path = results / f"confidence-{name}.csv"
        if not path.exists():
            continue
        header, *rows = csv.reader(path.open(encoding="utf-8", newline=""))
        lines += [f"## {title}", "", text, ""]
        if "curve" in header:  # drawn, not listed
            at = header.index("curve")
            header, *rows = ([*row[:at], *row[at + 1 :]] for row in (header, *rows))
            lines += [f"![Reliability diagrams]({path.stem}.svg)", ""]
        lines += [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
        lines += [f"| {' | '.join(row)} |" for row in rows]
        lines += ["", f"[{path.name}]({path.name})", ""]
    return "\n".join(lines)
