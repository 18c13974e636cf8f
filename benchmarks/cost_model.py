"""What larger collections cost: measured rates, carried to 10⁸ and 10⁹ images.

``python -m benchmarks.cost_model`` rewrites the tables of docs/scale.md from docs/benchmarks.json.
Every step is a number of operations times a rate. The rates are geometric means over all points
that were measured, on one machine, with two workers and on one GPU, and `points` compares each of
them with the model.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.process import ROOT
from benchmarks.tables import table

PAGE = ROOT / "docs" / "scale.md"
BEGIN, END = "<!-- cost model: begin -->", "<!-- cost model: end -->"
TIB, GIB = 1e12, 1e9


@dataclass(frozen=True)
class Point:
    """One measurement: CPU seconds (of a GPU, seconds) for so many operations."""

    step: str
    where: str
    operations: float
    seconds: float


def sum_operations(n: float, d: int, r: int) -> float:
    """Kernel columns and the lower triangle of their Gram matrix: N (2dr + r²)."""
    return n * (2 * d * r + r * r)


def projection_operations(n: float, d: int, r: int, m: int) -> float:
    """Kernel columns and their product with the coefficients: 2N (dr + rm)."""
    return 2 * n * (d * r + r * m)


def points(results: dict[str, Any]) -> list[Point]:
    """What was measured, by step."""
    many, stream = results["distributed"], results["scale"]["stream"]
    n, d, r = (stream[name] for name in ("images", "features", "landmarks"))
    constants, search = many["constants"], results["search"]
    million = results["gpu"]["fit_million"]
    paper = results["gpu"]["fit_paper_size"]
    sizes = ("images", "features", "landmarks")
    found = [
        Point("sums", "one machine, from disk", sum_operations(n, d, r), stream["fit_cpu_seconds"]),
        Point("sums", "one core, one image", sum_operations(1, 1280, 4096), constants["sums"]),
        Point(
            "projection",
            "one core, one image",
            projection_operations(1, 1280, 4096, 80),
            constants["projection"],
        ),
        Point(
            "projection",
            "one machine, from disk",
            projection_operations(n, d, r, 80),
            2 * stream["transform_seconds"],
        ),
        Point(
            "exact search",
            "one core",
            search["queries"] * search["points"],
            sorted(search["seconds"]["tagkin"])[1],
        ),
        Point(
            "features",
            "one machine",
            results["features"]["small"]["photographs"],
            sorted(results["features"]["small"]["cpu_seconds"]["extract"])[1],
        ),
        Point(
            "features", "one core, no cluster", many["photographs"], many["here"]["features"]["cpu"]
        ),
        *(
            Point(
                "GPU sums",
                f"{case['images']:,} × {case['features']:,}",
                sum_operations(*(case[name] for name in sizes)),
                case["uniform_tf32"]["median"],
            )
            for case in (million, paper)
        ),
    ]
    for workers in ("here", "1 workers", "2 workers"):
        where = {"here": "one core, no cluster"}.get(
            workers, workers.replace("1 workers", "1 worker")
        )
        cost = many[workers]
        found += [
            Point("sums", where, sum_operations(196_608, 256, 1024), cost["sums"]["cpu"]),
            Point(
                "projection",
                where,
                projection_operations(196_608, 256, 1024, 80),
                cost["projection"]["cpu"],
            ),
        ]
        if workers != "here":
            found.append(Point("features", where, many["photographs"], cost["features"]["cpu"]))
    return found


@dataclass(frozen=True)
class Rates:
    """Seconds for one operation of each step, and how the points lie around them."""

    seconds: dict[str, float]
    measured: list[Point] = field(default_factory=list)

    @classmethod
    def of(cls, measured: list[Point]) -> "Rates":
        """The geometric mean over the points of each step."""
        steps = dict.fromkeys(point.step for point in measured)
        logs = {
            step: [math.log(p.seconds / p.operations) for p in measured if p.step == step]
            for step in steps
        }
        return cls({s: math.exp(sum(v) / len(v)) for s, v in logs.items()}, measured)

    def off(self, point: Point) -> float:
        """What was measured over what the model says."""
        return point.seconds / (self.seconds[point.step] * point.operations)


@dataclass(frozen=True)
class Plan:
    """A collection, and the machines for it."""

    images: float
    machines: int
    cores: int = 16
    features: int = 1280
    landmarks: int = 4096
    dimensions: int = 256
    tags: int = 1000
    photograph_bytes: float = 200e3
    per_core_hour: float = 0.04
    """Dollars."""
    queries: float = 1e6
    """Photographs that get suggestions."""
    shard: float = 2e6
    """Points of one index."""


def core_seconds(plan: Plan, rates: Rates, results: dict[str, Any]) -> dict[str, float]:
    """CPU seconds of each step."""
    n, per = plan.images, rates.seconds
    index = results["scale"]["search"]
    per_point = index["build_seconds"] / index["points"]
    # a query searches every shard; its work is proportional to points and dimensions
    query = index["k=100"]["milliseconds_per_query"] / 1000
    query *= plan.images / index["points"] * plan.dimensions / 80
    return {
        "features": n * per["features"],
        "sums": sum_operations(n, plan.features, plan.landmarks) * per["sums"],
        "projection": per["projection"]
        * projection_operations(n, plan.features, plan.landmarks, plan.dimensions),
        "neighbours: index": n * per_point * plan.dimensions / 80,
        "suggestions for a million": plan.queries * query,
    }


def moved(plan: Plan) -> dict[str, tuple[float, float]]:
    """Bytes read from storage, and bytes between machines, for each step."""
    n, r = plan.images, plan.landmarks
    features, points = 4.0 * n * plan.features, 4.0 * n * plan.dimensions
    one_sum = 8.0 * r * (r + plan.tags)
    shards = math.ceil(n / plan.shard)
    return {
        "features": (n * plan.photograph_bytes, features),
        "sums": (2 * features, n / 65_536 * one_sum),
        "projection": (features, points),
        "neighbours: index": (points, 0.0),
        "suggestions for a million": (0.0, plan.queries * shards * 12 * 100),
    }


def resident(plan: Plan) -> dict[str, float]:
    """Bytes in the memory of one machine."""
    r, m, per_core = plan.landmarks, plan.dimensions, plan.cores
    one_sum = 8.0 * r * (r + plan.tags)
    chunk = 4.0 * 65_536 * plan.features
    index = plan.images * (4 * m + m / 2 + 8) / plan.machines
    return {
        "features": per_core * 0.3 * GIB,
        "sums": per_core * (chunk + 128 * 2**20 + 5 * one_sum + 0.3 * GIB),
        "projection": per_core * (chunk + 128 * 2**20 + 0.3 * GIB),
        "neighbours: index": index,
        "suggestions for a million": index,
    }


def plan_table(plan: Plan, rates: Rates, results: dict[str, Any]) -> str:
    """The cost of each step."""
    seconds, bytes_moved, memory = core_seconds(plan, rates, results), moved(plan), resident(plan)
    cores = plan.machines * plan.cores
    rows = []
    for step, taken in seconds.items():
        read, network = bytes_moved[step]
        counted = plan.queries if step.startswith("suggestions") else plan.images
        dollars = taken / 3600 * plan.per_core_hour / (counted / 1e6)
        rows.append(
            [
                step,
                f"{taken / 3600:,.0f} h",
                _hours(taken / cores / 3600),
                _size(read),
                _size(network),
                _size(memory[step]),
                f"{dollars:,.2f} $",
            ]
        )
    total = sum(seconds.values())
    dollars = total / 3600 * plan.per_core_hour / (plan.images / 1e6)
    rows.append(
        [
            "**all**",
            f"**{total / 3600:,.0f} h**",
            f"**{_hours(total / cores / 3600)}**",
            "",
            "",
            "",
            f"**{dollars:,.2f} $**",
        ]
    )
    header = [
        "step",
        "CPU time",
        f"on {cores:,} cores",
        "read",
        "between machines",
        "memory of a machine",
        "per million",
    ]
    return table(header, rows)


def limits_table(plans: list[Plan], rates: Rates, results: dict[str, Any]) -> str:
    """What grows out of hand, first things first, and what one would do then."""

    def a_query(plan: Plan) -> float:
        found = core_seconds(plan, rates, results)["suggestions for a million"]
        return found / plan.queries

    def tasks(plan: Plan) -> float:
        chunks = plan.queries / 8192
        return chunks * math.ceil(plan.images / plan.shard) * 0.0031 / 60

    def memory(plan: Plan) -> float:
        return resident(plan)["neighbours: index"] / GIB

    rows: list[tuple[str, Callable[[Plan], str], str]] = [
        (
            "one query, over all shards",
            lambda p: f"{a_query(p):.2f} CPU seconds",
            "a coarse index over the shards, so that a query asks a few; fewer dimensions",
        ),
        (
            "scheduling a million queries: a task for each chunk and shard",
            lambda p: f"{tasks(p):,.1f} min of the scheduler",
            "larger shards; chunks of more queries",
        ),
        (
            "points and codes in the memory of each machine",
            lambda p: f"{memory(p):,.0f} GB",
            "float16 points on disk, codes alone in memory; more machines",
        ),
    ]
    header = ["what breaks", *(f"{plan.images:,.0f} images" for plan in plans), "then"]
    return table(
        header, [[name, *map(say, plans), then] for name, say, then in rows], numbers=False
    )


def points_table(rates: Rates) -> str:
    """Every measurement beside the model."""
    return table(
        ["step", "measured on", "seconds", "by the model", "ratio"],
        [
            [
                p.step,
                p.where,
                f"{p.seconds:.3g}",
                f"{p.operations * rates.seconds[p.step]:.3g}",
                f"{rates.off(p):.2f}",
            ]
            for p in rates.measured
        ],
    )


def _hours(hours: float) -> str:
    return f"{hours:,.1f} h" if hours >= 1 else f"{60 * hours:.1f} min"


def _size(n_bytes: float) -> str:
    if not n_bytes:
        return "–"
    return f"{n_bytes / TIB:,.1f} TB" if n_bytes >= TIB else f"{n_bytes / GIB:,.0f} GB"


PLANS = [Plan(1e8, 16), Plan(1e9, 160)]


def section(results: dict[str, Any]) -> str:
    """The part of the page that the model writes."""
    rates = Rates.of(points(results))
    parts = [points_table(rates)]
    for plan in PLANS:
        parts += [
            f"**{plan.images:,.0f} images** on {plan.machines} machines with {plan.cores} cores:",
            plan_table(plan, rates, results),
        ]
    parts += ["**What breaks first:**", limits_table(PLANS, rates, results)]
    return "\n\n".join(parts)


def page_with(text: str, results: dict[str, Any]) -> str:
    """The page, with the model's part made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{section(results)}\n\n{END}{after}"


def main() -> None:
    """Rewrite the page's tables."""
    results = json.loads((ROOT / "docs" / "benchmarks.json").read_text())
    PAGE.write_text(page_with(PAGE.read_text(), results))


if __name__ == "__main__":
    main()
