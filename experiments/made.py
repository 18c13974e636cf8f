"""Results as files that say how they were made, and the tables that pages have of them.

A result is a CSV file or a picture in docs/results. `made.json` there says of each with which
version, when, on which machine, from which seed and by which command it was made. A page has the
table of a result between two comments, and `python -m experiments pages` writes all of them:

    <!-- table ablation.csv -->
    <!-- end -->
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

import tagkin

__all__ = [
    "DOCS",
    "RESULTS",
    "command",
    "is_current",
    "machine",
    "markdown",
    "minor",
    "note",
    "read",
    "render",
    "take",
    "write",
    "write_pages",
    "write_table",
]

DOCS = Path(__file__).parent.parent / "docs"
RESULTS = DOCS / "results"


def _findings(frame: pd.DataFrame) -> pd.DataFrame:
    """Findings of an audit, without the counts that only the file needs."""
    kept = [name for name in frame.columns if "not injected" not in name]
    return frame[kept]


def _small(frame: pd.DataFrame) -> pd.DataFrame:
    """Findings in small collections: all error rates together, and none."""
    return _findings(frame[frame["injected"].isin(["0", "all"])])


def _beside(frame: pd.DataFrame) -> pd.DataFrame:
    """Methods beside the paper's numbers, without the differences of MAP."""
    spaces = {"visual": "visual features", "semantic": "in the space"}
    groups = frame["group"].map(lambda group: spaces.get(group, "published"))
    kept = [name for name in frame.columns[2:] if "minus the paper" not in name]
    return pd.concat([groups.rename(""), frame["method"], frame[kept]], axis=1)


def _of_mirflickr(frame: pd.DataFrame) -> pd.DataFrame:
    """The paper's results on MIRFlickr, for which there is no stand-in."""
    rows = frame[frame["dataset"] == "MIRFlickr-25k"]
    return rows[["group", "method", "features", "MAP", "precision", "recall"]]


def _reliability(frame: pd.DataFrame) -> pd.DataFrame:
    """Calibration errors and precision, without the curve of the diagram."""
    return frame.drop(columns=["curve", "asked 0.6", "asked 0.7", "asked 0.95"], errors="ignore")


def _spreads(frame: pd.DataFrame) -> pd.DataFrame:
    """The range of the precision of single draws where 80 % was asked, by tagged photographs."""
    names = {"tagged": "tagged", "with n 0.8": "n", "with right 0.8": "right"}
    draws = frame[list(names)].set_axis(list(names.values()), axis=1).apply(pd.to_numeric)
    draws = draws[draws["n"] >= 20]
    precision = (100 * draws["right"] / draws["n"]).groupby(draws["tagged"])
    table = precision.agg(["min", "max", "size"]).round().astype(int).reset_index().astype(str)
    return table.set_axis(["tagged", "lowest", "highest", "draws"], axis=1)


def _ablation(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over the draws: of all steps together, and the change without each."""
    measures = ["MAP", "MiAP", "error"]
    frame = frame.astype(dict.fromkeys(measures, float))
    frame["set"] = frame["collection"] + " " + frame["tagged"]
    means = frame.groupby(["set", "left out"], sort=False)[measures].mean()
    sets, steps = frame["set"].unique(), frame["left out"].unique()
    rows: list[dict[str, str]] = []
    for step in sorted(steps, key=lambda step: step != "nothing"):
        row = {"left out": step}
        for name in sets:
            if (name, step) not in means.index:
                row[name] = "–"
                continue
            sign = "" if step == "nothing" else "+"
            less = 0 if step == "nothing" else means.loc[(name, "nothing")]
            ap, miap, error = means.loc[(name, step)] - less
            row[name] = f"{ap:{sign}.1f} / {miap:{sign}.1f}, {error:{sign}.3f}".replace("-", "−")
        rows.append(row)
    return pd.DataFrame(rows)


def _words(frame: pd.DataFrame) -> pd.DataFrame:
    """One column for each search: how often the photograph is first, in the first ten, its rank."""
    table = frame[["learned from"]].assign(**{"names, MAP": frame["photos, names alone, MAP"]})
    for among in ("300 photos", "1,200 photos", "Flickr8k"):
        found = frame[[f"{among}, {key}" for key in ("first", "first ten", "median rank")]]
        table[f"{among}: first, ten, median"] = found.agg(", ".join, axis=1)
    return table


VIEWS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "ablation": _ablation,
    "beside": _beside,
    "findings": _findings,
    "mirflickr": _of_mirflickr,
    "reliability": _reliability,
    "small": _small,
    "spreads": _spreads,
    "words": _words,
}
"""What a page shows of a result, by name, where that is not the whole file."""
_NUMBER = re.compile(r"[-+−<≤≥~]*\s*[\d.,]+(e-?\d+)?\s*%?")
_TABLE = re.compile(r"(<!-- table (\S+)(?: as (\S+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def write(path: Path, rows: Iterable[Mapping[str, Any]], seed: object = 0) -> None:
    """Write rows as CSV, numbers with four digits, and note how the file was made."""
    cells = [dict(row) for row in rows]
    columns = list(dict.fromkeys(name for row in cells for name in row))
    write_table(path, columns, [[row.get(name) for name in columns] for row in cells], seed)


def write_table(path: Path, columns: list[str], rows: list[list[Any]], seed: object = 0) -> None:
    """Write rows of cells as CSV, as `write` does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(rows, columns=columns)
    frame.to_csv(path, index=False, float_format="%.4g", lineterminator="\n")
    note(path, seed)


def note(path: Path, seed: object = 0) -> None:
    """Note in made.json how a file was made: now, here, and by this command."""
    _put(
        path,
        {
            "version": tagkin.__version__,
            "date": datetime.now(UTC).date().isoformat(),
            "machine": machine(),
            "seed": str(seed),
            "command": command(),
        },
    )


def _put(path: Path, how: dict[str, str]) -> None:
    stored = _made_file(path)
    made = json.loads(stored.read_text()) if stored.exists() else {}
    made[path.resolve().relative_to(stored.parent.resolve()).as_posix()] = how
    lines = [f"{json.dumps(name)}: {json.dumps(made[name])}" for name in sorted(made)]
    stored.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def is_current(path: Path) -> bool:
    """Return whether a file is there and of this minor version, so it may be added to."""
    stored = _made_file(path)
    if not path.exists() or not stored.exists():
        return False
    name = path.resolve().relative_to(stored.parent.resolve()).as_posix()
    how = json.loads(stored.read_text()).get(name)
    return how is not None and minor(how["version"]) == minor(tagkin.__version__)


def minor(version: str) -> str:
    """Return the first two numbers of a version."""
    return ".".join(version.split(".")[:2])


def _made_file(path: Path) -> Path:
    """All results of the documentation share one file; elsewhere each folder has its own."""
    folder = RESULTS if path.resolve().is_relative_to(RESULTS.resolve()) else path.parent
    return folder / "made.json"


def command() -> str:
    """Return the command that runs, without the paths of this machine."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    name = "" if spec is None else spec.name.removesuffix(".__main__")
    words: list[str] = []
    for word in sys.argv[1:]:
        if os.sep not in word:
            words.append(word)
        elif words and words[-1].startswith("--"):  # an option that names a path
            words.pop()
    return " ".join(["python -m", name or Path(sys.argv[0]).stem, *words])


def machine() -> str:
    """Return a description of this machine: cores, kind of processor, memory, and its GPU."""
    names, memory = set(), ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = {line.split(":")[1].strip() for line in lines if line.startswith("model name")}
        size = int(Path("/proc/meminfo").read_text().split()[1]) / 2**20
        memory = f", {size:.0f} GiB"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    kind = ", ".join([*sorted(names), platform.machine()])
    gpus = [
        path.read_text().partition("Model:")[2].split("\n")[0].strip()
        for path in Path("/proc/driver/nvidia/gpus").glob("*/information")
    ]
    return ", ".join([*gpus, f"{cores} cores ({kind}){memory}", platform.system()])


def take(folder: Path, target: Path = RESULTS) -> list[str]:
    """Copy results that another machine made since, with how they were made; return their names."""
    theirs = json.loads((folder / "made.json").read_text())
    stored = _made_file(target / "made.json")
    ours = json.loads(stored.read_text()) if stored.exists() else {}
    taken = []
    for name, how in theirs.items():
        path = target / name
        known = path.resolve().relative_to(stored.parent.resolve()).as_posix()
        if (folder / name).exists() and ours.get(known) != how:
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / name, path)
            _put(path, how)
            taken.append(known)
    return taken


def read(name: str) -> pd.DataFrame:
    """Return a result by its name in docs/results, or a table of the paper; all cells are text."""
    folder = Path(__file__).parent if name.startswith("published/") else RESULTS
    return pd.read_csv(folder / name, dtype=str, keep_default_na=False)


def render(page: str) -> str:
    """Return a page with its tables as their results have them now."""
    made = json.loads((RESULTS / "made.json").read_text())

    def table(match: re.Match[str]) -> str:
        start, name, view, end = match.groups()
        frame = VIEWS[view](read(name)) if view else read(name)
        return f"{start}\n{markdown(frame)}\n\n*{_source(made.get(name))}*\n\n{end}"

    return _TABLE.sub(table, page)


def _source(how: dict[str, str] | None) -> str:
    """Say how a table was made; one of `published` is the paper's own."""
    if how is None:
        return "As the paper has it."
    measured = f"tagkin {how['version']}, {how['date']}, {how['machine']}, seed {how['seed']}"
    return f"{measured}: `{how['command']}`"


def markdown(frame: pd.DataFrame) -> str:
    """Return a table in Markdown; columns of numbers are right-aligned."""
    cells = [[_cell(value) for value in column] for _, column in frame.items()]
    numeric = [all(c in ("", "–") or _NUMBER.fullmatch(c) for c in column) for column in cells]
    names = [_heading(str(name), list(frame.columns)) for name in frame.columns]
    rule = ["---:" if right else "---" for right in numeric]
    rows = [names, rule, *zip(*cells, strict=True)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _heading(name: str, columns: list[str]) -> str:
    """Return a column's name as its file has it: pandas numbers names that are there twice."""
    twice = re.fullmatch(r"(.*)\.\d+", name)
    if twice and twice[1] in columns:
        return twice[1]
    return "" if re.fullmatch(r"Unnamed: \d+", name) else name


def _cell(text: str) -> str:
    """Round to three digits and group thousands, if the text is a number."""
    if re.fullmatch(r"-?\d+", text):
        return f"{int(text):,}".replace("-", "−")
    if re.fullmatch(r"-?\d+\.\d+", text):
        digits = max(0, 3 - len(text.split(".")[0].lstrip("-0")))
        text = min(text, f"{float(text):.{digits}f}", key=len).replace("-", "−")
        return re.sub(r"^(−?)0\.", r"\1.", text)
    return text.replace("|", "\\|")


def write_pages() -> list[Path]:
    """Write the tables of all pages, and return the pages that changed."""
    changed = []
    for path in sorted(DOCS.rglob("*.md")):
        page = path.read_text(encoding="utf-8")
        if (new := render(page)) != page:
            path.write_text(new, encoding="utf-8")
            changed.append(path)
    return changed
