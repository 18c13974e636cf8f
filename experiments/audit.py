"""Finding wrong and missing tags that were put there on purpose, and how often findings hold.

Errors are injected into the expert labels of training images: "wrong", as many labels as a share of
those that are there are put on images without them, the label drawn by how often it is there and
the image at random; "missing", a share of the labels is taken away at random. Nothing tells the
annotator about them. Where few errors make few findings, errors are drawn several times, and all
findings count together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from matplotlib.figure import Figure
from sklearn.metrics import average_precision_score

from experiments import made
from experiments.datasets import Dataset, open_dataset
from experiments.problem import dataset_folder
from tagkin import FeatureAnnotator

__all__ = [
    "Judged",
    "chosen_rows",
    "data",
    "injected",
    "judge",
    "named",
    "named_on",
    "run",
    "store_findings",
    "stored_findings",
    "write_rows",
]

SHARES = (0.05, 0.0, 0.3, 0.02, 0.1)
KINDS = ("wrong", "missing")
COLORS = {0.02: "#66CCEE", 0.05: "#4477AA", 0.1: "#AA3377", 0.3: "#EE6677"}
N_IMAGES = 10_000
DATASETS = ("coco", "flickr8k")
SEED = 0
N_DRAWS = {0.02: 2, 0.05: 2}  # of errors; one draw of more errors says enough
COUNTED = ["said", "held", "pairs that were not injected", "held or named"]
HEADER = ["dataset", "kind", "injected", "draws", "n at 80 %", *COUNTED]
HEADER += ["n from 50 to 80 %", *COUNTED]
Case = tuple[str, str, float]


class Counted(NamedTuple):
    """Findings that are about as sure."""

    n: int
    said: float
    """Their mean confidence."""
    held: float
    """The share that was injected."""
    n_others: int
    """Pairs of an image and a label among those that were not; draws may find the same."""
    named: float
    """The share that was injected, or named by some person."""


class Judged(NamedTuple):
    """Findings of one kind: how sure, and whether they hold."""

    confidence: np.ndarray
    holds: np.ndarray
    """Whether the error was injected."""
    named: np.ndarray
    """Whether it was, or the finding is a missing label that some person named on the image."""
    pair: np.ndarray
    """Number of the image and the label, i D + t."""
    n_errors: int
    """Injected ones; those that no finding names count as never found."""

    def precision(self) -> float:
        """Average precision in percent; NaN where nothing could be found."""
        if not self.n_errors:
            return float("nan")
        named = float(average_precision_score(self.holds, self.confidence))
        return 100 * named * float(self.holds.sum()) / self.n_errors

    def at(self, low: float, high: float = 1.1) -> Counted:
        """What the findings with a confidence from `low` on and below `high` are worth."""
        found = (self.confidence >= low) & (self.confidence < high)
        n = int(found.sum())
        others = len(np.unique(self.pair[found & ~self.holds]))
        if not n:
            return Counted(0, float("nan"), float("nan"), others, float("nan"))
        said, held, named = (
            float(part[found].mean()) for part in (self.confidence, self.holds, self.named)
        )
        return Counted(n, said, held, others, named)

    @classmethod
    def together(cls, draws: Sequence[Judged]) -> Judged:
        """The findings of several draws of errors."""
        confidence, holds, named, pair = (
            np.concatenate(part) for part in list(zip(*draws, strict=True))[:4]
        )
        return cls(confidence, holds, named, pair, sum(one.n_errors for one in draws))


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels of training images: all, or as many as are wanted, at random."""
    dataset = open_dataset(name, dataset_folder(name))
    rows = chosen_rows(dataset)
    labels = scipy.sparse.csr_array(dataset.labels)[rows].toarray() > 0
    assert dataset.features is not None
    return dataset.features[rows], labels


def named(name: str) -> np.ndarray:
    """Whether anybody named the label on the image, (N×D), for the images of `data`."""
    dataset = open_dataset(name, dataset_folder(name))
    return named_on(dataset, chosen_rows(dataset))


def named_on(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    """Whether anybody named the label on the image, (n×D): of Flickr8k's five people, one and more.

    Two have to for a label, so that a label which one of them named can be seen there and is not
    among the labels. Of COCO no more is known than the labels.
    """
    if dataset.name != "flickr8k":
        return scipy.sparse.csr_array(dataset.labels)[rows].toarray() > 0
    with np.load(dataset_folder("flickr8k") / "flickr8k.npz") as found:
        columns = np.searchsorted(found["label_names"], dataset.label_names)
        return found["votes"][rows][:, columns] > 0


def chosen_rows(dataset: Dataset) -> np.ndarray:
    """Rows of the training images that are audited: all, or 10,000 at random."""
    rows = np.asarray(dataset.train)
    if len(rows) > N_IMAGES:
        rows = np.sort(np.random.default_rng(SEED).choice(rows, N_IMAGES, replace=False))
    return rows


def injected(Y: np.ndarray, kind: str, share: float, seed: int = SEED + 1) -> np.ndarray:
    """Labels with errors, as many as a share of those there: wrong ones added, or some removed."""
    rng, Y = np.random.default_rng(seed), Y.copy()
    n = round(share * Y.sum())
    if kind == "missing":
        rows, columns = np.nonzero(Y)
        chosen = rng.choice(len(rows), n, replace=False)
        Y[rows[chosen], columns[chosen]] = False
        return Y
    frequency = Y.sum(axis=0) / Y.sum()
    while n:
        rows = rng.integers(len(Y), size=n)
        columns = rng.choice(Y.shape[1], size=n, p=frequency)
        fresh = np.unique(np.stack([rows, columns])[:, ~Y[rows, columns]], axis=1)
        Y[fresh[0], fresh[1]] = True
        n -= fresh.shape[1]
    return Y


def judge(name: str, kind: str, share: float, results: Path, draw: int = 0) -> dict[str, Judged]:
    """Findings of the annotator: "wrong" ones and "missing" ones. They are computed once."""
    path = results / "audit" / f"{name}-{kind}-{share:g}{f'-{draw}' if draw else ''}.npz"
    if not path.exists():
        X, truth = data(name)
        Y = injected(truth, kind, share, SEED + 1 + draw)
        store_findings(path, X, truth, Y, named(name), Y.size)
    return stored_findings(path)


def store_findings(
    path: Path,
    X: np.ndarray,
    truth: np.ndarray,
    Y: np.ndarray,
    by_somebody: np.ndarray,
    most: int | None = None,
) -> None:
    """Audit labels Y (N×D) of images X (N×d), and keep how sure findings are and which hold.

    The labels are `truth` (N×D) but for the errors that were injected. A missing label that is
    among those `by_somebody` (N×D) was named. At `most` so many findings are kept; without it,
    those with 50 % and more.
    """
    estimator = FeatureAnnotator(random_state=SEED).fit(X, Y)
    found = estimator.audit(most, n_kin=0)
    wrong = np.array([one.kind == "wrong" for one in found], dtype=bool)
    at = tuple(np.array([(one.image, one.label) for one in found], dtype=int).reshape(-1, 2).T)
    holds = truth[at] != wrong
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        path,
        wrong=wrong,
        confidence=np.array([one.confidence for one in found]),
        holds=holds,
        named=holds | (~wrong & by_somebody[at]),
        pair=np.ravel_multi_index(at, Y.shape),
        n_errors=(truth != Y).sum(),
        shares=[estimator.errors_.wrong_share, estimator.errors_.missing_share],
    )


def stored_findings(path: Path) -> dict[str, Judged]:
    """Findings that are kept: "wrong" ones and "missing" ones."""
    with np.load(path) as found:
        wrong = found["wrong"]
        parts = {"wrong": wrong, "missing": ~wrong}
        n = int(found["n_errors"])
        columns = [found[of] for of in ("confidence", "holds", "named", "pair")]
        return {
            k: Judged(*(column[part] for column in columns), n_errors=n)  # type: ignore[misc]
            for k, part in parts.items()
        }


def run(results: Path, target: Path) -> None:
    """Measure what is not measured yet, and write tables and a figure into the folder `target`."""
    cases = [
        (name, kind, share)
        for share in SHARES
        for name in DATASETS
        for kind in KINDS
        if share or kind == "wrong"
    ]
    found: dict[Case, dict[str, Judged]] = {}
    for case in cases:
        name, kind, share = case
        draws = [judge(*case, results, draw) for draw in range(N_DRAWS.get(share, 1))]
        found[case] = {k: Judged.together([one[k] for one in draws]) for k in KINDS}
        print(f"{name}, {share:.0%} {kind}: {draws[0][kind].precision():.1f}", flush=True)
        write_rows("audit-reliability", HEADER, _reliability(found), target)
    rows = [
        [name, kind, share, parts[kind].precision()] for (name, kind, share), parts in found.items()
    ]
    header = ["dataset", "kind", "injected", "average precision"]
    write_rows("audit-precision", header, sorted(r for r in rows if r[2]), target)
    _figure(found).savefig(target / "audit-reliability.svg", metadata={"Date": None})
    made.note(target / "audit-reliability.svg", SEED)


def _reliability(found: dict[Case, dict[str, Judged]]) -> list[list[Any]]:
    rows = []
    for (name, kind, share), parts in found.items():
        for asked in KINDS if not share else (kind,):
            sure, likely = parts[asked].at(0.8), parts[asked].at(0.5, 0.8)
            rows.append([name, asked, share, N_DRAWS.get(share, 1), *sure, *likely])
    return sorted(rows, key=lambda row: row[:3])


def write_rows(name: str, header: list[str], rows: list[list[Any]], target: Path) -> None:
    """Write a table; a heading may be there twice."""
    made.write_table(target / f"{name}.csv", header, rows, SEED)


def _figure(found: dict[Case, dict[str, Judged]]) -> Figure:
    """Share of findings that are right against what was said, for every case with errors."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    edges = np.array([0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.001])
    for axes, kind in zip(figure.subplots(1, 2, sharey=True), KINDS, strict=True):
        axes.plot([0, 1], [0, 1], color="#BBBBBB", linewidth=1)
        for (name, of, share), parts in sorted(found.items(), key=lambda case: case[0]):
            if of != kind or not share:
                continue
            bins = [parts[kind].at(*ends) for ends in pairwise(edges)]
            points = [(said, right) for n, said, *_, right in bins if n >= 20]
            if points:
                style = "o-" if name == "coco" else "s--"
                color = COLORS[share]
                axes.plot(
                    *zip(*points, strict=True), style, c=color, label=f"{name}, {share:.0%}", ms=4
                )
        axes.set(title=f"{kind} tags", xlabel="confidence", xlim=(0, 1), ylim=(0, 1.02))
        axes.legend(fontsize=7)
    figure.axes[0].set_ylabel("share injected, or named by a person")
    return figure
