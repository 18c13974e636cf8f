"""Tables of experiments 4 and 5."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from experiments import expert, scaling
from experiments.comparisons import semantic
from experiments.methods import PAPER_METHODS
from experiments.study import Study
from experiments.tabular import Table

__all__ = ["curve_tables", "subsampling"]

Maker = Callable[[Study], Table]


def curve_tables(of_tags: bool) -> list[Maker]:
    """Tables of neighbours, subsampling, timing and overlap."""
    if not of_tags:
        return [expert_curves, expert_subsampling, expert_timing, overlap_table]
    return [
        expert_curves, tag_curves, expert_subsampling, tag_subsampling,
        expert_timing, tag_timing, overlap_table,
    ]  # fmt: skip


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
