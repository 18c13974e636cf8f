"""Audits of small collections whose tags have names that tagkin understands.

Run ``python -m experiments audit-names``: 400 photographs of the folder, 20 draws without an error
and 10 with 10 % wrong labels, some minutes. It writes audit-names.csv into docs/results. The limit
of what a name may say in an audit was chosen on other draws.
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

N, SEED = 400, 50
DRAWS = {0.0: 20, 0.1: 10}  # by the share of wrong labels
HEADER = ["injected", "draws", "kind", "n at 80 %", "right", "n from 50 to 80 %", "right"]


def count_findings(task: Task, share: float, draw: int) -> dict[str, list[int]]:
    """Audit one draw; count findings at 80 %, from 50 to 80 %, and the right ones, by kind."""
    rows = np.random.default_rng(SEED + draw).permutation(len(task.X))[:N]
    truth: Any = task.Y[rows].toarray() > 0
    labels = injected(truth, "wrong", share, draw)
    lists = [[task.labels[t] for t in np.flatnonzero(row)] for row in labels]
    annotator = FeatureAnnotator(prior=task.prior, vocabulary=Vocabulary())
    annotator.fit(task.X[rows], lists)
    column: dict[str | int, int] = {label: t for t, label in enumerate(task.labels)}
    counts = {kind: [0, 0, 0, 0] for kind in ("wrong", "missing")}
    for finding in annotator.audit(n_kin=0):
        at = 0 if finding.confidence >= 0.8 else 2
        is_there = truth[finding.image, column[finding.name]]
        counts[finding.kind][at] += 1
        counts[finding.kind][at + 1] += is_there != (finding.kind == "wrong")
    return counts


def run(target: Path) -> None:
    """Measure, print and write the table."""
    task, rows = load_task("photos"), []
    for share, n_draws in DRAWS.items():
        found = [count_findings(task, share, draw) for draw in range(n_draws)]
        for kind in ("wrong", "missing"):
            totals: Any = np.sum([counts[kind] for counts in found], axis=0)
            rows.append([share, n_draws, kind, *totals.tolist()])
            print(*rows[-1], flush=True)
    write_rows("audit-names", HEADER, rows, target)
