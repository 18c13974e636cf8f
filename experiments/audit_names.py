"""Audits of small collections whose tags have names that tagkin understands.

Run ``python -m experiments audit-names``: 300 and 400 photographs of the folder, ten draws of each
share of wrong labels, some minutes. It writes audit-names.csv into docs/results. The limit of what
a name may say in an audit, and the share of wrong labels to start with, were chosen on other draws.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.audit import injected, write_rows
from experiments.names import Task, load_task
from tagkin import FeatureAnnotator
from tagkin.labels import Vocabulary

__all__ = ["count_findings", "run"]

SEED = 50
CASES = ((300, 0.0), (300, 0.01), (300, 0.045), (400, 0.1))
"""Photographs, and the share of wrong labels."""
N_DRAWS = 10
FIRST = 60
COUNTED = ["n at 80 %", "right", "n from 50 to 80 %", "right"]
HEADER = ["photographs", "injected", "kind", "errors", f"found in the first {FIRST}", "said"]
HEADER += ["right", *COUNTED]


def count_findings(task: Task, n: int, share: float, draw: int) -> dict[str, list[float]]:
    """Audit one draw, and return the cells of `HEADER` after the kind, as sums, by kind."""
    rows = np.random.default_rng(SEED + draw).permutation(len(task.X))[:n]
    truth: Any = task.Y[rows].toarray() > 0
    labels = injected(truth, "wrong", share, draw)
    lists = [[task.labels[t] for t in np.flatnonzero(row)] for row in labels]
    annotator = FeatureAnnotator(prior=task.prior, vocabulary=Vocabulary())
    annotator.fit(task.X[rows], lists)
    column: dict[str | int, int] = {label: t for t, label in enumerate(task.labels)}
    counts = {}
    for kind, n_errors in (("wrong", int((labels & ~truth).sum())), ("missing", 0)):
        findings = annotator.audit(labels.size, kind=kind, n_kin=0)
        said = np.array([finding.confidence for finding in findings])
        is_there = [truth[finding.image, column[finding.name]] for finding in findings]
        right = np.array(is_there, bool) != (kind == "wrong")
        first = slice(FIRST)
        cells = [n_errors, right[first].sum(), said[first].sum(), right[first].sum()]
        for low, high in ((0.8, 1.1), (0.5, 0.8)):
            chosen = (low <= said) & (said < high)
            cells += [chosen.sum(), right[chosen].sum()]
        counts[kind] = cells
    return counts


def run(target: Path) -> None:
    """Measure, print and write the table: numbers of all draws, and means of the first ones."""
    task, rows = load_task("photos"), []
    for n, share in CASES:
        found = [count_findings(task, n, share, draw) for draw in range(N_DRAWS)]
        for kind in ("wrong", "missing"):
            totals = np.sum([counts[kind] for counts in found], axis=0).tolist()
            means = [total / (FIRST * N_DRAWS) for total in totals[2:4]]
            rows.append([n, share, kind, *map(int, totals[:2]), *means, *map(int, totals[4:])])
            print(*rows[-1], flush=True)
    write_rows("audit-names", HEADER, rows, target)
