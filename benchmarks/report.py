"""From measurements to docs/benchmarks.md and its figure: a pure function of the numbers.

``python -m benchmarks.report`` writes them anew from the stored docs/benchmarks.json.
"""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.against_peers import PEERS
from benchmarks.process import ROOT
from benchmarks.report_scale import device_section, distributed_section, scale_section
from benchmarks.report_threads import threads_section
from benchmarks.tables import MIB
from benchmarks.tables import table as _table

DOCS = ROOT / "docs"


def page(results: dict[str, Any]) -> str:
    """The whole page as Markdown."""
    dates = ", ".join(f"{section} on {date}" for section, date in results["dates"].items())
    return f"""# Benchmarks

Made by `make bench` ({dates}) with tagkin {results["tagkin"]}, NumPy {results["numpy"]},
{results["blas"]} and Python {results["python"]}, on {results["machine"]}.
Every ratio compares what ran side by side in one run; the raw numbers are in `benchmarks.json`.

{_peers_section(results["peers"])}

{_limit_section(results["limit"])}

{_growth_section(results["growth"])}

{_search_section(results["search"])}

{_transfer_section(results["transfer"])}

{_words_section(results["words"])}

{_features_section(results.get("features"))}

{threads_section(results.get("threads"))}

{scale_section(results.get("scale"))}

{distributed_section(results.get("distributed"))}

{device_section(results.get("gpu"))}
"""


def _peers_section(rows: list[dict[str, Any]]) -> str:
    ours = {row["images"]: row for row in rows if row["program"] == "tagkin"}
    lines = []
    for row in rows:
        reference = ours[row["images"]]
        theirs = row["program"] != "tagkin"
        lines.append(
            [
                PEERS.get(row["program"], "**tagkin**"),
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
        ["", "images", "CPU time", "of ours", "peak memory", "of ours", "1 − cos", "Δλ"],
        lines,
    )
    return f"""## The exact space against other kernel CCA

Every image a landmark, arc-cosine kernel, 80 labels, κ = 0.5 (κ' = 1/3 in the peers' form),
20 components, one thread each. The peers are handed the finished visual kernel in float64;
tagkin starts from float32 features and its time includes the kernel. First the answers are
compared: *1 − cos* is the largest loss of cosine between their projections of the training
images and ours, over the columns whose correlation stands apart by one part in a thousand, and
*Δλ* the largest difference of a correlation.

{table}

mvlearn runs with `sval_thresh=1e-12`, since its default solves another problem. cca-zoo runs
without the permutation importances that its `fit` adds and that cost more than the solution."""


def _limit_section(rows: list[dict[str, Any]]) -> str:
    table = _table(
        ["images × features, landmarks", "fit", "plain products", "ratio", "CPU", "peak memory"],
        [
            [
                f"{row['images']:,} × {row['features']:,}, {row['landmarks']:,}",
                f"{row['fit_seconds']:.2f} s",
                f"{row['product_seconds']:.2f} s",
                f"**{row['ratio']:.2f}**",
                f"{row['cpu_seconds']:.1f} s",
                f"{row['peak_bytes'] / MIB:,.0f} MiB",
            ]
            for row in rows
        ],
    )
    return f"""## The space with landmarks against the machine

The whole of `SemanticSpace.fit` (choosing landmarks included) next to plain float32 matrix
products of 2Ndr + Nr² operations, the least that kernel columns and their Gram matrix need.
Medians over repeats, in turn, all threads. Peak memory is what the fit adds to the features.

{table}"""


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
        ["images", "fit", "an image", "CPU", "peak memory"],
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

Fit time against the number of images at {first["features"]} features and {first["landmarks"]:,}
landmarks: a straight line, {intercept:.2f} s + {1e6 * slope:.1f} µs an image (R² = {r2:.4f}).
Memory stays below {peak:.0f} MiB; what of it grows is the sample that landmarks are chosen from,
a tenth of the images up to a fixed size.

{table}

![Fit time and peak memory against the number of images](images/benchmarks-growth.svg)"""


def _search_section(found: dict[str, Any]) -> str:
    medians = {name: float(np.median(times)) for name, times in found["seconds"].items()}
    table = _table(
        ["", "CPU time", "of ours", "same neighbours"],
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
    approximate = _table(
        ["index, search settings", "recall", "of exact speed", "to build"],
        [
            [
                f"{row['factory']}, {row['search']}",
                f"{row['recall']:.3f}",
                f"{row['speed_up']:.1f}×",
                f"{row['build_seconds']:.0f} s",
            ]
            for row in found["approximate"]
        ],
    )
    return f"""## Exact neighbours

The {found["k"]} nearest of {found["points"]:,} points for {found["queries"]:,} queries of
{found["dimension"]} dimensions, float32, unit length, one thread each, medians over repeats in
turn, with tagkin {found["tagkin"]} on {found["machine"]}.
Every program builds its index and searches; distances come with tagkin's and FAISS's.

{table}

FAISS's approximate indexes behind the same contract (`FaissNeighbors`), 2,000 queries:

{approximate}"""


def _transfer_section(found: dict[str, Any]) -> str:
    table = _table(
        ["TagProp's weights", "loss", "original's", "seconds", "original's", "of ours"],
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
    return f"""## Label transfer and measures

TagProp on the neighbourhoods of Corel5k that were published with it (4,500 images, 100
neighbours, 260 labels; sigmoids unconstrained). The original program, two threads of C, is not at
hand: its losses and times are as reported for a machine of this kind, not measured in this run.

{table}

2PKNN, {5000:,} queries against 80,000 images with 80 labels, 5 a label: first pass
{passes["first_pass"]:.1f} s, second {passes["second_pass"]:.1f} s.

`evaluate` (MAP, precision, recall, N+, MiAP) on 35,000 images × 5,000 labels:
{measures["seconds"]:.1f} s, and {measures["peak_bytes"] / MIB:.0f} MiB beyond the scores'
{measures["score_bytes"] / MIB:.0f}."""


def _words_section(found: dict[str, Any]) -> str:
    steps = _table(
        ["step", "seconds"],
        [[step, f"{seconds:.0f} s"] for step, seconds in found["seconds"].items()],
    )
    return f"""## Words

COCO's {found["images"]:,} images with 527 tags; 2,048 landmarks in the space and 1,024 in the χ²
view. Peak memory of the whole process, features included: {found["peak_bytes"] / 2**30:.1f} GiB.

{steps}

A label matrix of 100,000 images × 5,000 tags from lists of words: {found["vocabulary"]:.1f} s."""


def _features_section(found: dict[str, Any] | None) -> str:
    if found is None:  # not measured yet
        return ""
    lines = []
    for kind, title in (("small", "small JPEGs"), ("large", "JPEGs of 12 megapixels")):
        row = found[kind]
        for name, times in row["seconds"].items():
            ours = name == "extract"
            cpu = float(np.median(row["cpu_seconds"][name])) / row["photographs"]
            lines.append(
                [
                    f"**`{name}`**" if ours else name,
                    f"{row['photographs']} {title}, {row['mean_bytes'] / 1024:,.0f} KiB each",
                    f"{row['photographs'] / float(np.median(times)):.1f}",
                    f"**{100 * row['of_ceiling']:.0f} %**" if ours else "",
                    f"{1000 * cpu:.0f} ms",
                ]
            )
    table = _table(["", "photographs", "a second", "of the ceiling", "CPU a photograph"], lines)
    again = found["small"]["photographs"] / found["small"]["second_run_seconds"]
    return f"""## Photographs to features

{found["backbone"]} on {found["cores"]} cores. `extract` reads, hashes, decodes and resizes the
files and runs the network; onnxruntime alone runs the same network on pixels that lie ready. The
ceiling is the better of its two ways. Medians over repeats, in turn.

{table}

A second run takes its features from the cache without reading the files: {again:,.0f} a second."""


def draw_growth(rows: list[dict[str, Any]], path: Path) -> None:
    """Time with its line, and memory, against the number of images."""
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
    """The numbers of the last run."""
    return json.loads((DOCS / "benchmarks.json").read_text())


def write(results: dict[str, Any]) -> None:
    """Numbers, figure and page."""
    (DOCS / "images").mkdir(parents=True, exist_ok=True)
    (DOCS / "benchmarks.json").write_text(json.dumps(results, indent=1) + "\n")
    draw_growth(results["growth"], DOCS / "images" / "benchmarks-growth.svg")
    (DOCS / "benchmarks.md").write_text(page(results))


if __name__ == "__main__":
    write(stored())
