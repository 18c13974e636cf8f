"""A report: one HTML file that needs nothing else, to look at, to print and to pass on."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tagkin.annotator.quality import MEASURES, Quality
from tagkin.annotator.suggestions import Finding, PhotoSuggestions
from tagkin.calibration import ReliabilityCurve
from tagkin.errors import InvalidInput
from tagkin.evaluation import LabelReport
from tagkin.images import Failure
from tagkin.pages._figures import common_threshold, dots_of, tag_rows
from tagkin.pages._files import write_page
from tagkin.pages._pictures import Pictures, data_uri, pictures_of
from tagkin.pages._templates import read_part, render

__all__ = ["Comparison", "Report", "comparisons_of", "write_report"]

_N_FAILURES = 200  # files named one by one


class _Card(NamedTuple):
    """A photograph with what is suggested for it and, where they are known, its true tags."""

    photo: PhotoSuggestions
    truth: AbstractSet[str] | None
    missed: list[str]
    """True tags that it does not carry and that are not suggested."""


class _Row(NamedTuple):
    """A method's value of one measure."""

    method: str
    value: float
    best: bool


@dataclass(frozen=True)
class Comparison:
    """How well methods do, side by side."""

    title: str
    methods: tuple[str, ...]
    """Such as "Visual neighbours" and "Semantic space"."""
    measures: Mapping[str, tuple[float, ...]]
    """Name of a measure -> one value for each method, from 0 to 1, higher is better."""
    note: str = ""
    """What to know before reading them."""

    def __post_init__(self) -> None:
        for name, values in self.measures.items():
            if len(values) != len(self.methods):
                raise InvalidInput(
                    f"{name} has {len(values)} values for {len(self.methods)} methods."
                )

    def rows(self) -> Iterator[tuple[str, list[_Row]]]:
        """Every measure with what each method reaches, and whether that is the best."""
        for name, values in self.measures.items():
            best = max((value for value in values if not math.isnan(value)), default=math.nan)
            pairs = zip(self.methods, values, strict=True)
            yield name, [_Row(method, value, value == best) for method, value in pairs]


def comparisons_of(quality: Quality) -> list[Comparison]:
    """The figures of suggestions: visual neighbours, where they are known, and the space."""
    known = {"Visual neighbours": quality.visual, "Semantic space": quality.semantic}
    methods = tuple(method for method, figures in known.items() if figures)

    def values(key: str) -> tuple[float, ...]:
        return tuple(known[method][key] for method in methods)

    return [
        Comparison(
            group.title, methods, {n: values(key) for key, n in group.names.items()}, group.note
        )
        for group in MEASURES
    ]


@dataclass(frozen=True)
class Report:
    """What a report shows. A part that is not given is left out.

    Attributes
    ----------
    title : str
    facts : sequence of pairs of str
        Name and value, such as ("photographs", "1,200"); shown large at the top.
    comparisons : sequence of Comparison
    reliability : ReliabilityCurve, optional
        Whether suggestions of 80 % are right in 80 of 100 cases.
    photographs : sequence of PhotoSuggestions
        Those to be shown; some 250 make a page of a few megabytes.
    truth : mapping of a file to its set of tags, optional
        Where what is to be seen is known: suggestions are marked right or wrong.
    labels : LabelReport, optional
        Made from confidences; rows are shown in its `order`.
    findings : sequence of Finding
    map_png : bytes, optional
        A picture made by `draw_map`.
    failures : sequence of Failure
        Files that were skipped, and why.
    notes : sequence of str
        Paragraphs under the title.
    """

    title: str
    facts: Sequence[tuple[str, str]] = ()
    comparisons: Sequence[Comparison] = ()
    reliability: ReliabilityCurve | None = None
    photographs: Sequence[PhotoSuggestions] = ()
    truth: Mapping[str, AbstractSet[str]] | None = None
    labels: LabelReport | None = None
    findings: Sequence[Finding] = ()
    map_png: bytes | None = field(default=None, repr=False)
    failures: Sequence[Failure] = ()
    notes: Sequence[str] = ()


def write_report(report: Report, path: str | os.PathLike[str]) -> Path:
    """Write a report as one HTML file: pictures, style and script are inside it.

    Parameters
    ----------
    report : Report
    path : path
        Written whole or not at all; what is there is replaced.

    Returns
    -------
    path : Path
    """
    return write_page(path, _page(report).encode("utf-8"))


def _page(report: Report) -> str:
    labels, map_png = report.labels, report.map_png
    return render(
        "report.html.jinja",
        report=report,
        style=read_part("report.css"),
        script=read_part("sort.js"),
        pictures=_pictures(report),
        cards=[_card(photo, report.truth) for photo in report.photographs],
        dots=None if report.reliability is None else dots_of(report.reliability),
        map_src="" if map_png is None else data_uri(map_png, "image/png"),
        tags=None if labels is None else list(tag_rows(labels)),
        threshold=None if labels is None else common_threshold(labels),
        findings=_by_file(report.findings),
        n_failures=_N_FAILURES,
    )


def _pictures(report: Report) -> Pictures:
    photos, findings = report.photographs, report.findings
    files = [*(photo.file for photo in photos), *(one.file for one in findings)]
    kin = [one.kin for photo in photos for one in photo.suggestions]
    return pictures_of(files, [*kin, *(one.kin for one in findings)])


def _card(photo: PhotoSuggestions, truths: Mapping[str, AbstractSet[str]] | None) -> _Card:
    truth = None if truths is None else truths.get(photo.file)
    there = {*photo.tags, *(one.tag for one in photo.suggestions)}
    return _Card(photo, truth, sorted((truth or set()) - there))


def _by_file(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """The findings of each photograph, in the order in which they come."""
    found: dict[str, list[Finding]] = {}
    for one in findings:
        found.setdefault(one.file, []).append(one)
    return found
