"""What a backbone is worth on a folder of photographs: a row for docs/models.md.

    python -m experiments backbones                                  # all built-in backbones
    python -m experiments backbones --backbone NAME --backbone NAME
    python -m experiments backbones --backbone NAME --folder ~/Pictures

NAME is any name that ``tagkin train --backbone`` takes. Without --folder, the photographs are the
1,000 training photographs of `photos` with their expert labels; with it, the tagged photographs of
the folder. Suggestions are measured as `tagkin evaluate` does, by cross-validation, with and
without the names of tags. Features are kept in build/results/cache.
"""

from __future__ import annotations

import time
from pathlib import Path

from experiments.datasets import load_photos
from experiments.problem import data_folder
from tagkin.annotator import Annotator
from tagkin.calibration import expected_calibration_error
from tagkin.collection import Collection, read_collection
from tagkin.features import BACKBONES, Backbone, FeatureCache, get_backbone
from tagkin.images import decode, read_bytes

__all__ = ["HEAD", "measure_row", "run"]

HEAD = (
    "| backbone | features | MAP | MAP without names | calibration error | ms |\n"
    "|---|---:|---:|---:|---:|---:|"
)


_TIMED = 30  # photographs


def run(names: list[str], folder: Path | None, cache: Path) -> None:
    """Print a row for each backbone."""
    photographs = _read_photos() if folder is None else read_collection(folder).tagged()
    print(f"{len(photographs):,} tagged photographs\n\n{HEAD}", flush=True)
    for name in names or BACKBONES:
        print(measure_row(name, photographs, cache), flush=True)


def measure_row(name: str, photographs: Collection, folder: Path) -> str:
    """Measure a backbone on tagged photographs; return its row of the table.

    `folder` keeps the features.
    The calibration error is the mean distance between confidence and precision, of all pairs of
    a photograph and a tag. The time is that of one core, for decoding and for the network.
    """
    with FeatureCache(folder) as cache:
        annotator = Annotator(name, cache=cache)
        seen = annotator.read_features(photographs)
        tags_of = dict(zip(photographs.files, photographs.tags, strict=True))
        tags = [tags_of[file] for file in seen.files]
        full = annotator.cross_validate(seen, tags)
        annotator.names = False
        plain = annotator.cross_validate(seen, tags)
    backbone = get_backbone(name)
    error = expected_calibration_error(full.truth, full.confidences)
    files = [Path(file) for file in seen.files]
    cells = (
        f"`{Path(name).name}`",
        f"{backbone.dimension:,}",
        f"{100 * full.semantic['MAP']:.1f}",
        f"{100 * plain.semantic['MAP']:.1f}",
        f"{100 * error:.2f} %",
        f"{milliseconds(backbone, files):.0f}",
    )
    return f"| {' | '.join(cells)} |"


def milliseconds(backbone: Backbone, files: list[Path]) -> float:
    """Processor time per photograph, decoded and seen one by one."""
    seen = 0.0
    for number, file in enumerate(files[: _TIMED + 1]):
        start = time.process_time()
        pixels = decode(read_bytes(file), min_side=backbone.min_side)
        backbone(backbone.prepare(pixels)[None])
        seen += (time.process_time() - start) if number else 0.0  # the first one warms up
    return 1000 * seen / min(_TIMED, len(files) - 1)


def _read_photos() -> Collection:
    """Read the training photographs of `photos` with their expert labels."""
    folder = data_folder() / "photos"
    data = load_photos(folder)
    assert data.files is not None
    names = list(data.label_names)
    rows = [[names[t] for t in data.labels[[i]].indices] for i in data.train]
    return Collection([str(folder / data.files[i]) for i in data.train], rows)
