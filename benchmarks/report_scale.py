"""The sections of docs/benchmarks.md on the GPU, on a million images and on several machines."""

from typing import Any

from benchmarks.tables import MIB, table

JOBS = {
    "sums": "a space: 196,608 × 256, 1,024 landmarks",
    "projection": "its projection",
    "search": "50 nearest of 131,072 points, 4,096 queries, 80 dimensions",
    "features": "features of {photographs} photographs",
}


def gpu_section(found: dict[str, Any] | None) -> str:
    """The results of `benchmarks.gpu`."""
    if found is None:
        return ""
    paper, million, search = (found[name] for name in ("fit_paper_size", "fit_million", "search"))
    rows = []
    for sizes in (paper, million):
        of = f"{sizes['images']:,} × {sizes['features']:,}, {sizes['landmarks']:,} landmarks"
        for selection, words in (("uniform", "uniform"), ("rpcholesky", "by random pivots")):
            rows.append([f"fit, {of} {words}", f"{sizes[selection]['median']:.3f} s"])
    projection = found["projection"]
    rows.append(
        [
            f"projecting {projection['images']:,} × {projection['features']:,}",
            f"{projection['seconds']:.3f} s, {100 * projection['share_of_rate']:.0f} % of plain "
            "products",
        ]
    )
    rows.append(
        [
            f"exact neighbours, {search['queries']:,} queries, {search['points']:,} points, 81 "
            f"dimensions, k = {search['k']}",
            f"{search['median']:.1f} s",
        ]
    )
    methods = table(
        [
            "100,000 labelled images, 10,000 new ones",
            "fit",
            "scores",
            "largest difference",
            "mean",
        ],
        [
            [
                name,
                f"{row['fit_seconds']:.2f} s",
                f"{1000 * row['score_seconds']:.0f} ms",
                f"{found['transfer_agrees'][name]['largest_error']:.0e}",
                f"{found['transfer_agrees'][name]['mean_error']:.0e}",
            ]
            for name, row in found["label_transfer"].items()
            if isinstance(row, dict)
        ],
    )
    agrees, rates = found["space_agrees"], found["gemm_tflops"]
    kernel = found["kernel_agrees"]
    return f"""## GPU

Measured on an {found["device"]} with torch {found["torch"]}; data on the GPU, medians over repeats.
Plain matrix products run at {rates["float32"]:.0f} TFLOP/s in float32. To repeat it, run `python -m
benchmarks.gpu OUT.json` on a machine with a GPU, and then `python -m benchmarks gpu=OUT.json`.

{table(["", "time"], rows)}

Compared with the CPU, kernel values differ by at most {kernel["largest_error"]:.0e}. The smallest
cosine between embeddings is 1 − {_less_than_one(agrees["float64_least_cosine"])} in float64 and 1 −
{_less_than_one(agrees["float32_least_cosine"])} in float32. On GPU and CPU,
{100 * found["neighbors_agree"]["cosine_200"]:.2f} % of the 200 nearest
neighbours have the same rank; the others are at equal distances up to rounding.

The next table is about label transfer. Differences are between scores on GPU and CPU, for 1,000
images and 4,000 training images, as a fraction of the largest score.

{methods}"""


def _less_than_one(cosine: float) -> str:
    return f"{max(1 - cosine, 1e-16):.0e}"


def scale_section(found: dict[str, Any] | None) -> str:
    """A million images on two cores: from disk, and served one by one."""
    if found is None:
        return ""
    stream, serve = found["stream"], found["serve"]
    streamed = table(
        ["", "time", "CPU time", "peak resident memory"],
        [
            [
                "fit",
                f"{stream['fit_seconds']:.0f} s",
                f"{stream['fit_cpu_seconds']:.0f} s",
                f"{stream['resident_after_fit'] / MIB:.0f} MiB",
            ],
            [
                "plain float32 products with as many operations",
                f"{stream['product_seconds']:.0f} s",
                f"{stream['product_cpu_seconds']:.0f} s",
                "",
            ],
            ["projecting all", f"{stream['transform_seconds']:.0f} s", "", ""],
            [
                "the 100 nearest for 1,000 queries",
                f"{stream['search_seconds']:.1f} s",
                "",
                f"{stream['resident_after_all'] / MIB:.0f} MiB",
            ],
        ],
    )
    clock = serve["milliseconds_perf_counter"]
    served = table(
        ["one photograph", "median", "99th percentile"],
        [
            [name, f"{clock[part]['p50']:.1f} ms", f"{clock[part]['p99']:.1f} ms"]
            for part, name in (
                ("transform", "projection"),
                ("suggest", "suggestions"),
                ("both", "both"),
            )
        ],
    )
    ratio = stream["fit_seconds"] / stream["product_seconds"]
    sizes = f"{stream['images']:,} × {stream['features']:,}"
    return f"""## A million images

To repeat it, run `python -m benchmarks.scale OUT.json --full`.

**From disk:** {sizes} features in float16, {stream["landmarks"]:,} landmarks. The fit takes
{ratio:.1f} times as long as plain products.

{streamed}

**Serving:** one core annotates {serve["photographs_per_minute"]:,.0f} photographs per minute in
batches, with cached features and {serve["images"]:,} tagged images. Single photographs take:

{served}"""


def distributed_section(found: dict[str, Any] | None) -> str:
    """The same work without a cluster, on one worker and on two."""
    if found is None:
        return ""
    here, one, two = (found[name] for name in ("here", "1 workers", "2 workers"))
    rows = table(
        ["", "no cluster", "1 worker", "2 workers", "speed-up", "CPU: no cluster", "1", "2"],
        [
            [
                words.format(photographs=found["photographs"]),
                *(f"{row[job]['wall']:.1f} s" for row in (here, one, two)),
                f"**{one[job]['wall'] / two[job]['wall']:.2f}×**",
                *(f"{row[job]['cpu']:.1f} s" for row in (here, one, two)),
            ]
            for job, words in JOBS.items()
        ],
    )
    task = 1000 * one["task"]["cpu"]
    peak = max(row["worker_bytes"] for row in (one, two)) / MIB
    return f"""## Several machines

Each Dask worker is a process with one thread; the run without a cluster uses one thread, too.
*Speed-up* is that of two workers over one. To repeat it, run
`python -m benchmarks.distributed PHOTOS > OUT.json`.

{rows}

An empty task costs {task:.1f} ms of CPU time. A worker's memory peaked at {peak:.0f} MiB."""
