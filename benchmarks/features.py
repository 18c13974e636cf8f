"""Photographs per second through `extract`, against onnxruntime alone on prepared batches.

``python -m benchmarks.features`` prints JSON: seconds and CPU seconds of every repeat, for small
photographs and for synthetic ones of 12 megapixels. The upper bound is the better of two ways to
run the same network on the same threads: all threads on batches of 32, or one thread on each
batch of 4. Decoding alone reads and decodes the files, and does nothing else: what the two take
together is what `extract` could take if all else were free. Photographs come from
../shared/data/photos (or TAGKIN_DATA), or are synthetic.
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

from benchmarks.process import DATA, say
from tagkin.features import Backbone, FeatureCache, extract, get_backbone
from tagkin.features.efficientnet import NETWORK
from tagkin.features.onnx_sessions import import_onnxruntime
from tagkin.images import decode, read_bytes

SMALL, LARGE, REPEATS, IN_BATCH = 160, 24, 3, 4
DECODING = "decoding alone"
CORES = len(os.sched_getaffinity(0))


def synthetic_photographs(folder: Path, n: int, size: tuple[int, int]) -> list[str]:
    """JPEGs of the given size: random crops of a real photograph, with noise."""
    rng = np.random.default_rng(0)
    china = Image.fromarray(load_sample_image("china.jpg"))
    noise = rng.normal(0, 6, (size[1], size[0], 3)).astype(np.float32)
    folder.mkdir(parents=True)
    files = []
    for i in range(n):
        left, top = rng.uniform(0, 100, 2)
        part = china.resize(size, Image.Resampling.BICUBIC, (left, top, left + 500, top + 300))
        pixels = np.clip(np.asarray(part) + np.roll(noise, i, axis=0), 0, 255).astype(np.uint8)
        files.append(str(folder / f"{i:04}.jpg"))
        Image.fromarray(pixels).save(files[-1], quality=92)
    return files


def session(threads: int) -> Any:
    """An onnxruntime session with the default network."""
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(NETWORK, options)


def ready(files: list[str], backbone: Backbone) -> np.ndarray:
    """All photographs as input of the network."""
    sides = {"min_side": backbone.min_side}
    return np.stack([backbone.prepare(decode(read_bytes(file), **sides)) for file in files])


def programs(files: list[str], backbone: Backbone) -> dict[str, Callable[[], Any]]:
    """The programs to measure, by name."""
    pixels = ready(files, backbone)
    whole, single = session(CORES), session(1)

    def all_threads() -> None:
        for start in range(0, len(pixels), 32):
            whole.run(None, {"pixels": pixels[start : start + 32]})

    def one_thread_each() -> None:
        with ThreadPoolExecutor(CORES) as pool:
            batches = [pixels[i : i + IN_BATCH] for i in range(0, len(pixels), IN_BATCH)]
            list(pool.map(lambda batch: single.run(None, {"pixels": batch}), batches))

    def decoding() -> None:
        with ThreadPoolExecutor(CORES) as pool:
            list(pool.map(lambda file: decode(read_bytes(file), min_side=backbone.min_side), files))

    return {
        "extract": lambda: extract(files, backbone),
        DECODING: decoding,
        "onnxruntime, all threads per batch": all_threads,
        "onnxruntime, one thread per batch": one_thread_each,
    }


def measure_files(files: list[str], backbone: Backbone) -> dict[str, Any]:
    """Seconds of every program, alternating, and of a second run with a cache."""
    seconds: dict[str, list[float]] = {}
    cpu_seconds: dict[str, list[float]] = {}
    measured = programs(files, backbone)
    for repeat in range(REPEATS + 1):
        for name, program in measured.items():
            wall, cpu = time.perf_counter(), time.process_time()
            program()
            if repeat:  # the first run is a warm-up
                seconds.setdefault(name, []).append(time.perf_counter() - wall)
                cpu_seconds.setdefault(name, []).append(time.process_time() - cpu)
    with tempfile.TemporaryDirectory() as folder, FeatureCache(folder) as cache:
        extract(files, backbone, cache=cache)
        start = time.perf_counter()
        extract(files, backbone, cache=cache)
        second_run = time.perf_counter() - start
    rates = {name: len(files) / float(np.median(times)) for name, times in seconds.items()}
    upper_bound = max(rate for name, rate in rates.items() if name.startswith("onnxruntime"))
    say(f"{len(files)} photographs: {rates['extract']:.1f} per second of {upper_bound:.1f}")
    return {
        "photographs": len(files),
        "mean_bytes": sum(os.path.getsize(file) for file in files) / len(files),
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "second_run_seconds": second_run,
    }


def measure() -> dict[str, Any]:
    """Small and large photographs."""
    backbone = get_backbone()
    with tempfile.TemporaryDirectory() as folder:
        small = [str(path) for path in sorted((DATA / "photos").glob("*.jpg"))[:SMALL]]
        small = small or synthetic_photographs(Path(folder, "small"), SMALL, (341, 256))
        large = synthetic_photographs(Path(folder, "large"), LARGE, (4000, 3000))
        return {
            "cores": CORES,
            "backbone": backbone.name,
            "small": measure_files(small, backbone),
            "large": measure_files(large, backbone),
        }


if __name__ == "__main__":
    print(json.dumps(measure()))
