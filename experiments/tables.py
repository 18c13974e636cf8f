"""Every table, as a pure function of stored results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from experiments import expert, photos, published, tags
from experiments.bootstrap import interval
from experiments.comparisons import difference, holm, p_text, semantic, semantic_over_visual, span
from experiments.curve_tables import curve_tables
from experiments.methods import PAPER_METHODS, setting_text
from experiments.store import Missing
from experiments.study import Measured, Study
from experiments.tabular import Table

__all__ = ["all_tables"]

_HEADS = ("MAP", "Prec@{n}", "Rec@{n}", "N+")
_PERCENT = np.array([100.0, 100.0, 100.0, 1.0])


def all_tables(study: Study) -> Iterator[Table]:
    """The tables of one dataset for which there are results."""
    if study.config.qualitative:
        yield from photos.tables(study)
        return
    of_tags = bool(study.config.stands_for_tags)
    makers: list[Callable[[Study], Table]] = [dataset_table, expert_table]
    makers += _comparisons("expert")
    if of_tags:
        makers += [tag_table, *_comparisons("tags"), ablation_table]
    makers.append(kernel_table)
    for make in (*makers, *curve_tables(of_tags)):
        try:
            yield make(study)
        except Missing:
            continue


def _comparisons(kind: str) -> list[Callable[[Study], Table]]:
    return [partial(_beside, kind), partial(_gains, kind)]


def dataset_table(study: Study) -> Table:
    """The dataset, as in the paper's Table 1."""
    columns = ["images", "training", "test", "labels", "tags", "labels/image"]
    numbers = study.size()
    counts = [int(number) or None for number in numbers[:-1]]
    row = [_name(study), *counts, float(numbers[-1])]
    return Table(f"{_name(study)}-0-dataset", ["dataset", *columns], [row])


# --- experiments 1 and 2 -----------------------------------------------------------------


def _heads(study: Study) -> list[str]:
    return [head.format(n=study.config.top) for head in _HEADS]


def _cells(found: Measured) -> list[float | int | str]:
    low, high = interval(found.resampled[0], found.values[0])
    values = found.values[:4] * _PERCENT
    return [values[0], f"{100 * low:.1f} to {100 * high:.1f}", *values[1:3], int(values[3])]


def _measured_rows(study: Study, kind: str) -> Iterator[list]:
    for space, recipe in (("visual", "visual"), ("semantic", semantic(kind))):
        for method in PAPER_METHODS:
            setting = setting_text(study.setting(kind, recipe, method))
            yield [space, method, setting, *_cells(expert.chosen(study, kind, recipe, method))]
    ridge = expert.kernel_ridge(study, kind)
    yield ["semantic", "kernel ridge", "the regression in the linear space", *_cells(ridge)]


def _columns(study: Study) -> list[str]:
    heads = _heads(study)
    return ["space", "method", "setting", heads[0], "95 % interval", *heads[1:]]


def _name(study: Study) -> str:
    return study.config.name


def expert_table(study: Study) -> Table:
    """Experiment 1: every method in visual feature space and in the semantic space."""
    rows = list(_measured_rows(study, "expert"))
    words, found = expert.best(study)
    rows.append(["best by cross-validation", "", words, *_cells(found)])
    return Table(f"{_name(study)}-1-expert", _columns(study), rows)


def tag_table(study: Study) -> Table:
    """Experiment 2: the same, learned from tags, and evaluated on labels that are also tags."""
    return Table(f"{_name(study)}-2-tags", _columns(study), list(_measured_rows(study, "tags")))


def _experiment(study: Study, kind: str) -> tuple[int, tuple[str, ...]]:
    """Number of the experiment that learns from expert labels or tags, and the paper's datasets."""
    config = study.config
    return (1, config.stands_for) if kind == "expert" else (2, config.stands_for_tags)


def _beside(kind: str, study: Study) -> Table:
    """An experiment beside the paper's numbers."""
    number, datasets = _experiment(study, kind)
    heads = _heads(study)
    columns = ["group", "method", *heads]
    for dataset in datasets:
        columns += [f"{dataset} {head}" for head in _HEADS_PAPER] + [
            f"{dataset}: MAP minus the paper's"
        ]
    rows = []
    for space, recipe in (("visual", "visual"), ("semantic", semantic(kind))):
        for method in PAPER_METHODS:
            ours = expert.chosen(study, kind, recipe, method).values[:4] * _PERCENT
            row: list = [space, method, *ours[:3], int(ours[3])]
            for dataset in datasets:
                theirs = _published(kind, dataset, space, method)
                row += [*theirs, None if theirs[0] is None else ours[0] - theirs[0]]
            rows.append(row)
    for dataset in datasets:
        for one in published.rows(kind, dataset=dataset, group="state of the art"):
            row = [f"state of the art, {dataset}", f"{one['method']} ({one['features']})"]
            row += [None] * 4
            for other in datasets:
                theirs = _published(kind, dataset, "state of the art", one["method"])
                row += [*(theirs if other == dataset else [None] * 4), None]
            rows.append(row)
    return Table(f"{_name(study)}-{number}-{kind}-beside-paper", columns, rows)


_HEADS_PAPER = ("MAP", "Prec", "Rec", "N+")


def _published(kind: str, dataset: str, group: str, method: str) -> list[float | None]:
    wanted = {"dataset": dataset, "group": group, "method": method}
    numbers = [published.number(kind, measure, **wanted) for measure in published.MEASURES]
    return [*numbers[:3], None if numbers[3] is None else int(numbers[3])]


# --- gains and tests ---------------------------------------------------------------------


def _gains(kind: str, study: Study) -> Table:
    """Test every claim of "semantic over visual", on the same test images."""
    number, datasets = _experiment(study, kind)
    heads = _heads(study)
    methods = PAPER_METHODS
    columns = ["method"]
    for head in heads[:3]:
        columns += [f"{head} gain", "95 % interval"]
    columns += ["p (MAP)", "p, Holm"]
    columns += [f"{dataset}: MAP gain" for dataset in datasets]
    columns += [f"gain minus {dataset}'s" for dataset in datasets]
    found = {m: [semantic_over_visual(study, kind, m, i) for i in range(3)] for m in methods}
    corrected = holm([found[m][0].p for m in methods])
    least = 1 / study.config.resamples
    rows = []
    for method, value in zip(methods, corrected, strict=True):
        row: list = [method]
        for one in found[method]:
            row += [100 * one.value, span(one)]
        row += [p_text(found[method][0].p, least), p_text(value, least)]
        theirs = [published.gain(kind, "MAP", dataset, method) for dataset in datasets]
        row += theirs
        row += [None if gain is None else 100 * found[method][0].value - gain for gain in theirs]
        rows.append(row)
    return Table(f"{_name(study)}-{number}-{kind}-gains", columns, rows)


def ablation_table(study: Study) -> Table:
    """Pre-propagation on and off; the paper's numbers are for MIRFlickr-25k."""
    theirs = ("visual", "raw", "denoised")
    titles = {
        "visual": "baseline",
        "raw": "no pre-propagation",
        "denoised": "full",
        "linear": "raw tags, linear kernel",
        "chosen": "TagDenoiser",
    }
    columns = ["method", *titles.values(), "full minus none", "p"]
    columns += [f"paper: {titles[name]}" for name in theirs] + ["paper: full minus none"]
    rows = []
    for method in PAPER_METHODS:
        found = {recipe: tags.chosen_in(study, recipe, method) for recipe in tags.RECIPES}
        one = difference(found["denoised"], found["raw"])
        row: list = [method, *(100 * found[recipe].values[0] for recipe in titles)]
        row += [100 * one.value, p_text(one.p, 1 / study.config.resamples)]
        paper = [published.number("denoising", recipe, method=method) for recipe in theirs]
        without, full = paper[1:]
        gain = None if without is None or full is None else full - without
        rows.append([*row, *paper, gain])
    return Table(f"{_name(study)}-2-denoising", columns, rows)


# --- experiment 3 ------------------------------------------------------------------------


def kernel_table(study: Study) -> Table:
    """Textual kernels."""
    datasets = ("MIRFlickr-25k", "NUS-WIDE")
    columns = ["method", "textual kernel", *_columns(study)[3:], "over linear", "p"]
    for dataset in datasets:
        columns += [f"{dataset} MAP", f"{dataset}: over linear"]
    rows = []
    for method in PAPER_METHODS:
        linear = expert.view(study, "linear", method)
        for recipe in ("linear", *expert.VIEWS):
            found = expert.view(study, recipe, method)
            row: list = [method, recipe, *_cells(found)]
            one = difference(found, linear)
            same = recipe == "linear"
            row += (
                [None, None]
                if same
                else [100 * one.value, p_text(one.p, 1 / study.config.resamples)]
            )
            for dataset in datasets:
                wanted = {"dataset": dataset, "method": method}
                theirs = published.number("kernels", "MAP", kernel=recipe, **wanted)
                plain = published.number("kernels", "MAP", kernel="linear", **wanted)
                less = None if theirs is None or plain is None or same else theirs - plain
                row += [theirs, less]
            rows.append(row)
    return Table(f"{_name(study)}-3-kernels", columns, rows)
