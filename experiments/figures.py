"""Every figure, drawn with matplotlib as a pure function of stored results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from experiments import expert, published, scaling
from experiments.comparisons import semantic_over_visual
from experiments.curve_tables import subsampling
from experiments.methods import PAPER_METHODS
from experiments.store import Missing
from experiments.study import Study

__all__ = ["NamedFigure", "all_figures"]

# Paul Tol's bright scheme, safe for colour-blind readers; markers differ too, for greyscale.
COLORS = {
    "NNvot": "#4477AA",
    "TagRel": "#66CCEE",
    "TagProp": "#228833",
    "2PKNN": "#CCBB44",
    "SVM": "#EE6677",
}
MARKERS = {"NNvot": "o", "TagRel": "s", "TagProp": "^", "2PKNN": "D", "SVM": "v"}
PAPER_MARKERS = ("D", "s", "^")
TOL = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#BBBBBB", "#222222")
mpl.rcParams.update({"svg.hashsalt": "tagkin", "font.size": 10, "path.simplify": True})


class NamedFigure(NamedTuple):
    """A figure with the name of its file."""

    name: str
    figure: Any


def all_figures(study: Study) -> Iterator[NamedFigure]:
    """The figures of one dataset for which there are results."""
    if study.config.qualitative:
        return
    makers: list[Callable[[Study, str], NamedFigure]] = [gains, neighbors, subsampled]
    for kind in scaling.kinds(study):
        for make in makers:
            try:
                yield make(study, kind)
            except Missing:
                continue
    for other in (timing, overlap, image_map):
        try:
            yield other(study)
        except Missing:
            continue


def _axes(width: float = 6.5, height: float = 3.6, columns: int = 1) -> tuple[Any, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False)[0]
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _from(kind: str) -> str:
    return "expert labels" if kind == "expert" else "users’ tags"


def gains(study: Study, kind: str) -> NamedFigure:
    """Gain of each method from the space, with the paper's gains."""
    config = study.config
    figure, (axes,) = _axes()
    found = [semantic_over_visual(study, kind, method) for method in PAPER_METHODS]
    values = 100 * np.array([one.value for one in found])
    ends = 100 * np.array([[one.value - one.low, one.high - one.value] for one in found]).T
    positions = np.arange(len(PAPER_METHODS))
    bars = axes.bar(
        positions, values, 0.5, color=[COLORS[m] for m in PAPER_METHODS], yerr=ends, capsize=4
    )
    bars.set_label(f"{config.name}, 95 % interval")
    datasets = config.stands_for if kind == "expert" else config.stands_for_tags
    for marker, dataset in zip(PAPER_MARKERS, datasets, strict=False):
        theirs = [published.gain(kind, "MAP", dataset, method) for method in PAPER_METHODS]
        axes.plot(
            positions + 0.36,
            theirs,
            marker,
            mec="black",
            mfc="white",
            ms=7,
            label=f"paper, {dataset}",
        )
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(positions, PAPER_METHODS)
    axes.set_ylabel("MAP gain in the semantic space (points)")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return NamedFigure(f"{config.name}-gains-{kind}", figure)


def neighbors(study: Study, kind: str) -> NamedFigure:
    """MAP against the number of neighbours."""
    semantic = "linear" if kind == "expert" else "denoised"
    with_two = kind == "expert"
    figure, axes = _axes(6.5, 3.8, 1 + with_two)
    if with_two:
        axes[0].get_gridspec().set_width_ratios([2.6, 1])
    # at equal K, TagRel's curve is NNvot's
    shown = [("NNvot", "NNvot, TagRel", axes[0]), ("TagProp", "TagProp", axes[0])]
    if with_two:
        shown.append(("2PKNN", "2PKNN", axes[1]))
    for method, label, where in shown:
        for recipe, style in (("visual", "--"), (semantic, "-")):
            curve = expert.curve(study, kind, recipe, method)
            where.plot(
                curve["sizes"],
                100 * curve["MAP"],
                style,
                color=COLORS[method],
                marker=MARKERS[method],
                ms=5,
                label=f"{label}, {'visual' if recipe == 'visual' else 'semantic'}",
            )
    axes[0].set(xscale="log", xlabel="neighbours K", ylabel="MAP (%)")
    ticks = [k for k in study.config.curve if k <= max(study.config.neighbors)]
    axes[0].set_xticks(ticks, [str(k) for k in ticks])
    axes[0].minorticks_off()
    if with_two:
        axes[1].set(xlabel="K₁ of each label", xticks=study.config.per_label)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return NamedFigure(f"{study.config.name}-neighbors-{kind}", figure)


def subsampled(study: Study, kind: str) -> NamedFigure:
    """MAP against the number of images the projections are learned from."""
    sizes, found = subsampling(study, kind)
    figure, (axes,) = _axes(6.5, 4.2)
    mean, low, high = (100 * f(found, axis=0) for f in (np.mean, np.min, np.max))
    for i, method in enumerate(PAPER_METHODS):
        color, label = COLORS[method], method
        if method == "TagRel" and np.array_equal(found[..., i], found[..., 0]):
            continue  # with as many neighbours it ranks images as NNvot does
        if method == "NNvot" and np.array_equal(found[..., 0], found[..., 1]):
            label = "NNvot, TagRel"
        axes.axhline(mean[0, i], color=color, linestyle="--", linewidth=1)
        axes.plot(sizes, mean[1:, i], color=color, marker=MARKERS[method], ms=5, label=label)
        axes.fill_between(sizes, low[1:, i], high[1:, i], color=color, alpha=0.15, linewidth=0)
    axes.set(xscale="log", xlabel="images that the projections are learned from", ylabel="MAP (%)")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    figure.legend(loc="outside upper center", ncols=5, frameon=False)
    return NamedFigure(f"{study.config.name}-subsampling-{kind}", figure)


def timing(study: Study) -> NamedFigure:
    """CPU time of the three parts of a fit."""
    kinds = scaling.kinds(study)
    figure, axes = _axes(6.5, 3.4, len(kinds))
    parts = ("visual kernel", "textual kernel", "kernel CCA")
    hatches = ("", "//", "")
    for kind, where in zip(kinds, axes, strict=True):
        found = scaling.timings(study, kind)
        bottom = np.zeros(len(found["sizes"]))
        positions = np.arange(len(bottom))
        for i, part in enumerate(parts):
            seconds = found["seconds"][:, i]
            label = part if where is axes[0] else None
            where.bar(
                positions,
                seconds,
                0.65,
                bottom,
                color=TOL[i],
                hatch=hatches[i],
                ec="white",
                label=label,
            )
            bottom += seconds
        where.set_xticks(positions, [f"{size:,}" for size in found["sizes"]], fontsize=8)
        where.set(xlabel=f"images, {_from(kind)}")
    axes[0].set_ylabel("CPU seconds")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return NamedFigure(f"{study.config.name}-timing", figure)


def overlap(study: Study) -> NamedFigure:
    """Jaccard against the size of the neighbourhood."""
    figure, (axes,) = _axes(5, 3.2)
    for recipe, style, name in (("visual", "--", "visual"), ("linear", "-", "semantic")):
        found = expert.jaccard(study, recipe)
        axes.plot(
            found["sizes"], found["overlap"], f"o{style}", color=COLORS["NNvot"], ms=5, label=name
        )
    axes.set(xscale="log", xlabel="neighbours K", ylabel="mean Jaccard overlap")
    axes.set_xticks(found["sizes"], [str(k) for k in found["sizes"]])
    axes.minorticks_off()
    axes.legend(frameon=False)
    return NamedFigure(f"{study.config.name}-overlap", figure)


def image_map(study: Study) -> NamedFigure:
    """t-SNE of test images, in visual feature space and in spaces of labels and of users' tags."""
    panels = scaling.maps(study)
    figure, axes = _axes(3.4 * len(panels), 3.9, len(panels))
    for (recipe, title), where in zip(panels.items(), axes, strict=True):
        found = scaling.map_of_images(study, recipe)
        x, y = found["points"].T
        for t, name in enumerate(found["names"]):
            own = found["label"] == t
            label = str(name) if where is axes[0] else None
            where.plot(x[own], y[own], ".", color=TOL[t], ms=4.5, mew=0, label=label)
        where.set(title=title, xticks=[], yticks=[])
        where.spines[:].set_visible(False)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, markerscale=2.5)
    return NamedFigure(f"{study.config.name}-map", figure)
