"""Tables of experiments 4 and 5, and of the run itself (expected values, run time)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from experiments import expert, scaling
from experiments.comparisons import semantic
from experiments.methods import PAPER_METHODS
from experiments.store import Missing
from experiments.study import Study
from experiments.tabular import Table

__all__ = ["curve_tables", "run_tables", "subsampling"]

Maker = Callable[[Study], Table]


def curve_tables(of_tags: bool) -> list[Maker]:
    """Tables of neighbours, subsampling, timing and overlap."""
    if not of_tags:
        return [expert_curves, expert_subsampling, expert_timing, overlap_table]
    return [
        expert_curves, tag_curves, expert_subsampling, tag_subsampling,
        expert_timing, tag_timing, overlap_table,
    ]  # fmt: skip


def run_tables() -> list[Maker]:
    """Tables of expected values and of run time."""
    return [expectations, clock_table]


# --- experiments 4 and 5 -----------------------------------------------------------------


def overlap_table(study: Study) -> Table:
    """Jaccard against the size of the neighbourhood."""
    visual, semantic = (expert.jaccard(study, recipe) for recipe in ("visual", "linear"))
    rows = [
        [int(k), f"{v:.3f}", f"{s:.3f}"]
        for k, v, s in zip(visual["sizes"], visual["overlap"], semantic["overlap"], strict=True)
    ]
    title = f"Mean Jaccard overlap of label sets with the K nearest, {study.config.name}"
    return Table(f"{study.config.name}-overlap", title, ["K", "visual", "semantic"], rows)


def _curves(study: Study, kind: str, methods: tuple[str, ...]) -> Table:
    columns, rows = ["method", "K", "visual", "semantic", "gain"], []
    for method in methods:
        visual = expert.curve(study, kind, "visual", method)
        space = expert.curve(study, kind, semantic(kind), method)
        for k, v, s in zip(visual["sizes"], visual["MAP"], space["MAP"], strict=True):
            rows.append([method, int(k), 100 * v, 100 * s, 100 * (s - v)])
    title = f"Experiment 4, {study.config.name}: MAP against the number of neighbours ({kind})"
    note = "For 2PKNN, K is per label. At equal K, TagRel ranks images as NNvot does."
    return Table(f"{study.config.name}-4-neighbors-{kind}", title, columns, rows, note)


def expert_curves(study: Study) -> Table:
    """MAP against the number of neighbours."""
    return _curves(study, "expert", ("NNvot", "TagRel", "TagProp", "2PKNN"))


def tag_curves(study: Study) -> Table:
    """The same, learned from tags."""
    return _curves(study, "tags", ("NNvot", "TagRel", "TagProp"))


def subsampling(study: Study, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Sizes, and MAP of shape (splits, 1 + sizes, methods), the visual baseline first."""
    splits = [scaling.subsampled(study, kind, s) for s in range(study.config.splits)]
    return splits[0]["sizes"], np.stack([split["MAP"] for split in splits])


def _subsampling(study: Study, kind: str) -> Table:
    sizes, found = subsampling(study, kind)
    mean, spread = 100 * found.mean(axis=0), 100 * found.std(axis=0, ddof=1)
    rows = []
    for i, size in enumerate(["visual baseline", *(f"{s:,}" for s in sizes)]):
        cells = [f"{m:.1f} ± {s:.1f}" for m, s in zip(mean[i], spread[i], strict=True)]
        rows.append([size, *cells])
    c = study.config
    n_test = f"{c.sub_new:,}" if c.sub_new else "the usual number of"
    note = (
        f"Mean and standard deviation of MAP over {c.splits} splits with "
        f"{int(sizes[-1]):,} training and {n_test} test images; at most {c.sub_landmarks:,} "
        f"landmarks; TagProp with {c.sub_tagprop} neighbours, the others as in the tables above."
    )
    title = f"Experiment 5, {study.config.name}: projections from few images ({kind})"
    name = f"{study.config.name}-5-subsampling-{kind}"
    return Table(name, title, ["images", *PAPER_METHODS], rows, note)


def expert_subsampling(study: Study) -> Table:
    """MAP against the number of images the projections are learned from."""
    return _subsampling(study, "expert")


def tag_subsampling(study: Study) -> Table:
    """The same, learned from tags."""
    return _subsampling(study, "tags")


def _timing(study: Study, kind: str) -> Table:
    found = scaling.timings(study, kind)
    rows = [
        [int(size), *(f"{s:.2f}" for s in seconds), f"{seconds.sum():.2f}"]
        for size, seconds in zip(found["sizes"], found["seconds"], strict=True)
    ]
    columns = ["images", "visual kernel", "textual kernel", "kernel CCA", "together"]
    title = f"Experiment 5, {study.config.name}: CPU seconds ({kind})"
    note = (
        "Visual kernel: selecting the landmarks, their kernel matrix and its factor, kernel "
        "columns. Kernel CCA: sums, factor, solution."
    )
    return Table(f"{study.config.name}-5-timing-{kind}", title, columns, rows, note)


def expert_timing(study: Study) -> Table:
    """CPU time to learn a space."""
    return _timing(study, "expert")


def tag_timing(study: Study) -> Table:
    """The same, learned from tags."""
    return _timing(study, "tags")


# --- the run itself ----------------------------------------------------------------------


def expectations(study: Study) -> Table:
    """MAP found against the values the config expects."""
    rows = []
    for name, value in study.config.expected.items():
        kind, recipe, method = name.split(" ", 2)
        found = (
            expert.kernel_ridge(study, kind)
            if method == "kernel ridge"
            else expert.chosen(study, kind, recipe, method)
        )
        reached = 100 * float(found.values[0])
        good = "yes" if abs(reached - value) <= 1 else "no"
        rows.append([name, float(value), reached, good])
    if not rows:
        raise Missing("the config expects no values")
    columns = ["MAP of", "expected", "found", "within one point"]
    return Table(
        f"{study.config.name}-expected", f"Expected and found, {study.config.name}", columns, rows
    )


def clock_table(study: Study) -> Table:
    """Run time of each part."""
    folder = study.store.folder / "clock"
    groups: dict[str, np.ndarray] = {}
    for path in sorted(folder.glob("*.npz")):
        step = path.stem.split("name=", 1)[1]
        group = _group(step)
        with np.load(path, allow_pickle=False) as archive:
            groups[group] = groups.get(group, np.zeros(2)) + archive["seconds"]
    if not groups:
        raise Missing("nothing was run")
    groups["together"] = sum(groups.values(), np.zeros(2))
    rows = [[name, f"{w / 60:.1f}", f"{c / 60:.1f}"] for name, (w, c) in groups.items()]
    columns = ["part", "minutes", "CPU minutes"]
    note = "CPU time counts both cores."
    return Table(
        f"{study.config.name}-clock", f"Time taken, {study.config.name}", columns, rows, note
    )


def _group(step: str) -> str:
    if step.startswith("settings"):
        return "cross-validation"
    if "split" in step or step.startswith("timing"):
        return "experiment 5"
    if step.startswith("map"):
        return "t-SNE"
    if "curve" in step:
        return "experiment 4"
    if "tags" in step:
        return "experiment 2"
    if any(view.replace(" ", "_") in step for view in (*expert.VIEWS, "views")):
        return "experiment 3"
    return "experiment 1"
