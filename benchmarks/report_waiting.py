"""The sections of docs/benchmarks.md on learning from a collection and on short commands."""

from typing import Any

from benchmarks.tables import MIB, table

COLLECTIONS = {"synthetic": "synthetic", "coco": "COCO's photographs and tags"}

# the description of each command, and its time limit in seconds
COMMANDS = {
    "help": ("`tagkin --help`", 0.3),
    "status": ("`tagkin status`", 0.6),
    "similar": ("`tagkin find --like` for one photograph, trained on {small}", 1.2),
    "similar, not read before": ("the same, without cached features", None),
    "train": ("`tagkin train` on {small} photographs, with cached features", 3.0),
}

_PROFILE = """\
Spaces take nearly half of the CPU time and read-outs a fifth. Neighbours and votes take 11 %, and
so do audit and confidences. Tag names take 8 % and series 5 %. Half of all is matrix products and
factors, so the time follows the machine's speed at these: on a shared machine it varies by half
from hour to hour."""


def learning_section(found: dict[str, Any] | None) -> str:
    """The results of `benchmarks.learning`."""
    if found is None:  # not measured yet
        return ""
    rows = [
        [
            COLLECTIONS[name],
            f"{row['photographs']:,}",
            f"{row['tags']:,}",
            f"{row['wall_seconds']:.1f} s",
            "≤ 20 s",
            f"{row['cpu_seconds']:.1f} s",
            f"{row['stolen_share']:.0%}" if "stolen_share" in row else "–",
            _gflops(row.get("operations_per_second")),
            f"{row['peak_extra_bytes'] / MIB:,.0f} MiB",
        ]
        for name, row in found["fit"].items()
    ]
    fits = table(
        ["", "photographs", "tags", "time", "target", "CPU", "host", "products", "peak memory"],
        rows,
    )
    tags = [
        [
            f"{row['tags']:,}",
            f"{row['fit_seconds']:.2f} s",
            f"{row['product_seconds']:.2f} s",
            f"**{row['fit_seconds'] / row['product_seconds']:.2f}**",
        ]
        for row in found["many_tags"]
    ]
    return f"""## Learning from a collection

`Annotator.fit` with cached features ({found["features"]:,} per photograph), medians of three fits.
It finds series, fits the space, votes, read-out and tag names, and
calibrates confidences on held-out photographs. *Host* is the share of CPU time that the host of the
virtual machine took. *Products* is the speed of float32 matrix products before and after.

{fits}

{_PROFILE}

With thousands of tags, the time to fit a space ({found["landmarks"]:,} landmarks) grows like
that of plain products. From 1,024 tags on, the fit omits the rotation to canonical directions,
unless correlations are requested.

{table(["tags", "fit", "plain products", "ratio"], tags)}"""


def _gflops(rate: float | None) -> str:
    return "–" if rate is None else f"{rate / 1e9:.0f} GFLOP/s"


def commands_section(found: dict[str, Any] | None) -> str:
    """The results of `benchmarks.commands`."""
    if found is None:  # not measured yet
        return ""
    sizes = {"small": f"{found['photographs']:,}", "large": f"{found['large']:,}"}
    rows = []
    for name, (text, target) in COMMANDS.items():
        if (row := found["cold"].get(name)) is None:  # not measured yet
            continue
        wanted = "" if target is None else f"≤ {target:g} s"
        cells = [f"{row['seconds']:.2f} s", wanted, f"{row['cpu_seconds']:.2f} s"]
        rows.append([text.format(**sizes), *cells])
    resident, saved = found["resident"], found["saved"]
    for size in ("small", "large"):
        row = resident[size]
        text = f"`Annotator.suggest` after loading, trained on {sizes[size]}"
        cells = [f"{1e3 * row['seconds']:.0f} ms", "≤ 15 ms", f"{1e3 * row['cpu_seconds']:.0f} ms"]
        rows.append([text, *cells])
    large = resident["large"]
    rows.append(
        [
            f"`tagkin.load`, trained on {sizes['large']}",
            f"{large['load_seconds']:.2f} s",
            "≤ 0.5 s",
            f"{large['load_cpu_seconds']:.2f} s",
        ]
    )
    return f"""## Short commands and single photographs

Each command runs in its own process, with compiled bytecode as after an installation; medians. A
saved annotator of {sizes["large"]} photographs takes {saved["bytes"] / 1e6:.0f} MB (target: at most
80 MB).

{table(["", "time", "target", "CPU"], rows)}"""
