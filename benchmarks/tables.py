"""The tables of each benchmark, as rows, from what it measured."""

import statistics
from collections.abc import Callable
from typing import Any

Rows = list[dict[str, Any]]

MIB = 2**20
LIMITS = {(20_000, 1280, 1024): 2.0, (100_000, 256, 2048): 1.5, (20_000, 1280, 4096): 1.8}
"""Images, features and landmarks of a fit, and how many times its products' time it may take."""
QUERY, REQUEST = 50, 200
"""Milliseconds that 95 of 100 queries of a catalogue and requests of a page may take."""
COMMANDS = {
    "help": 0.3,
    "status": 0.6,
    "find --like": 1.2,
    "find --like, not read before": None,
    "train": 3,
}
"""Commands, and the seconds they may take."""


def target(measured: float, most: float) -> str:
    """Return how much is allowed, and say if it is exceeded."""
    return f"≤ {most:g}" if measured <= most else f"≤ {most:g}, missed"


def space(found: dict[str, Any]) -> dict[str, Rows]:
    """A fit against plain products, and how it grows with the number of images."""
    limit, growth = (
        [
            {
                "images": row["images"],
                "features": row["features"],
                "landmarks": row["landmarks"],
                "fit, s": f"{row['fit_seconds']:.2f}",
                "plain products, s": f"{row['product_seconds']:.2f}",
                "ratio": f"{row['ratio']:.2f}",
                "CPU, s": f"{row['cpu_seconds']:.1f}",
                "peak memory, MiB": round(row["peak_bytes"] / MIB),
            }
            for row in found[part]
        ]
        for part in ("limit", "growth")
    )
    for row in limit:
        most = LIMITS[row["images"], row["features"], row["landmarks"]]
        row["target"] = target(float(row["ratio"]), most)
    return {"space": limit, "space-growth": growth}


def search(found: dict[str, Any]) -> dict[str, Rows]:
    """Exact neighbours by each library."""
    medians = {name: statistics.median(all_) for name, all_ in found["seconds"].items()}
    wall = {name: statistics.median(all_) for name, all_ in found["all_cores"].items()}
    rows = [
        {
            "library": name,
            "CPU of one thread, s": f"{seconds:.1f}",
            "over tagkin": f"{seconds / medians['tagkin']:.2f}",
            "all cores, s": f"{wall[name]:.1f}" if name in wall else "–",
            "same neighbours, %": f"{100 * found['agreement'][name]:.3f}",
        }
        for name, seconds in medians.items()
    ]
    return {"search": rows}


def learning(found: dict[str, Any]) -> dict[str, Rows]:
    """`Annotator.fit`, and spaces of thousands of tags."""
    fits = [
        {
            "collection": name,
            "photographs": row["photographs"],
            "tags": row["tags"],
            "time, s": f"{row['wall_seconds']:.1f}",
            "target, s": target(row["wall_seconds"], 15),
            "CPU, s": f"{row['cpu_seconds']:.1f}",
            "taken by the host": f"{row['stolen_share']:.0%}",
            "products, GFLOP/s": round(row["operations_per_second"] / 1e9),
            "peak memory, MiB": round(row["peak_extra_bytes"] / MIB),
        }
        for name, row in found["fit"].items()
    ]
    tags = [
        {
            "tags": row["tags"],
            "fit, s": f"{row['fit_seconds']:.2f}",
            "plain products, s": f"{row['product_seconds']:.2f}",
            "ratio": f"{row['fit_seconds'] / row['product_seconds']:.2f}",
        }
        for row in found["many_tags"]
    ]
    return {"learning": fits, "learning-tags": tags}


def commands(found: dict[str, Any]) -> dict[str, Rows]:
    """Short commands, and one photograph by an annotator in memory."""

    def row(what: str, seconds: float, most: float | None, cpu: float) -> dict[str, Any]:
        limit = "" if most is None else target(seconds, most)
        return {"": what, "time, s": f"{seconds:.3f}", "target, s": limit, "CPU, s": f"{cpu:.3f}"}

    rows = [
        row(f"tagkin {name}", found["cold"][name]["seconds"], most, one["cpu_seconds"])
        for name, most in COMMANDS.items()
        if (one := found["cold"].get(name))
    ]
    for size, one in found["resident"].items():
        what = f"Annotator.suggest in memory, {size}"
        rows.append(row(what, one["seconds"], 0.015, one["cpu_seconds"]))
    large = found["resident"]["large"]
    rows.append(row("tagkin.load, large", large["load_seconds"], 0.5, large["load_cpu_seconds"]))
    return {"commands": rows}


def features(found: dict[str, Any]) -> dict[str, Rows]:
    """Photographs per second, and their CPU time."""
    rates = []
    for kind in ("small", "large"):
        of_kind = found[kind]
        for name, seconds in of_kind["seconds"].items():
            cpu = statistics.median(of_kind["cpu_seconds"][name]) / of_kind["photographs"]
            rates.append(
                {
                    "": name,
                    "photographs": f"{of_kind['photographs']} {kind}",
                    "KiB each": round(of_kind["mean_bytes"] / 1024),
                    "per second": f"{of_kind['photographs'] / statistics.median(seconds):.1f}",
                    "CPU each, ms": round(1000 * cpu),
                }
            )
    cached = found["small"]["photographs"] / found["small"]["second_run_seconds"]
    rates.append({"": "extract, from the cache", "per second": f"{cached:.0f}"})
    return {"features": rates}


def timings(found: dict[str, Any], most: float) -> Rows:
    """Median and 95 % quantile of every call, in milliseconds, of which it may take so many."""
    return [
        {
            "": name,
            "median, ms": f"{1000 * one['seconds'][0]:.1f}",
            "95 of 100, ms": f"{1000 * one['seconds'][1]:.1f}",
            "target": target(1000 * one["seconds"][1], most),
            "CPU, median, ms": f"{1000 * one['cpu_seconds'][0]:.1f}",
        }
        for name, one in found.items()
    ]


def catalogue(found: dict[str, Any]) -> dict[str, Rows]:
    """Scans and size, and every query."""
    again = min(wall for wall, _ in found["unchanged_scans"])
    sizes = [
        {"": "photographs", "measured": f"{found['photographs']:,}", "target": ""},
        {"": "suggestions", "measured": f"{found['suggestions']:,}", "target": ""},
        {"": "size, MB", "measured": f"{found['bytes'] / 1e6:.0f}", "target": ""},
        {"": "first scan, s", "measured": f"{found['first_scan'][0]:.0f}", "target": ""},
        {"": "scan without changes, s", "measured": f"{again:.1f}", "target": ""},
    ]
    if full := found.get("full"):
        what = f"size with {full['suggestions']:,} suggestions, MB"
        size = full["bytes"] / 1e6
        sizes.append({"": what, "measured": f"{size:.0f}", "target": target(size, 400)})
    return {"catalogue": sizes, "catalogue-queries": timings(found["queries"], QUERY)}


def review(found: dict[str, Any]) -> dict[str, Rows]:
    """The start, thumbnails, and every request during a fit."""
    pictures = found["thumbnails"]
    sizes = [
        {"": "photographs", "measured": f"{found['photographs']:,}"},
        {"": "start of the page, s", "measured": f"{found['start_seconds']:.1f}"},
        {"": "new thumbnails per second and thread", "measured": f"{pictures['made']:.0f}"},
        {"": "stored thumbnails per second", "measured": f"{pictures['again']:,.0f}"},
    ]
    return {"review": sizes, "review-requests": timings(found["calls"], REQUEST)}


def scale(found: dict[str, Any]) -> dict[str, Rows]:
    """A million images from disk, and one by one."""
    stream, serve = found["stream"], found["serve"]

    def row(what: str, name: str, memory: str = "") -> dict[str, Any]:
        cpu, most = stream.get(f"{name}_cpu_seconds"), stream.get(memory)
        return {
            "": what,
            "time, s": f"{stream[f'{name}_seconds']:.1f}",
            "CPU, s": "" if cpu is None else f"{cpu:.0f}",
            "resident memory, MiB": "" if most is None else f"{most / MIB:.0f}",
        }

    streamed = [
        row(f"fit of {stream['images']:,} × {stream['features']:,}", "fit", "resident_after_fit"),
        row("plain float32 products with as many operations", "product"),
        row("projecting all", "transform"),
        row("the 100 nearest for 1,000 queries", "search", "resident_after_all"),
    ]
    clock = serve["milliseconds_perf_counter"]
    served = [
        {"one photograph": part, "median, ms": f"{ms['p50']:.1f}", "99 of 100": f"{ms['p99']:.1f}"}
        for part, ms in clock.items()
    ]
    rate = f"{serve['photographs_per_minute']:,.0f} per minute"
    served.append({"one photograph": "in batches", "median, ms": rate, "99 of 100": ""})
    return {"scale": streamed, "scale-serving": served}


def gpu(found: dict[str, Any]) -> dict[str, Rows]:
    """Times on a GPU, and how far results differ from those of the CPU."""
    times = []
    for sizes in (found["fit_paper_size"], found["fit_million"]):
        of = f"{sizes['images']:,} × {sizes['features']:,}, {sizes['landmarks']:,} landmarks"
        for selection in ("uniform", "rpcholesky"):
            times.append(
                {"": f"fit, {of}, {selection}", "time, s": f"{sizes[selection]['median']:.3f}"}
            )
    projection, nearest = found["projection"], found["search"]
    what = f"projecting {projection['images']:,} × {projection['features']:,}"
    times.append({"": what, "time, s": f"{projection['seconds']:.3f}"})
    what = f"{nearest['k']} nearest of {nearest['points']:,} for {nearest['queries']:,}"
    times.append({"": what, "time, s": f"{nearest['median']:.1f}"})
    methods = [
        {
            "method": name,
            "fit, s": f"{row['fit_seconds']:.2f}",
            "scores, ms": f"{1000 * row['score_seconds']:.0f}",
            "largest difference": f"{found['transfer_agrees'][name]['largest_error']:.0e}",
        }
        for name, row in found["label_transfer"].items()
        if isinstance(row, dict)
    ]
    agrees = found["space_agrees"]
    agreement = [
        {
            "": f"1 − least cosine of embeddings, {kind}",
            "measured": f"{max(1 - agrees[f'{kind}_least_cosine'], 1e-16):.0e}",
        }
        for kind in ("float64", "float32")
    ]
    same = found["neighbors_agree"]["cosine_200"]
    agreement.append({"": "200 nearest with the same rank, %", "measured": f"{100 * same:.2f}"})
    rate = found["gemm_tflops"]["float32"]
    agreement.append({"": "plain float32 products, TFLOP/s", "measured": f"{rate:.0f}"})
    return {"gpu": times, "gpu-methods": methods, "gpu-agreement": agreement}


TABLES: dict[str, Callable[[dict[str, Any]], dict[str, Rows]]] = {
    "space": space,
    "search": search,
    "learning": learning,
    "commands": commands,
    "features": features,
    "catalogue": catalogue,
    "review": review,
    "scale": scale,
    "gpu": gpu,
}
