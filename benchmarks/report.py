"""Write docs/benchmarks.md and its figure from the stored measurements.

``python -m benchmarks.report`` rewrites them from docs/benchmarks.json without measuring.
"""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.against_peers import DOUBLE, PEERS
from benchmarks.process import ROOT
from benchmarks.report_catalogue import catalogue_section
from benchmarks.report_features import features_section
from benchmarks.report_kinds import LIMITS, kinds_section
from benchmarks.report_review import review_section, scrolling_section
from benchmarks.report_scale import distributed_section, gpu_section, scale_section
from benchmarks.report_threads import threads_section
from benchmarks.report_waiting import commands_section, learning_section
from benchmarks.tables import MIB, wrapped
from benchmarks.tables import table as _table

DOCS = ROOT / "docs"


def page(results: dict[str, Any]) -> str:
    """The whole page as Markdown."""
    sections = [
        _introduction(results["measured"]),
        _peers_section(results["peers"]),
        _limit_section(results["limit"]),
        _growth_section(results["growth"]),
        _search_section(results["search"]),
        _transfer_section(results["transfer"]),
        _tags_section(results["tags"]),
        learning_section(results.get("learning")),
        commands_section(results.get("commands")),
        features_section(results.get("features"), results.get("kinds", {})),
        threads_section(results.get("threads")),
        scale_section(results.get("scale")),
        distributed_section(results.get("distributed")),
        catalogue_section(results.get("catalogue")),
        review_section(results.get("review")),
        scrolling_section(results.get("scrolling")),
        gpu_section(results.get("gpu")),
        kinds_section(results.get("kinds", {})),
    ]
    return wrapped("\n\n".join(section for section in sections if section))


def _introduction(measured: dict[str, dict[str, str]]) -> str:
    """Where each section was measured; sections with the same environment share a row."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for section, where in measured.items():
        key = where["machine"], where["software"], where["date"]
        groups.setdefault(key, []).append(section)
    rows = [[", ".join(names), *key] for key, names in groups.items()]
    return f"""# Benchmarks

Reading photographs takes most of the time: learning from 10,000 of them takes 12 seconds on two
quiet cores.
`make bench` runs all benchmarks and regenerates this page. Raw numbers are in `benchmarks.json`.
Each ratio compares runs made side by side on one machine. Absolute times depend on the processor:

{_table(["section", "processor", "software", "date"], rows, numbers=False)}"""


def _peers_section(rows: list[dict[str, Any]]) -> str:
    ours = {row["images"]: row for row in rows if row["program"] == "tagkin"}
    lines = []
    for row in rows:
        reference = ours[row["images"]]
        theirs = row["program"] in PEERS
        of_doubles = row["program"] == DOUBLE
        lines.append(
            [
                PEERS.get(row["program"], "tagkin, float64" if of_doubles else "**tagkin**"),
                f"{row['images']:,}",
                f"{row['cpu_seconds']:.2f} s",
                f"**{row['cpu_seconds'] / reference['cpu_seconds']:.0f}×**" if theirs else "",
                f"{row['peak_bytes'] / MIB:,.0f} MiB",
                f"**{row['peak_bytes'] / reference['peak_bytes']:.1f}×**" if theirs else "",
                f"{row['largest_angle_loss']:.0e}" if theirs else "",
                f"{row['largest_correlation_difference']:.0e}" if theirs else "",
            ]
        )
    table = _table(
        ["", "images", "CPU time", "vs. tagkin", "peak memory", "vs. tagkin", "1 − cos", "Δλ"],
        lines,
    )
    return f"""## The exact space against other kernel CCA

This compares tagkin's exact space with two other libraries that solve the same problem. Every
image is a landmark; arc-cosine kernel, 80 labels, κ = 0.5 (κ' = 1/3 in the parametrisation of the
others), 20 components, one thread each. The other libraries get the precomputed visual kernel in
float64. tagkin starts from float32 features, or from float64 features if the table says so, and
its time includes the kernel. The last two columns show that the results agree: *1 − cos* is the
largest cosine distance between columns of the projected training images, among columns with
distinct correlations, and *Δλ* is the largest difference of a correlation.

{table}

mvlearn runs with `sval_thresh=1e-12`, because its default truncates the kernel and solves another
problem. cca-zoo runs without the permutation importances of its `fit`, which cost more than the
solution."""


def _limit_section(rows: list[dict[str, Any]]) -> str:
    table = _table(
        [
            "images × features, landmarks",
            "fit",
            "plain products",
            "ratio",
            "target",
            "CPU",
            "peak memory",
        ],
        [
            [
                f"{row['images']:,} × {row['features']:,}, {row['landmarks']:,}",
                f"{row['fit_seconds']:.2f} s",
                f"{row['product_seconds']:.2f} s",
                f"**{row['ratio']:.2f}**",
                f"≤ {LIMITS[row['images'], row['features'], row['landmarks']]}",
                f"{row['cpu_seconds']:.1f} s",
                f"{row['peak_bytes'] / MIB:,.0f} MiB",
            ]
            for row in rows
        ],
    )
    return f"""## The space with landmarks against plain products

This compares `SemanticSpace.fit`, including the selection of landmarks, with plain float32 matrix
products of 2Ndr + Nr² operations, the minimum for the kernel columns and their Gram matrix. All
threads; medians over alternating repeats. Peak memory is the memory of the fit without the
features.

{table}

Products take about three quarters of a fit on one thread. The rest is arc-cosines, sums of
labels, the selection of landmarks, and a float64 Cholesky factor."""


def line_fit(rows: list[dict[str, Any]]) -> tuple[float, float, float]:
    """Slope and intercept of fit time against the number of images, and R²."""
    n = np.array([row["images"] for row in rows], dtype=float)
    t = np.array([row["fit_seconds"] for row in rows])
    slope, intercept = np.polyfit(n, t, 1)
    residual = t - (slope * n + intercept)
    return float(slope), float(intercept), float(1 - residual.var() / t.var())


def _growth_section(rows: list[dict[str, Any]]) -> str:
    slope, intercept, r2 = line_fit(rows)
    table = _table(
        ["images", "fit", "per image", "CPU", "peak memory"],
        [
            [
                f"{row['images']:,}",
                f"{row['fit_seconds']:.2f} s",
                f"{1e6 * row['fit_seconds'] / row['images']:.0f} µs",
                f"{row['cpu_seconds']:.1f} s",
                f"{row['peak_bytes'] / MIB:,.0f} MiB",
            ]
            for row in rows
        ],
    )
    first = rows[0]
    peak = max(row["peak_bytes"] for row in rows) / MIB
    return f"""## Growth

Fit time is linear in the number of images. With {first["features"]} features and
{first["landmarks"]:,} landmarks it is {intercept:.2f} s + {1e6 * slope:.1f} µs per image (R² =
{r2:.4f}). Memory stays at or below {peak:.0f} MiB. It grows only with the sample for the selection
of landmarks, which is a tenth of the images up to a fixed size.

{table}

![Fit time and peak memory against the number of images](images/benchmarks-growth.svg)"""


def _search_section(found: dict[str, Any]) -> str:
    medians = {name: float(np.median(times)) for name, times in found["seconds"].items()}
    table = _table(
        ["", "CPU time", "vs. tagkin", "same neighbours"],
        [
            [
                name if name != "tagkin" else "**tagkin**",
                f"{seconds:.1f} s",
                "" if name == "tagkin" else f"**{seconds / medians['tagkin']:.1f}×**",
                "" if name == "tagkin" else f"{100 * found['agreement'][name]:.3f} %",
            ]
            for name, seconds in medians.items()
        ],
    )
    wall = {name: float(np.median(times)) for name, times in found["all_cores"].items()}
    faiss_over_tagkin = wall["FAISS IndexFlatIP"] / wall["tagkin"]
    return f"""## Exact neighbours

Each library builds its index and finds the {found["k"]} nearest of {found["points"]:,} points for
{found["queries"]:,} queries, in {found["dimension"]} dimensions (float32, unit length, one thread).
Times are medians over alternating repeats. tagkin and FAISS also return distances. In tagkin, FAISS
finds candidates in its own threads, and tagkin ranks them by distances of pairs.

{table}

With all cores, FAISS takes {faiss_over_tagkin:.2f} times as long as tagkin. Other work on the
machine changes this ratio."""


def _transfer_section(found: dict[str, Any]) -> str:
    table = _table(
        ["TagProp's weights", "loss", "original's", "time", "original's", "vs. tagkin"],
        [
            [
                row["setting"],
                f"{row['loss']:.5f}",
                f"{row['original_loss']:.4f}",
                f"{row['seconds']:.2f} s",
                f"{row['original_seconds']} s",
                f"**{row['original_seconds'] / row['seconds']:.1f}×**",
            ]
            for row in found["tagprop"]
        ],
    )
    passes, measures = found["two_passes"], found["measures"]
    return f"""## Label transfer and metrics

This fits TagProp to the published neighbourhoods of Corel5k (4,500 images, 100 neighbours, 260
labels; sigmoids unconstrained). The losses and times of the original C program with two threads
are reported values from a similar machine; they were not measured in this run.

{table}

2PKNN with {5000:,} queries against 80,000 images with 80 labels, 5 neighbours per label: first
pass {passes["first_pass"]:.1f} s, second pass {passes["second_pass"]:.1f} s.

`evaluate` (MAP, precision, recall, N+, MiAP) on 35,000 images × 5,000 labels takes
{measures["seconds"]:.1f} s and {measures["peak_bytes"] / MIB:.0f} MiB beyond the
{measures["score_bytes"] / MIB:.0f} MiB of the scores."""


def _tags_section(found: dict[str, Any]) -> str:
    steps = _table(
        ["step", "time"],
        [[step, f"{seconds:.0f} s"] for step, seconds in found["seconds"].items()],
    )
    return f"""## Tags

Times for COCO's {found["images"]:,} tagged images with 527 tags, with 2,048 landmarks in the space
and 1,024 in the χ² view. Peak memory of the process, including the features, is
{found["peak_bytes"] / 2**30:.1f} GiB.

{steps}

Building a label matrix of 100,000 images × 5,000 tags from lists of words takes
{found["vocabulary"]:.1f} s."""


def draw_growth(rows: list[dict[str, Any]], path: Path) -> None:
    """Plot time, with the fitted line, and memory against the number of images."""
    slope, intercept, _ = line_fit(rows)
    n = np.array([row["images"] for row in rows])
    figure, (time_axis, memory_axis) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    line = np.array([0, n.max()])
    time_axis.plot(line, intercept + slope * line, color="0.7", label="straight line")
    time_axis.plot(n, [row["fit_seconds"] for row in rows], "o", color="C0", label="fit")
    time_axis.set(xlabel="images", ylabel="seconds", xlim=(0, None), ylim=(0, None))
    time_axis.legend(frameon=False)
    memory_axis.plot(n, [row["peak_bytes"] / MIB for row in rows], "o-", color="C1")
    memory_axis.set(
        xlabel="images", ylabel="peak extra memory (MiB)", xlim=(0, None), ylim=(0, None)
    )
    for axis in (time_axis, memory_axis):
        axis.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:.0f}k")
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def stored() -> dict[str, Any]:
    """The stored results."""
    return json.loads((DOCS / "benchmarks.json").read_text())


def write(results: dict[str, Any]) -> None:
    """Write the results, the figure and the page."""
    (DOCS / "images").mkdir(parents=True, exist_ok=True)
    (DOCS / "benchmarks.json").write_text(json.dumps(results, indent=1) + "\n")
    draw_growth(results["growth"], DOCS / "images" / "benchmarks-growth.svg")
    (DOCS / "benchmarks.md").write_text(page(results))


if __name__ == "__main__":
    write(stored())
