"""Audits of small collections: how often findings hold where most tags are on few photographs.

Collections of some hundred images are drawn from training images, and errors are injected into each
as in `experiments.audit`. All draws of a size count together, and so do all shares of errors in
rows of "all".
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from experiments.audit import (
    KINDS,
    Judged,
    chosen_rows,
    injected,
    named_on,
    store_findings,
    stored_findings,
    write_rows,
)
from experiments.datasets import Dataset, open_dataset
from experiments.problem import dataset_folder

__all__ = ["run", "wilson"]

N_DRAWS = {400: 4, 1200: 4}  # of collections, by the number of their images
SHARES = (0.05, 0.1)
COUNTED = ["said", "held", "from", "to", "held or named"]
HEADER = ["dataset", "images", "kind", "injected", "draws", "n at 80 %", *COUNTED]
HEADER += ["n from 50 to 80 %", *COUNTED]


def drawn(name: str, n: int, draw: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels, and labels that anybody named, of n training images.

    Of Flickr8k they are of the half that nothing was chosen by, and of COCO none of the 10,000 that
    larger audits are about.
    """
    dataset, rows = _open_pool(name)
    assert dataset.features is not None
    some = np.sort(np.random.default_rng(1000 + draw).choice(rows, n, replace=False))
    labels = scipy.sparse.csr_array(dataset.labels)[some].toarray() > 0
    present = labels.any(axis=0)
    return dataset.features[some], labels[:, present], named_on(dataset, some)[:, present]


@cache
def _open_pool(name: str) -> tuple[Dataset, np.ndarray]:
    """A dataset, and the rows of images to draw from."""
    dataset = open_dataset(name, dataset_folder(name))
    rows = np.asarray(dataset.train)
    if name != "flickr8k":
        return dataset, np.setdiff1d(rows, chosen_rows(dataset))
    return dataset, rows[np.random.default_rng(5).permutation(len(rows))[len(rows) // 2 :]]


def judge(name: str, n: int, kind: str, share: float, results: Path) -> dict[str, Judged]:
    """Findings in all draws of n images; they are computed once."""
    found = []
    for draw in range(N_DRAWS[n]):
        path = results / "audit" / "small" / f"{name}-{n}-{kind}-{share:g}-{draw}.npz"
        if not path.exists():
            X, truth, by_somebody = drawn(name, n, draw)
            Y = injected(truth, kind, share, 77 + draw)
            store_findings(path, X, truth, Y, by_somebody)
        found.append(stored_findings(path))
    return {k: Judged.together([one[k] for one in found]) for k in KINDS}


def wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of n; all that is possible where n is 0."""
    if not n:
        return 0.0, 1.0
    z = 1.96
    center = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(center - half, 0.0), center + half  # rounding may lead below 0


def run(results: Path, target: Path) -> None:
    """Measure what is not measured yet, and write a table into the folder `target`."""
    rows: list[list[Any]] = []
    for name in ("coco", "flickr8k"):
        for n, n_draws in N_DRAWS.items():
            nothing = judge(name, n, "wrong", 0.0, results)
            for kind in KINDS:
                found = {share: judge(name, n, kind, share, results)[kind] for share in SHARES}
                cases = {f"{share:g}": one for share, one in found.items()}
                cases = {"0": nothing[kind], **cases, "all": Judged.together(list(found.values()))}
                for case, one in cases.items():
                    rows.append([name, n, kind, case, n_draws, *_counted(one)])
            write_rows("audit-small", HEADER, rows, target)
            print(f"{name}, {n} images", flush=True)


def _counted(found: Judged) -> list[Any]:
    cells: list[Any] = []
    for low, high in ((0.8, 1.1), (0.5, 0.8)):
        counted = found.at(low, high)
        interval = wilson(counted.held, counted.n)
        cells += [counted.n, counted.said, counted.held, *interval, counted.named]
    return cells
