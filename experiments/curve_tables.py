"""Tables of experiments 4 and 5."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

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
    kinds = ("expert", "tags") if of_tags else ("expert",)
    makers = (_curves, _subsampling, _timing)
    return [*(partial(make, kind) for make in makers for kind in kinds), overlap_table]


def overlap_table(study: Study) -> Table:
    """Jaccard against the size of the neighbourhood."""
    visual, semantic = (expert.jaccard(study, recipe) for recipe in ("visual", "linear"))
    rows = [
        [int(k), f"{v:.3f}", f"{s:.3f}"]
        for k, v, s in zip(visual["sizes"], visual["overlap"], semantic["overlap"], strict=True)
    ]
    return Table(f"{study.config.name}-overlap", ["K", "visual", "semantic"], rows)


def _curves(kind: str, study: Study) -> Table:
    """MAP against the number of neighbours; for 2PKNN, per label."""
    columns, rows = ["method", "K", "visual", "semantic", "gain"], []
    for method in ("NNvot", "TagRel", "TagProp", *(["2PKNN"] if kind == "expert" else [])):
        visual = expert.curve(study, kind, "visual", method)
        space = expert.curve(study, kind, semantic(kind), method)
        for k, v, s in zip(visual["sizes"], visual["MAP"], space["MAP"], strict=True):
            rows.append([method, int(k), 100 * v, 100 * s, 100 * (s - v)])
    return Table(f"{study.config.name}-4-neighbors-{kind}", columns, rows)


def subsampling(study: Study, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Sizes, and MAP of shape (splits, 1 + sizes, methods), the visual baseline first."""
    splits = [scaling.subsampled(study, kind, s) for s in range(study.config.splits)]
    return splits[0]["sizes"], np.stack([split["MAP"] for split in splits])


def _subsampling(kind: str, study: Study) -> Table:
    """MAP over splits (mean and standard deviation) against the images projections learn from."""
    sizes, found = subsampling(study, kind)
    mean, spread = 100 * found.mean(axis=0), 100 * found.std(axis=0, ddof=1)
    rows = []
    for i, size in enumerate(["visual baseline", *(f"{s:,}" for s in sizes)]):
        cells = [f"{m:.1f} ± {s:.1f}" for m, s in zip(mean[i], spread[i], strict=True)]
        rows.append([size, *cells])
    return Table(f"{study.config.name}-5-subsampling-{kind}", ["images", *PAPER_METHODS], rows)


def _timing(kind: str, study: Study) -> Table:
    """CPU seconds to learn a space."""
    found = scaling.timings(study, kind)
    rows = [
        [int(size), *(f"{s:.2f}" for s in seconds), f"{seconds.sum():.2f}"]
        for size, seconds in zip(found["sizes"], found["seconds"], strict=True)
    ]
    columns = ["images", "visual kernel", "textual kernel", "kernel CCA", "together"]
    return Table(f"{study.config.name}-5-timing-{kind}", columns, rows)
