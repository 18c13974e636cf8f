"""The GPU: agreement with the CPU, and speed.

``python -m benchmarks.gpu [--small]`` prints JSON, after a few minutes. ``--small`` uses small
sizes, and the CPU if there is no GPU.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.process import say
from tagkin import SemanticSpace
from tagkin.neighbors import ExactNeighbors, nearest
from tagkin.paper import LinearSVM, NeighborVoting, RidgeTransfer, TagProp, TagRelevance, TwoPassKNN

REPEATS = 5
N_LABELS = 81


# --- tools -------------------------------------------------------------------------------


class DeviceBenchmark:
    """The device, the problem sizes, and a timer that waits for the device."""

    def __init__(self, small: bool):
        self.small = small
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        if self.device == "cpu" and not small:
            raise SystemExit("No CUDA device was found; use --small to run on the CPU.")

    def size(self, full: int, small: int) -> int:
        """The size to use in this run."""
        return small if self.small else full

    def wait(self) -> None:
        """Wait until the device has finished."""
        if self.device == "cuda":
            torch.cuda.synchronize()

    def seconds(self, work: Callable[[], Any], repeats: int = REPEATS) -> list[float]:
        """Seconds of each repeat, after one warm-up."""
        work()
        times = []
        for _ in range(repeats):
            self.wait()
            start = time.perf_counter()
            work()
            self.wait()
            times.append(time.perf_counter() - start)
        return times

    def features(self, n: int, d: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Non-negative features (n×d) that depend on labels, and the labels; on the device."""
        generator = torch.Generator(self.device).manual_seed(0)
        frequency = 1 / torch.arange(2.0, N_LABELS + 2, device=self.device)
        frequency *= 3 / frequency.sum()
        drawn = torch.rand((n, N_LABELS), generator=generator, device=self.device)
        Y = (drawn < frequency).float()
        directions = torch.randn((N_LABELS, d), generator=generator, device=self.device)
        X = torch.randn((n, d), generator=generator, device=self.device)
        for part, labels in zip(X.split(50_000), Y.split(50_000), strict=True):
            part += labels @ directions
            part.clamp_(min=0)
        return X, Y

    def peak(self) -> int:
        """Peak bytes allocated on the device since the last call."""
        if self.device != "cuda":
            return 0
        most = torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        return most


def cosines(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """Cosine of each row of A with the same row of B, in float64."""
    return torch.nn.functional.cosine_similarity(A.double(), B.double(), dim=1)


def same_neighbors(found: Any, expected: Any) -> float:
    """Share of identical neighbours at the same rank."""
    return float((found.indices.cpu() == torch.as_tensor(expected.indices).cpu()).double().mean())


# --- agreement ---------------------------------------------------------------------------


def space_agrees(bench: DeviceBenchmark) -> dict[str, Any]:
    """The space on the device against the CPU's, with the same landmarks."""
    X, Y = bench.features(8000, 128)
    host_X, host_Y = X.cpu().numpy(), Y.cpu().numpy()
    result = {}
    for dtype in ("float64", "float32"):
        wide = X.to(getattr(torch, dtype))
        model = SemanticSpace(selection=host_X[:512].astype(dtype)).fit(
            host_X.astype(dtype), host_Y
        )
        expected = torch.from_numpy(model.transform(host_X.astype(dtype)))
        on_device = SemanticSpace(selection=wide[:512]).fit(wide, Y)
        embeddings: Any = on_device.transform(wide)
        result[f"{dtype}_least_cosine"] = float(cosines(embeddings.cpu(), expected).min())
    return result


def neighbors_agree(bench: DeviceBenchmark) -> dict[str, Any]:
    """Exact neighbours on the device against the CPU's."""
    X, _ = bench.features(30_000, 81)
    X[1000:2000] = X[:1000]  # equal points: the lower index must come first
    there = nearest(X[:2000], X, 200)
    here = nearest(X[:2000].cpu().numpy(), X.cpu().numpy(), 200)
    return {"cosine_200": same_neighbors(there, here)}


def methods() -> dict[str, Any]:
    """Every transfer method."""
    return {
        "NeighborVoting": NeighborVoting(100),
        "TagRelevance": TagRelevance(100),
        "TagProp": TagProp(100),
        "TagProp distance": TagProp(100, weights="distance"),
        "TwoPassKNN": TwoPassKNN(3),
        "TwoPassKNN authors": TwoPassKNN(3, form="authors", decay=5.0),
        "LinearSVM": LinearSVM(),
        "RidgeTransfer": RidgeTransfer(),
    }


def transfer_agrees(bench: DeviceBenchmark) -> dict[str, Any]:
    """Scores on the device against the CPU's."""
    X, Y = bench.features(5000, 81)
    host_X, host_Y = X.cpu().numpy(), Y.cpu().numpy()
    result = {}
    for name, model in methods().items():
        expected = model.fit(host_X[1000:], host_Y[1000:]).decision_function(host_X[:1000])
        found = model.fit(X[1000:], host_Y[1000:]).decision_function(X[:1000])
        error = np.abs(found.cpu().numpy() - expected) / np.abs(expected).max()
        # neighbours at equal distances up to rounding may swap ranks, and so rank weights
        result[name] = {
            "largest_error": float(error.max()),
            "mean_error": float(error.mean()),
            "device": str(found.device),
        }
    return result


# --- speed -------------------------------------------------------------------------------


def gemm(bench: DeviceBenchmark) -> dict[str, Any]:
    """The device's rate of plain matrix products, in TFLOP/s."""
    n = bench.size(16_384, 512)
    A = torch.rand((n, n), device=bench.device)
    times = bench.seconds(lambda: A @ A.T)  # as kernel columns are made
    rates = {"float32": 2 * n**3 / statistics.median(times) / 1e12}
    return rates


def fits(bench: DeviceBenchmark, n: int, d: int, r: int) -> dict[str, Any]:
    """Seconds of a fit, by selection."""
    X, Y = bench.features(n, d)
    result: dict[str, Any] = {"images": n, "features": d, "landmarks": r}
    for selection in ("uniform", "rpcholesky"):
        model = SemanticSpace(n_landmarks=r, selection=selection, random_state=0)
        times = bench.seconds(partial(model.fit, X, Y), 3)
        result[selection] = {
            "median": statistics.median(times),
            "all": times,
            "peak_bytes": bench.peak(),
        }
        say(f"fit {n:,}×{d}, r={r:,}, {selection}: {min(times):.3f} s")
    return result


def projection(bench: DeviceBenchmark) -> dict[str, Any]:
    """Projecting a million images."""
    n, d, r = bench.size(1_000_000, 5000), bench.size(1280, 64), bench.size(4096, 128)
    X, Y = bench.features(n, d)
    model = SemanticSpace(selection=X[:r]).fit(X[:50_000], Y[:50_000])
    m = model.n_components_
    result: dict[str, Any] = {"images": n, "features": d, "landmarks": r, "dimensions": m}
    return result | {"seconds": statistics.median(bench.seconds(lambda: model.transform(X), 3))}


def searching(bench: DeviceBenchmark) -> dict[str, Any]:
    """100,000 queries against a million points of 81 dimensions, the 200 nearest of each."""
    n, q, k = bench.size(1_000_000, 20_000), bench.size(100_000, 500), 200
    X, _ = bench.features(n + q, 81)
    points, queries = X[q:], X[:q]
    start = time.perf_counter()
    index = ExactNeighbors().fit(points)
    bench.wait()
    building = time.perf_counter() - start
    times = bench.seconds(lambda: index.kneighbors(queries, k), 2)
    return {
        "points": n,
        "queries": q,
        "k": k,
        "build_seconds": building,
        "seconds": times,
        "median": statistics.median(times),
        "peak_bytes": bench.peak(),
    }


def label_transfer(bench: DeviceBenchmark) -> dict[str, Any]:
    """Fit on 100,000 labelled images, and scores for 10,000 others."""
    n, q = bench.size(100_000, 3000), bench.size(10_000, 300)
    X, Y = bench.features(n + q, 81)
    host_Y = Y[q:].cpu().numpy()
    result = {}
    for name, model in methods().items():
        start = time.perf_counter()
        model.fit(X[q:], host_Y)
        bench.wait()
        fitting = time.perf_counter() - start
        times = bench.seconds(partial(model.decision_function, X[:q]), 2)
        result[name] = {"fit_seconds": fitting, "score_seconds": statistics.median(times)}
        say(f"{name}: {result[name]}")
    return result


# --- all of it ---------------------------------------------------------------------------


def sections(bench: DeviceBenchmark) -> dict[str, Callable[[], dict[str, Any]]]:
    """The measurements by name, most important first."""
    paper = bench.size(125_000, 3000), bench.size(4096, 64), bench.size(4096, 128)
    million = bench.size(1_000_000, 5000), bench.size(1280, 64), bench.size(4096, 128)
    return {
        "space_agrees": lambda: space_agrees(bench),
        "neighbors_agree": lambda: neighbors_agree(bench),
        "transfer_agrees": lambda: transfer_agrees(bench),
        "gemm_tflops": lambda: gemm(bench),
        "fit_paper_size": lambda: fits(bench, *paper),
        "fit_million": lambda: fits(bench, *million),
        "search": lambda: searching(bench),
        "projection": lambda: projection(bench),
        "label_transfer": lambda: label_transfer(bench),
    }


def main() -> None:
    """Run every section and print its results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    bench = DeviceBenchmark(parser.parse_args().small)
    name = torch.cuda.get_device_name() if bench.device == "cuda" else "CPU"
    results: dict[str, Any] = {"device": name, "torch": torch.__version__}
    for section, measure in sections(bench).items():
        results[section] = measure()
        say(f"{section}: {json.dumps(results[section])[:600]}")
        if bench.device == "cuda":
            torch.cuda.empty_cache()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
