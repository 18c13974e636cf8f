"""Tables of experiments 4 and 5, and of the run itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from experiments import expert, scaling
from experiments.comparisons import semantic
from experiments.methods import PAPERS
from experiments.store import Missing
from experiments.study import Study
from experiments.tabular import Table

__all__ = ["curve_tables", "run_tables", "subsampling"]

Maker = Callable[[Study], Table]


def curve_tables(of_tags: bool) -> list[Maker]:
    """Of neighbours, subsampling, timing and overlap."""
    if not of_tags:
        return [expert_curves, expert_subsampling, expert_timing, overlap_table]
    return [
        expert_curves, tag_curves, expert_subsampling, tag_subsampling,
        expert_timing, tag_timing, overlap_table,
    ]  # fmt: skip


def run_tables() -> list[Maker]:
    """Of what was expected, and of time."""
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
        looks = expert.curve(study, kind, "visual", method)
        space = expert.curve(study, kind, semantic(kind), method)
        for k, v, s in zip(looks["sizes"], looks["MAP"], space["MAP"], strict=True):
            rows.append([method, int(k), 100 * v, 100 * s, 100 * (s - v)])
    title = f"Experiment 4, {study.config.name}: MAP against the number of neighbours ({kind})"
    note = "K of 2PKNN is of each label. At equal K, TagRel ranks images as NNvot does."
    return Table(f"{study.config.name}-4-neighbors-{kind}", title, columns, rows, note)


def expert_curves(study: Study) -> Table:
    """MAP against the number of neighbours."""
    return _curves(study, "expert", ("NNvot", "TagRel", "TagProp", "2PKNN"))


def tag_curves(study: Study) -> Table:
    """The same from tags."""
    return _curves(study, "tags", ("NNvot", "TagRel", "TagProp"))


def subsampling(study: Study, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Sizes, and MAP of shape (splits, 1 + sizes, methods), by looks first."""
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
    note = (
        f"Mean and standard deviation of MAP over {c.splits} splits of "
        f"{int(sizes[-1]):,} images to learn from and {c.sub_new or 'as many as the test has'} to "
        f"measure on; at most {c.sub_landmarks:,} landmarks; TagProp with {c.sub_tagprop} "
        "neighbours, the others as in the tables above."
    )
    title = f"Experiment 5, {study.config.name}: projections from few images ({kind})"
    name = f"{study.config.name}-5-subsampling-{kind}"
    return Table(name, title, ["images", *PAPERS], rows, note)


def expert_subsampling(study: Study) -> Table:
    """MAP against the number of images that projections are learned from."""
    return _subsampling(study, "expert")


def tag_subsampling(study: Study) -> Table:
    """The same from tags."""
    return _subsampling(study, "tags")


def _timing(study: Study, kind: str) -> Table:
    found = scaling.timings(study, kind)
    rows = [
        [int(size), *(f"{s:.2f}" for s in seconds), f"{seconds.sum():.2f}"]
        for size, seconds in zip(found["sizes"], found["seconds"], strict=True)
    ]
    columns = ["images", "visual kernel", "textual kernel", "kernel CCA", "together"]
    title = f"Experiment 5, {study.config.name}: processor seconds ({kind})"
    note = (
        "Visual kernel: choice of landmarks, their own kernel and its factor, kernel columns. CCA: "
        "sums, factor, solution."
    )
    return Table(f"{study.config.name}-5-timing-{kind}", title, columns, rows, note)


def expert_timing(study: Study) -> Table:
    """What a space costs."""
    return _timing(study, "expert")


def tag_timing(study: Study) -> Table:
    """The same from tags."""
    return _timing(study, "tags")


# --- the run itself ----------------------------------------------------------------------


def expectations(study: Study) -> Table:
    """Figures that the config said to expect."""
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
        raise Missing("nothing is expected")
    columns = ["MAP of", "expected", "found", "within one point"]
    return Table(
        f"{study.config.name}-expected", f"Expected and found, {study.config.name}", columns, rows
    )


def clock_table(study: Study) -> Table:
    """How long it took."""
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
    columns = ["part", "minutes", "processor minutes"]
    note = "Processor time counts both cores."
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
