"""Photographs a second through `extract`, beside onnxruntime on batches that lie ready, in turn.

``python -m benchmarks.features`` prints JSON: for small photographs and for made ones of 12
megapixels the seconds and CPU seconds of every repeat. The ceiling is the better of two ways to
run the same network on the same threads: one session with all threads and batches of 32, and
one thread a batch of 4. Photographs come from ../shared/data/photos (or TAGKIN_DATA), or are made.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_image

from benchmarks.process import ROOT, say
from tagkin.features import Backbone, FeatureCache, extract, get_backbone
from tagkin.features.efficientnet import build_model
from tagkin.images import decode, read_bytes
from tagkin.onnx_sessions import import_onnxruntime

SMALL, LARGE, REPEATS = 160, 24, 3
DATA = Path(os.environ.get("TAGKIN_DATA", ROOT.parent / "shared" / "data"))
CORES = len(os.sched_getaffinity(0))


def made_photographs(folder: Path, n: int, size: tuple[int, int]) -> list[str]:
    """JPEGs of that width and height, cut at random from a real one, with a camera's noise."""
    rng = np.random.default_rng(0)
    china = Image.fromarray(load_sample_image("china.jpg"))
    noise = rng.normal(0, 6, (size[1], size[0], 3)).astype(np.float32)
    folder.mkdir()
    files = []
    for i in range(n):
        left, top = rng.uniform(0, 100, 2)
        part = china.resize(size, Image.Resampling.BICUBIC, (left, top, left + 500, top + 300))
        pixels = np.clip(np.asarray(part) + np.roll(noise, i, axis=0), 0, 255).astype(np.uint8)
        files.append(str(folder / f"{i:04}.jpg"))
        Image.fromarray(pixels).save(files[-1], quality=92)
    return files


def session(threads: int) -> Any:
    """Onnxruntime with the default network."""
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(build_model("efficientnet-lite0"), options)


def ready(files: list[str], backbone: Backbone) -> np.ndarray:
    """All photographs as the network wants them."""
    sides = {"min_side": backbone.min_side}
    return np.stack([backbone.prepare(decode(read_bytes(file), **sides)) for file in files])


def programs(files: list[str], backbone: Backbone) -> dict[str, Callable[[], Any]]:
    """What is measured, by name."""
    pixels = ready(files, backbone)
    whole, single = session(CORES), session(1)

    def all_threads_a_batch() -> None:
        for start in range(0, len(pixels), 32):
            whole.run(None, {"pixels": pixels[start : start + 32]})

    def one_thread_a_batch() -> None:
        with ThreadPoolExecutor(CORES) as pool:
            starts = range(0, len(pixels), 4)
            list(pool.map(lambda i: single.run(None, {"pixels": pixels[i : i + 4]}), starts))

    return {
        "extract": lambda: extract(files, backbone),
        "onnxruntime, all threads a batch": all_threads_a_batch,
        "onnxruntime, one thread a batch": one_thread_a_batch,
    }


def measure_files(files: list[str], backbone: Backbone) -> dict[str, Any]:
    """Seconds of every program in turn, and of a second run with a cache."""
    seconds: dict[str, list[float]] = {}
    cpu_seconds: dict[str, list[float]] = {}
    measured = programs(files, backbone)
    for repeat in range(REPEATS + 1):
        for name, program in measured.items():
            wall, cpu = time.perf_counter(), time.process_time()
            program()
            if repeat:  # the first time warms up
                seconds.setdefault(name, []).append(time.perf_counter() - wall)
                cpu_seconds.setdefault(name, []).append(time.process_time() - cpu)
    with tempfile.TemporaryDirectory() as folder, FeatureCache(folder) as cache:
        extract(files, backbone, cache=cache)
        start = time.perf_counter()
        again = extract(files, backbone, cache=cache)
        second_run = time.perf_counter() - start
    rates = {name: len(files) / float(np.median(times)) for name, times in seconds.items()}
    ceiling = max(rate for name, rate in rates.items() if name != "extract")
    say(f"{len(files)} photographs: {rates['extract']:.1f} a second of {ceiling:.1f}")
    return {
        "photographs": len(files),
        "mean_bytes": sum(os.path.getsize(file) for file in files) / len(files),
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "of_ceiling": rates["extract"] / ceiling,
        "second_run_seconds": second_run,
        "second_run_cached": again.n_cached,
    }


def measure() -> dict[str, Any]:
    """Small photographs and large ones."""
    backbone = get_backbone()
    with tempfile.TemporaryDirectory() as folder:
        small = [str(path) for path in sorted((DATA / "photos").glob("*.jpg"))[:SMALL]]
        small = small or made_photographs(Path(folder, "small"), SMALL, (341, 256))
        large = made_photographs(Path(folder, "large"), LARGE, (4000, 3000))
        return {
            "cores": CORES,
            "backbone": backbone.name,
            "small": measure_files(small, backbone),
            "large": measure_files(large, backbone),
        }


if __name__ == "__main__":
    print(json.dumps(measure()))
