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
            medians = (
                sizes[f"{selection}_{precision}"]["median"] for precision in ("float32", "tf32")
            )
            rows.append([f"fit, {of} {words}", *(f"{seconds:.3f} s" for seconds in medians)])
    projection = found["projection"]
    rows.append(
        [
            f"projecting {projection['images']:,} × {projection['features']:,}",
            *(
                f"{row['seconds']:.3f} s, {100 * row['share_of_rate']:.0f} % of plain products"
                for row in (projection["float32"], projection["tf32"])
            ),
        ]
    )
    rows.append(
        [
            f"exact neighbours, {search['queries']:,} queries, {search['points']:,} points, 81 "
            f"dimensions, k = {search['k']}",
            f"{search['median']:.1f} s",
            "",
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

`python -m benchmarks.gpu OUT.json` on an {found["device"]} with torch {found["torch"]}; data on
the GPU, medians over repeats. `python -m benchmarks gpu=OUT.json` adds the results to this
page. Plain matrix products run at {rates["float32"]:.0f} TFLOP/s in float32 and
{rates["tf32"]:.0f} in TF32.

{table(["", "float32", "TF32"], rows)}

{_what_bounds(found["profile_of_a_fit"], rates["tf32"])}

Compared with the CPU, kernel values differ by at most {kernel["largest_error"]:.0e}
({kernel["largest_error_tf32"]:.0e} in TF32). The smallest cosine between embeddings is 1 −
{_less_than_one(agrees["float64_least_cosine"])} in float64 and 1 −
{_less_than_one(agrees["float32_least_cosine"])} in float32. Embeddings from a fit in TF32,
aligned by a rotation with those of float32, have a mean cosine of
{paper["tf32_cosine_mean"]:.4f} (smallest {paper["tf32_cosine_least"]:.3f}) at
{paper["images"]:,} images and of {million["tf32_cosine_mean"]:.3f} at {million["images"]:,},
where the few with a large difference lie near the origin. Of the 200 nearest neighbours,
{100 * found["neighbors_agree"]["cosine_200"]:.2f} % have the same rank; the others are at equal
distances up to rounding.

Label transfer follows. Differences are between scores on GPU and CPU, for 1,000 images from
4,000, as a fraction of the largest score.

{methods}"""


def _what_bounds(profile: dict[str, Any], rate: float) -> str:
    """Where the time of a fit goes, next to its products at the rate (TFLOP/s) of plain ones."""
    n, d, r = (profile[name] for name in ("images", "features", "landmarks"))
    operations = n * (2 * d * r + r * r) / 1e12
    work, milliseconds = profile["busy_ms"], 1000 * profile["seconds"]
    waiting = max(0.0, milliseconds - sum(work.values()))
    return f"""What bounds the fit of {n:,} images in TF32 are its products: the kernel columns and
the lower triangle of their Gram matrix, 2Ndr + Nr² = {operations:.1f}·10¹² operations, take
{1000 * operations / rate:.0f} ms at the rate of plain products. Of {milliseconds:.0f} ms, the GPU
multiplies for {work["products"]:.0f} (panels of the Gram matrix reach a little above its diagonal),
computes the kernel from cosines for {work["kernel"]:.0f} (one pass over N × r numbers), factors and
solves in float64 for {work["factors"]:.0f}, passes over memory for {work["passes"]:.0f} (norms,
sums of parts), and waits for the CPU for {waiting:.0f}."""


def _less_than_one(cosine: float) -> str:
    return f"{max(1 - cosine, 1e-16):.0e}"


def scale_section(found: dict[str, Any] | None) -> str:
    """A million images on two cores: from disk, served one by one, searched by FAISS."""
    if found is None:
        return ""
    stream, serve, search = (found[name] for name in ("stream", "serve", "search"))
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
    approximate = table(
        ["neighbours", "recall", "vs. exact speed", "per query"],
        [
            [
                k.removeprefix("k="),
                f"{search[k]['recall']:.4f}",
                f"**{search[k]['speed_up']:.1f}×**",
                f"{search[k]['milliseconds_per_query']:.2f} ms",
            ]
            for k in search
            if k.startswith("k=")
        ],
    )
    ratio = stream["fit_seconds"] / stream["product_seconds"]
    sizes = f"{stream['images']:,} × {stream['features']:,}"
    return f"""## A million images

`python -m benchmarks.scale OUT.json --full`. **From disk:** {sizes} features in float16,
{stream["landmarks"]:,} landmarks. The fit takes {ratio:.1f} times as long as the products.

{streamed}

**Serving:** on one core, with cached features and {serve["images"]:,} tagged images,
{serve["photographs_per_minute"]:,.0f} photographs per minute in batches. One at a time:

{served}

**Approximate search:** for {search["points"]:,} points ({search["source"]}) `recommended_index`
is `{search["index"]}`. One core, against exact search in the same run; the index is built in
{search["build_seconds"]:.0f} s.

{approximate}"""


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

`python -m benchmarks.distributed PHOTOS > OUT.json`. Each Dask worker is a process with one
thread; the run without a cluster uses one thread, too. *Speed-up* is that of two workers over
one.

{rows}

An empty task costs {task:.1f} ms of CPU time. The memory of a worker peaked at {peak:.0f} MiB."""
