"""Files to features by the previews of cameras, against full decodes.

``python -m benchmarks.pipeline [FILES]`` prints JSON. The files for the times are photographs of 12
megapixels with a preview of 640 × 480, as cameras write them (`benchmarks.camera_files`): a few
pictures, each in many files that differ in their metadata. Cosines and MAP are those of the
photographs in ../shared/data/photos (or TAGKIN_DATA), enlarged, with a preview of 480 pixels.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from PIL import Image

from benchmarks.camera_files import camera_file
from benchmarks.features import DATA, synthetic_photographs
from benchmarks.process import say
from tagkin.features import extract, get_backbone

N_FILES, N_PICTURES, SIZE, PREVIEW = 2000, 20, (4000, 3000), (640, 480)
ENLARGED, SQUARE_PREVIEW = 1536, 480
ALTERNATIVES = ("efficientnet-lite0+lite2", "efficientnet-lite0+lite2-whole")
N_TAGGED = 600  # photographs to learn from, for MAP


def make_files(folder: Path, n: int) -> list[str]:
    """Write camera files of 12 megapixels."""
    pictures = synthetic_photographs(folder / "pictures", min(n, N_PICTURES), SIZE)
    files = []
    for k in range(n):
        if k < len(pictures):
            image = Image.open(pictures[k]).convert("RGB")
            small = np.asarray(image.resize(PREVIEW, Image.Resampling.BOX))
            data = camera_file(np.asarray(image), small, software="Ver.0.0000")
            Path(pictures[k]).write_bytes(data)
        else:
            data = Path(pictures[k % len(pictures)]).read_bytes()
        files.append(str(folder / f"{k:05}.jpg"))
        Path(files[-1]).write_bytes(data.replace(b"Ver.0.0000", b"Ver.1.%04d" % k, 1))
    return files


def timed(files: list[str], previews: str, backbone: str) -> dict[str, float]:
    """Milliseconds and CPU milliseconds per file."""
    os.environ["TAGKIN_PREVIEWS"] = previews
    network = get_backbone(backbone)
    extract(files[:4], network)
    start, cpu = time.perf_counter(), time.process_time()
    extract(files, network)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    row = {
        "milliseconds": 1000 * seconds / len(files),
        "cpu_milliseconds": 1000 * cpu_seconds / len(files),
    }
    say(f"{backbone}, previews {previews}: {row}")
    return row


def compare(folder: Path) -> dict[str, Any]:
    """Cosines of features by previews and by full decodes, and MAP of both."""
    from experiments.backbones import measured
    from experiments.datasets import load_photos

    data = load_photos(DATA / "photos")
    files = []
    for name in data.files or ():
        image = Image.open(DATA / "photos" / name).convert("RGB")
        large = image.resize((ENLARGED, ENLARGED), Image.Resampling.BICUBIC)
        small = large.resize((SQUARE_PREVIEW, SQUARE_PREVIEW), Image.Resampling.BOX)
        files.append(str(folder / name))
        Path(files[-1]).write_bytes(camera_file(np.asarray(large), np.asarray(small)))
    labels, train = scipy.sparse.csr_array(data.labels), np.asarray(data.train)
    features, results = {}, dict[str, Any](photographs=len(files))
    for previews in ("no", "yes"):
        os.environ["TAGKIN_PREVIEWS"] = previews
        features[previews] = extract(files, get_backbone()).features
        values = measured(features[previews], labels, train, N_TAGGED)[0]
        results[f"map_{previews}"] = 100 * float(values[-1])
        say(f"previews {previews}: MAP {results[f'map_{previews}']:.2f}")
    pair = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in features.values()]
    cosines = (pair[0] * pair[1]).sum(axis=1)
    results["cosine_99_of_100"] = float(np.quantile(cosines, 0.01))
    results["cosine_median"] = float(np.median(cosines))
    return results


def measure(n: int = N_FILES) -> dict[str, Any]:
    """Times, cosines and MAP."""
    default = get_backbone().name
    with tempfile.TemporaryDirectory() as folder:
        say(f"making {n:,} files")
        files = make_files(Path(folder), n)
        results: dict[str, Any] = {
            "files": n,
            "bytes": sum(os.path.getsize(file) for file in files) / n,
            "backbone": default,
            "full": timed(files, "no", default),
            "previews": timed(files, "yes", default),
            "alternatives": {name: timed(files, "yes", name) for name in ALTERNATIVES},
        }
    if (DATA / "photos").exists():
        with tempfile.TemporaryDirectory() as folder:
            results["photos"] = compare(Path(folder))
    return results


if __name__ == "__main__":
    print(json.dumps(measure(*map(int, sys.argv[1:]))))
